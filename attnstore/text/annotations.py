"""This file checks the words, mentions and links of a JSON object, and finds words without offsets in the text."""

from collections.abc import Mapping, Sequence

from attnstore.text.example import Link, Mention, Word
from attnstore.text.tree import first_fault, mention_head, mention_type
from attnstore.text.typed import Fail, list_of, number_of, object_of, span_of, text_of, truth_of

_WORD_KEYS = ("lemma", "upos", "xpos", "deprel")
_SPAN_KEYS = ("source_start_word", "source_end_word", "target_start_word", "target_end_word")


def words_of(value: object, texts: Sequence[str | None], fail: Fail) -> tuple[Word, ...]:
    """Words from a list of forms, or of objects with the fields of `Word`; `head` may stand for `governor`.

    `texts` are the texts of the parts. Governors count from 0; null or none is the root. A word without
    `start_char` is found in its text, from the end of the word before; one with a null `start_char` has
    no place. Raises what `fail` makes: form not found, offsets outside of the text or not in
    order, a governor that is no word, the word itself or in a circle.
    """
    words: list[Word] = []
    position = [0] * len(texts)
    for index, entry in enumerate(list_of("words", value, fail)):
        at = f"words[{index}]"
        record = {"form": entry} if isinstance(entry, str) else object_of(at, entry, fail)
        form = text_of(at, record, "form", fail)
        if not form or not form.strip():
            raise fail(f"{at} has no form", "a form that is not empty")
        part = number_of(at, record, "part", fail) or 0
        text = texts[part] if 0 <= part < len(texts) else None
        if text is None:
            raise fail(f"{at} is in part {part}", "a part that has a text")
        start, end = _place(at, record, form, text, position[part], fail)
        position[part] = position[part] if end is None else end
        tags = {key: text_of(at, record, key, fail) for key in _WORD_KEYS}
        governor = number_of(at, record, "governor" if "governor" in record else "head", fail)
        sentence = number_of(at, record, "sentence", fail) or 0
        words.append(Word(form, start, end, governor=governor, sentence=sentence, part=part, **tags))
    fault = first_fault([word.governor for word in words])
    if fault is not None:
        index, reason = fault
        raise fail(
            f"words[{index}] has governor {words[index].governor}: {reason}", f"a tree over words 0 to {len(words) - 1}"
        )
    return tuple(words)


def mentions_of(value: object, words: Sequence[Word], fail: Fail) -> tuple[Mention, ...]:
    """Mentions from a list of objects with `cluster`, `start_word`, `end_word`; `head_word` and `type` follow
    from the words where they are missing. Raises what `fail` makes for a span outside of the words."""
    mentions = []
    for index, entry in enumerate(list_of("mentions", value, fail)):
        at = f"mentions[{index}]"
        record = object_of(at, entry, fail)
        cluster = record.get("cluster")
        if not isinstance(cluster, (str, int)) or isinstance(cluster, bool):
            raise fail(f"{at} has cluster {cluster!r}", "the name or number of an entity")
        start, end = span_of(at, record, "start_word", "end_word", len(words), fail)
        head = number_of(at, record, "head_word", fail)
        if head is None:
            head = mention_head(words, range(start, end))
        elif not start <= head < end:
            raise fail(f"{at} has head_word {head}", f"a word of its span, {start} to {end - 1}")
        kind = text_of(at, record, "type", fail) or mention_type(words[head])
        mentions.append(Mention(str(cluster), start, end, head, kind))
    return tuple(mentions)


def links_of(value: object, words: Sequence[Word], fail: Fail) -> tuple[Link, ...]:
    """Links from a list of objects with the fields of `Link`. Raises what `fail` makes for a span outside
    of the words."""
    links = []
    for index, entry in enumerate(list_of("links", value, fail)):
        at = f"links[{index}]"
        record = object_of(at, entry, fail)
        relation = text_of(at, record, "relation", fail)
        if not relation:
            raise fail(f"{at} has no relation", "the name of the relation")
        source = span_of(at, record, *_SPAN_KEYS[:2], len(words), fail)
        target = span_of(at, record, *_SPAN_KEYS[2:], len(words), fail)
        links.append(Link(relation, *source, *target, core=truth_of(at, record, "core", fail)))
    return tuple(links)


def _place(
    at: str, record: Mapping[str, object], form: str, text: str, position: int, fail: Fail
) -> tuple[int | None, int | None]:
    start, end = number_of(at, record, "start_char", fail), number_of(at, record, "end_char", fail)
    if (start is None) != (end is None):
        raise fail(f"{at} has only one of start_char and end_char", "both or none")
    if start is not None and end is not None:
        if not position <= start < end <= len(text):
            raise fail(
                f"{at} lies at {start} to {end}", f"a place from {position} (where the word before ends) to {len(text)}"
            )
        return start, end
    if "start_char" in record:
        return None, None
    start = text.find(form, position)
    if start < 0:
        raise fail(f"{at}, {form!r}, is not in the text from character {position} on", "words in the order of the text")
    return start, start + len(form)
