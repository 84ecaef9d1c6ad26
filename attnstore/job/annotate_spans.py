"""This file gives a finished store new mentions or links, without model or maps: the words stay as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput
from attnstore.format.parquet import TableWriter
from attnstore.job.addition import Annotated, carried, opened, publish_addition
from attnstore.job.annotation_match import check_pair, match, stored_examples, stored_words
from attnstore.job.rows import link_rows, mention_rows
from attnstore.job.span_file import Entry, What, read_entries
from attnstore.text.annotations import links_of, mentions_of
from attnstore.text.example import Link, Mention, Word
from attnstore.text.places import words_at
from attnstore.text.tree import mention_head, mention_type


def annotate_mentions(store: str | Path, path: Path) -> Annotated:
    """Give the examples that a file names its mentions instead of theirs; the file as in `span_file.read_entries`.

    Spans without words of their own count the store's words. Other spans go to the same words where the forms are the
    same, else to the words at the same characters of the same text, with a new head and type. BadInput, with file and
    line, for a span outside of the words, other words over another text, and an example without words; also where
    nothing matches or the ingest has not ended.
    """
    return _annotate(Path(store), path, "mentions")


def annotate_links(store: str | Path, path: Path) -> Annotated:
    """Give the examples that a file names its links instead of theirs, as in `annotate_mentions`."""
    return _annotate(Path(store), path, "links")


def _annotate(store: Path, path: Path, what: What) -> Annotated:
    doing = f"annotating {store} with {path.name}"
    with opened(store, doing) as source:
        stored = stored_examples(source)
        entries = {entry.example.where: entry for entry in read_entries(stored, path, what, doing)}
        matched = match(stored, [entry.example for entry in entries.values()], doing)
        words = stored_words(source, matched.found, "source")
        rows: list[dict[str, Any]] = []
        for number, (row, item) in matched.found.items():
            own = _Words(row, words.get(number, ()), entries[item.where], doing)
            rows += mention_rows(number, own.mentions()) if what == "mentions" else link_rows(number, own.links())

        def fill(writers: dict[str, TableWriter]) -> None:
            for batch in carried(source, what, list(matched.found)):
                writers[what].append(batch)
            writers[what].append_rows(rows)

        addition = publish_addition(source, what, [what], {what: path.name}, doing, fill)
    return Annotated(addition, len(matched.found), matched.unmatched)


class _Words:
    """The words of one example of the store, and how the spans of an entry fall on them."""

    def __init__(self, row: Mapping[str, Any], words: Sequence[Word], entry: Entry, doing: str) -> None:
        self.words, self.entry, self.item = words, entry, entry.example
        self.where = f"{doing}, {self.item.where}"
        if not words:
            remedy = "Give it words first: attnstore annotate STORE --words FILE"
            raise BadInput(self.where, f"example {row['name']} has no words", "words, which the spans count", remedy)
        self.same = [(word.form, word.part) for word in words] == [(word.form, word.part) for word in self.item.words]
        if entry.spans is None:
            check_pair(row, self.item, doing)
            if not self.same and (row["text"], row["second"]) != (self.item.text, self.item.second):
                found = f"example {row['name']} has another text and other words"
                raise BadInput(self.where, found, "its text, or the forms of its words")

    def mentions(self) -> Sequence[Mention]:
        """The mentions of the entry on these words."""
        if self.entry.spans is not None:
            return mentions_of(self.entry.spans, self.words, self.entry.fail)
        return self.item.mentions if self.same else [self._mention(mention) for mention in self.item.mentions]

    def links(self) -> Sequence[Link]:
        """The links of the entry on these words."""
        if self.entry.spans is not None:
            return links_of(self.entry.spans, self.words, self.entry.fail)
        return self.item.links if self.same else [self._link(link) for link in self.item.links]

    def _mention(self, mention: Mention) -> Mention:
        start, end = self._place(mention.start_word, mention.end_word)
        head = mention_head(self.words, range(start, end))
        return Mention(mention.cluster, start, end, head, mention_type(self.words[head]) or mention.type)

    def _link(self, link: Link) -> Link:
        source = self._place(link.source_start_word, link.source_end_word)
        target = self._place(link.target_start_word, link.target_end_word)
        return replace(
            link,
            source_start_word=source[0],
            source_end_word=source[1],
            target_start_word=target[0],
            target_end_word=target[1],
        )

    def _place(self, start: int, end: int) -> tuple[int, int]:
        """The store's words over words of the entry."""
        placed = [index for index, word in enumerate(self.words) if word.start_char is not None]
        old = self.item.words[start:end]
        span = words_at(old, [self.words[index] for index in placed])
        if span is None:
            form = " ".join(word.form for word in old)
            raise BadInput(self.where, f"no word of the store lies where {form!r} is", "words at the same characters")
        return placed[span[0]], placed[span[1] - 1] + 1
