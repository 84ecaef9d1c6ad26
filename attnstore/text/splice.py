"""This file joins, pairs and cuts examples, carrying words, mentions, links and triggers along."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnstore.errors import BadInput
from attnstore.text.example import Example, Link, Mention, Word


def joined(examples: Sequence[Example]) -> Example:
    """One example whose text is the texts of `examples` with a space between them.

    Offsets, governors, mentions and links are shifted, sentences numbered on; the name is
    "<first>..<last>", other fields stay where all examples agree. Triggers are lost: no
    corpus whose texts are joined has any. Raises `BadInput` for a pair or an example with a target.
    """
    for example in examples:
        require_single(example, "joining texts")
    if len(examples) == 1:
        return examples[0]
    text = ""
    words: list[Word] = []
    mentions: list[Mention] = []
    links: list[Link] = []
    sentence = 0
    for example in examples:
        text += " " * bool(text)
        moved = [_moved(word, len(text), len(words), sentence, 0) for word in example.words]
        mentions += [_moved_mention(mention, len(words)) for mention in example.mentions]
        links += [_moved_link(link, len(words), len(words)) for link in example.links]
        words += moved
        sentence += n_sentences(example.words)
        text += example.text
    first = examples[0]
    return Example(
        f"{first.name}..{examples[-1].name}",
        text,
        document=first.document,
        label=_common([example.label for example in examples]),
        split=_common([example.split for example in examples]),
        pair_id=_common([example.pair_id for example in examples]),
        condition=_common([example.condition for example in examples]),
        words=tuple(words),
        mentions=tuple(mentions),
        links=tuple(links),
        where=first.where,
    )


def paired(first: Example, second: Example) -> Example:
    """One example with the text of `first` as part 0 and of `second` as part 1; fields as in `joined`."""
    whole = joined([first, second])
    n_first = len(first.words)
    words = [
        replace(word, part=1, start_char=old.start_char, end_char=old.end_char)
        for word, old in zip(whole.words[n_first:], second.words, strict=True)
    ]
    return replace(whole, text=first.text, second=second.text, words=(*first.words, *words))


def cut(example: Example, bounds: Sequence[tuple[int, int]]) -> Example:
    """The example with the text of each part cut to its characters `bounds[part]`; the rest as in `cut_each`."""
    return cut_each(example, [bounds])[0]


def cut_each(example: Example, windows: Sequence[Sequence[tuple[int, int]]]) -> list[Example]:
    """One example for each window: the text of each part cut to its characters `window[part]` (end exclusive).

    Windows follow one another and do not overlap. Words that lie wholly inside of one stay, with new
    offsets and governors; where the governor does not stay with them, governor and relation become
    None. A word without a place goes with the word before it (at the beginning of a part, after it).
    Mentions and links stay if all their words do, and of a trigger what lies in the window.
    Sentences count from the first that stays. Names are not changed. Linear in words and windows.
    """
    homes = _homes(example.words, windows)
    members = _grouped(homes, len(windows))
    index = {word: new for group in members for new, word in enumerate(group)}
    mentions: list[list[Mention]] = [[] for _ in windows]
    for mention in example.mentions:
        home = _home(homes, range(mention.start_word, mention.end_word))
        if home >= 0:
            mentions[home].append(_moved_mention(mention, index[mention.start_word] - mention.start_word))
    links: list[list[Link]] = [[] for _ in windows]
    for link in example.links:
        source = range(link.source_start_word, link.source_end_word)
        target = range(link.target_start_word, link.target_end_word)
        home = _home(homes, [*source, *target])
        if home >= 0:
            by_source = index[link.source_start_word] - link.source_start_word
            by_target = index[link.target_start_word] - link.target_start_word
            links[home].append(_moved_link(link, by_source, by_target))
    return [
        replace(
            example,
            text=example.text[slice(*window[0])],
            second=None if example.second is None else example.second[slice(*window[1])],
            words=_rebased(example.words, group, window, index, homes),
            mentions=tuple(mentions[number]),
            links=tuple(links[number]),
            trigger=_rest(example.trigger, *window[0]),
        )
        for number, (window, group) in enumerate(zip(windows, members, strict=True))
    ]


def cut_target(example: Example, start: int, end: int) -> Example:
    """The example with its target cut to the characters `start` to `end` (exclusive), words as in `cut`."""
    if example.target is None:
        return example
    windows = [[(start, end)]]
    homes = _homes(example.target_words, windows)
    (group,) = _grouped(homes, 1)
    index = {word: new for new, word in enumerate(group)}
    words = _rebased(example.target_words, group, windows[0], index, homes)
    return replace(example, target=example.target[start:end], target_words=words)


def require_single(example: Example, doing: str) -> None:
    """Raises `BadInput` for an example with a second text or a target."""
    if example.second is not None or example.target is not None:
        kind = "a second text" if example.second is not None else "a target"
        raise BadInput(
            f"{doing} ({example.where or example.name})", f"{example.name!r} has {kind}", "one text an example"
        )


def n_sentences(words: Sequence[Word]) -> int:
    """How many sentence numbers `words` take up; at least 1."""
    return max((word.sentence for word in words), default=0) + 1


def _homes(words: Sequence[Word], windows: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    """The number of the window that each word lies in, -1 for none."""
    homes: list[int | None] = []
    at: dict[int, int] = {}
    for word in words:
        if word.start_char is None or word.end_char is None:
            homes.append(None)
            continue
        window = at.get(word.part, 0)
        while window < len(windows) - 1 and windows[window][word.part][1] <= word.start_char:
            window += 1
        while window > 0 and windows[window - 1][word.part][1] > word.start_char:
            window -= 1
        at[word.part] = window
        start, end = windows[window][word.part]
        homes.append(window if start <= word.start_char and word.end_char <= end else -1)
    for order in (range(1, len(words)), range(len(words) - 2, -1, -1)):
        step = -1 if order.step == 1 else 1
        for index in order:
            if homes[index] is None and words[index + step].part == words[index].part:
                homes[index] = homes[index + step]
    return [0 if home is None else home for home in homes]


def _rest(trigger: tuple[int, int] | None, start: int, end: int) -> tuple[int, int] | None:
    """What of a trigger lies within `start` to `end` (exclusive), counted from `start`; None where nothing does."""
    if trigger is None:
        return None
    first, last = max(trigger[0], start), min(trigger[1], end)
    return (first - start, last - start) if first < last else None


def _home(homes: Sequence[int], words: Sequence[int]) -> int:
    """The window that holds all of these words, -1 if none does."""
    first = homes[words[0]]
    return first if all(homes[word] == first for word in words) else -1


def _grouped(homes: Sequence[int], n_windows: int) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(n_windows)]
    for word, home in enumerate(homes):
        if home >= 0:
            groups[home].append(word)
    return groups


def _rebased(
    words: Sequence[Word],
    group: Sequence[int],
    window: Sequence[tuple[int, int]],
    index: Mapping[int, int],
    homes: Sequence[int],
) -> tuple[Word, ...]:
    """The words of one window with offsets, governors and sentences counted within it."""
    first_sentence = min((words[old].sentence for old in group), default=0)
    result = []
    for old in group:
        word = words[old]
        start = window[word.part][0]
        lost = word.governor is not None and homes[word.governor] != homes[old]
        result.append(
            replace(
                word,
                start_char=None if word.start_char is None else word.start_char - start,
                end_char=None if word.end_char is None else word.end_char - start,
                governor=None if lost or word.governor is None else index[word.governor],
                deprel=None if lost else word.deprel,
                sentence=word.sentence - first_sentence,
            )
        )
    return tuple(result)


def _moved(word: Word, chars: int, words: int, sentence: int, part: int) -> Word:
    return replace(
        word,
        start_char=None if word.start_char is None else word.start_char + chars,
        end_char=None if word.end_char is None else word.end_char + chars,
        governor=None if word.governor is None else word.governor + words,
        sentence=word.sentence + sentence,
        part=part,
    )


def _moved_mention(mention: Mention, words: int) -> Mention:
    return replace(
        mention,
        start_word=mention.start_word + words,
        end_word=mention.end_word + words,
        head_word=mention.head_word + words,
    )


def _moved_link(link: Link, source: int, target: int) -> Link:
    """The link with its source span `source` words later and its target span `target` words later."""
    return replace(
        link,
        source_start_word=link.source_start_word + source,
        source_end_word=link.source_end_word + source,
        target_start_word=link.target_start_word + target,
        target_end_word=link.target_end_word + target,
    )


def _common(values: Sequence[str | None]) -> str | None:
    return values[0] if all(value == values[0] for value in values) else None
