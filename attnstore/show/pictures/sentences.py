"""This file draws sentences with an arc from each word to the word that a head predicts for it."""

import math

from attnstore.show.cell import clip, number, visible, width
from attnstore.show.colour import KINDS
from attnstore.show.svg import BOLD, COLUMN, Drawing, hover, swatches, text
from attnstore.store.figures.panels import Link, Sentence, Sentences

RIGHT, WRONG, PLAIN = KINDS[2], KINDS[5], KINDS[0]
SPACE = 9
WORD_COLUMNS = 20
MOST_SENTENCES = 50
RISE, HIGHEST = 11, 7  # an arc rises by so many pixels a word, for at most so many words


def sentences(panel: Sentences) -> Drawing:
    """Each sentence in a row.

    Above the words an arc runs from the word to the predicted one, stronger for a larger weight; below them a dashed
    one runs to the right word where the prediction is another.
    """
    parts, y, wide = [text(8, 18, panel.title, "attn-t attn-b")], 34.0, 0.0
    for sentence in panel.sentences[:MOST_SENTENCES]:
        drawn, right, y = _sentence(sentence, y)
        parts += drawn
        wide = max(wide, right)
    if not panel.sentences:
        parts.append(text(8, 46, "no values", "attn-t"))
        y = 60
    left_out = len(panel.sentences) - MOST_SENTENCES
    if left_out > 0:
        parts.append(text(8, y + 12, f"{left_out} of {len(panel.sentences)} sentences left out", "attn-t"))
        y += 20
    names = ["predicted, right", "predicted, wrong", "right where wrong was predicted (dashed)"]
    legend, legend_width = swatches(names, [RIGHT, WRONG, PLAIN], 8, y + 4)
    full = max(wide, legend_width, 8 + width(visible(panel.title)) * BOLD) + 8
    return Drawing(full, y + 28, f"{panel.title}. {_summary(panel)}", [*parts, *legend])


def _sentence(sentence: Sentence, top: float) -> tuple[list[str], float, float]:
    """The marks of one sentence, its right edge, and where the next may begin."""
    line = top + _height(sentence, is_gold=False) + 12
    x, middles, parts = 8.0, {}, []
    for place, word in enumerate(sentence.words):
        shown = clip(visible(word), WORD_COLUMNS)
        wide = width(shown) * COLUMN
        middles[place] = x + wide / 2
        parts.append(text(x, line, shown, "attn-k"))
        x += wide + SPACE
    for link in sentence.links:
        parts += _arcs(link, sentence, middles, line)
    return parts, x, line + _height(sentence, is_gold=True) + 22


def _arcs(link: Link, sentence: Sentence, middles: dict[int, float], line: float) -> list[str]:
    """The arc to the predicted word above the line and, where it is another, the one to the right word below."""
    words, parts = sentence.words, []
    if link.predicted is not None:
        colour = PLAIN if link.is_correct is None else RIGHT if link.is_correct else WRONG
        strength = 0.5 + 0.5 * min(max(link.weight, 0.0), 1.0) if math.isfinite(link.weight) else 1.0
        weight = f": {number(link.weight)}" if math.isfinite(link.weight) else ""
        said = f"{words[link.word]} → {words[link.predicted]}{weight}"
        rise = min(abs(link.word - link.predicted), HIGHEST) * RISE
        parts += _arc(middles[link.word], middles[link.predicted], line - 12, -rise, colour, strength, said, "")
    if link.gold is not None and link.gold != link.predicted:
        said = f"{words[link.word]} → {words[link.gold]}: right"
        drop = min(abs(link.word - link.gold), HIGHEST) * RISE
        parts += _arc(middles[link.word], middles[link.gold], line + 5, drop, PLAIN, 0.9, said, "4 3")
    return parts


def _arc(
    start: float, end: float, y: float, rise: float, colour: str, strength: float, said: str, dash: str
) -> list[str]:
    """A curve with an arrow at its end; `rise` is negative upwards."""
    # A cubic's middle reaches three quarters of its control points' height.
    reach = rise / 0.75
    inside = math.copysign(4, rise)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    curve = f"M{start:.1f} {y:g}C{start:.1f} {y + reach:g} {end:.1f} {y + reach:g} {end:.1f} {y + inside:g}"
    return [
        f'<path d="{curve}" fill="none" stroke="{colour}" stroke-width="2" stroke-opacity="{strength:.2f}"{dashed}>'
        f"{hover(said)}</path>",
        f'<path d="M{end:.1f} {y:g}l-3.5 {inside * 1.5:g}h7z" fill="{colour}" fill-opacity="{strength:.2f}"/>',
    ]


def _height(sentence: Sentence, *, is_gold: bool) -> float:
    """How far the arcs of one side reach from the words."""
    spans = [
        abs(link.word - to)
        for link in sentence.links
        for to in [link.gold if is_gold else link.predicted]
        if to is not None and not (is_gold and link.gold == link.predicted)
    ]
    return min(max(spans, default=0), HIGHEST) * RISE


def _summary(panel: Sentences) -> str:
    links = [link for sentence in panel.sentences for link in sentence.links]
    right = sum(link.is_correct is True for link in links)
    return f"{len(panel.sentences)} sentences, {len(links)} predictions, {right} right" if links else "No values"
