"""This file says what a picture is made of before it is drawn, the same for SVG, matplotlib and a terminal.

Values that are not there are NaN in all of them, and are not drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Heat:
    """Values [row, column] as colours; with `kinds` they are indices into those names, each a colour of its own.

    `ends` are the ends of the scale where several panels share it; None takes those of the values.
    """

    title: str
    values: NDArray[np.float64]
    rows: Sequence[str]
    columns: Sequence[str]
    axes: tuple[str, str]
    unit: str
    kinds: Sequence[str] = ()
    ends: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Points [point] that belong together, each with the words of its hover and, where not empty, a label beside it.

    `colour` counts the colours of a chart, None is grey; `is_line` joins the points in order, `is_dashed` is for what
    one compares with. A series with a name stands in the legend.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    hovers: Sequence[str]
    colour: int | None
    name: str = ""
    labels: Sequence[str] = ()
    is_line: bool = False
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over two axes. `is_ordered` says that the colours follow an order, such as that of layers.

    `is_map` is for coordinates: equal units on both axes and no numbers, since only distances mean something.
    `is_small` is for one of several side by side.
    """

    title: str
    axes: tuple[str, str]
    series: Sequence[Series]
    n_colours: int
    is_ordered: bool = False
    is_map: bool = False
    is_small: bool = False
    has_legend: bool = True


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, the lengths [part] laid end to end, what it is compared with, an interval, and a remark."""

    name: str
    lengths: Sequence[float]
    baseline: float = np.nan
    interval: tuple[float, float] = (np.nan, np.nan)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars from top to bottom. `parts` names what they are made of: one column, or the parts of a whole (0-1)."""

    title: str
    parts: Sequence[str]
    bars: Sequence[Bar]
    baseline: str = ""
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """What a head predicts for a word: places in the sentence, from 0; `gold` and `predicted` are None for none."""

    word: int
    predicted: int | None
    gold: int | None
    weight: float
    is_correct: bool | None


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words and the links that are drawn between them; "…" stands for words that no link is near."""

    words: Sequence[str]
    links: Sequence[Link]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences from top to bottom."""

    title: str
    sentences: Sequence[Sentence]


Panel: TypeAlias = Heat | Chart | Bars | Sentences
