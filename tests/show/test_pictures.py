"""This file proves that SVG and HTML are well formed, complete and harmless whatever the texts are."""

import base64
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.show.colour import web
from attnstore.show.heatmap import grid_svg, map_svg
from attnstore.show.lines import lines_svg
from attnstore.show.markup import Markup, escape, heading, paragraphs, preformatted
from attnstore.show.page import page, table_html

NAN = float("nan")
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    '"><script>alert(1)</script>',
    "\x1b[31m\x00",
    "]]>",
    "&amp;",
    "שלום",
    "日本語",
    "' onload='x",
    "\u202e\ufffe",
]


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def hovers(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}title")]


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}text")]


class Tags(HTMLParser):
    """Collects the tags, attributes and text of a page, and checks that tags close in order."""

    VOID = ("meta", "rect", "path", "image")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_grid_has_a_cell_with_its_number_for_each_head() -> None:
    svg = grid_svg([[0.1, 0.5, 0.9], [NAN, 0.7, 0.00001]], title="heads/entropy", unit="nats")
    assert hovers(svg) == [
        "layer 0, head 0: 0.100 nats",
        "layer 0, head 1: 0.500 nats",
        "layer 0, head 2: 0.900 nats",
        "layer 1, head 0: no value",
        "layer 1, head 1: 0.700 nats",
        "layer 1, head 2: 1e-05 nats",
    ]
    cells = [element for element in parsed(svg).iter(f"{SVG}rect") if element.find(f"{SVG}title") is not None]
    assert cells[2].get("fill") == web(1)
    assert cells[5].get("fill") == web(0)
    assert cells[3].get("fill") is None
    assert cells[3].get("class") == "attn-n"


def test_a_grid_tells_its_ends_to_those_who_cannot_see_it() -> None:
    root = parsed(grid_svg([[0.1, 0.9]], title="heads/entropy", unit="nats"))
    assert root.get("role") == "img"
    assert root.get("aria-label") == (
        "heads/entropy. Lowest 0.100 nats at layer 0, head 0; highest 0.900 nats at layer 0, head 1"
    )
    assert "0.100" in texts(grid_svg([[0.1, 0.9]], title="t", unit="nats"))
    assert "0.900 nats" in texts(grid_svg([[0.1, 0.9]], title="t", unit="nats"))


def test_a_grid_without_values_is_still_a_picture() -> None:
    for values in ([[NAN]], np.zeros((0, 4)), np.zeros((3, 0))):
        svg = grid_svg(values, title="t", unit="u")
        assert "no values" in texts(svg)
        assert (parsed(svg).get("aria-label") or "").endswith("No values")
    assert "layer 0, head 0: inf u" in hovers(grid_svg([[float("inf"), 1.0]], title="t", unit="u"))


def test_a_map_has_its_tokens_at_both_edges() -> None:
    svg = map_svg([[0.25, 0.75]], ["the"], ["quick", "fox"], title="layer 7, head 9")
    assert hovers(svg) == ["query 0 the, key 0 quick: 0.250 weight", "query 0 the, key 1 fox: 0.750 weight"]
    assert {"the", "quick", "fox", "query ↓", "key →"} <= set(texts(svg))


def test_a_large_map_is_an_image_of_the_same_colours() -> None:
    values = np.zeros((200, 100))
    values[3, 4] = 1.0
    values[5, 6] = NAN
    svg = map_svg(values, ["q"] * 200, ["k"] * 100, title="long")
    assert hovers(svg) == []
    image = next(parsed(svg).iter(f"{SVG}image"))
    data = base64.b64decode((image.get("href") or "").removeprefix("data:image/png;base64,"))
    assert struct.unpack(">II", data[16:24]) == (100, 200)
    (length,) = struct.unpack(">I", data[33:37])
    assert data[37:41] == b"IDAT"
    lines = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8).reshape(200, 401)
    pixels = lines[:, 1:].reshape(200, 100, 4)
    assert "#{:02x}{:02x}{:02x}".format(*pixels[3, 4, :3]) == web(1)
    assert "#{:02x}{:02x}{:02x}".format(*pixels[0, 0, :3]) == web(0)
    assert pixels[5, 6].tolist() == [0, 0, 0, 0]


def test_labels_of_a_crowded_picture_do_not_overlap() -> None:
    svg = grid_svg(np.random.default_rng(0).random((100, 100)), title="t", unit="u")
    numbers = [text for text in parsed(svg).iter(f"{SVG}text") if text.get("text-anchor") == "middle"]
    places = [float(text.get("x") or 0) for text in numbers]
    # Two digits of the token font take 13.4 pixels.
    assert min(np.diff(places)) >= 13.4


def test_lines_are_as_opaque_as_the_weight_and_faint_ones_are_left_out() -> None:
    svg = lines_svg([[0.25, 0.75], [0.004, NAN]], ["a", "b"], ["a", "b"])
    lines = list(parsed(svg).iter(f"{SVG}path"))
    assert [line.get("stroke-opacity") for line in lines] == ["0.250", "0.750"]
    assert hovers(svg) == ["a → a: 0.250", "a → b: 0.750"]
    assert texts(svg) == ["query", "key", "a", "b", "a", "b"]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(BadInput, match="300 tokens on a side; expected at most 256"):
        lines_svg(np.zeros((300, 2)), ["a"] * 300, ["b"] * 2)
    with pytest.raises(BadInput, match="two dimensions, 1 x 1"):
        map_svg([[1.0, 2.0]], ["a"], ["b"], title="t")
    with pytest.raises(BadInput, match="two dimensions"):
        grid_svg([1.0], title="t", unit="u")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts_in_every_picture(text: str) -> None:
    weights = [[0.5, 0.5], [0.2, 0.8]]
    pictures = [
        grid_svg(weights, title=text, unit=text),
        map_svg(weights, [text, "b"], [text, "b"], title=text),
        lines_svg(weights, [text, "b"], [text, "b"]),
    ]
    for svg in pictures:
        names = {element.tag.removeprefix(SVG) for element in parsed(svg).iter()}
        assert names <= {"svg", "style", "rect", "path", "text", "title"}
        assert not any(name.startswith("on") for element in parsed(svg).iter() for name in element.attrib)
    tags = Tags(page(text, [text, heading(text), preformatted(text), table_html(pa.table({text: [text]})), *pictures]))
    assert "script" not in tags.tags
    assert not any(name.startswith("on") for name in tags.attributes)


@given(st.text(max_size=40))
def test_any_text_can_be_a_title_a_token_and_a_cell(text: str) -> None:
    for svg in (grid_svg([[1.0]], title=text, unit=text), map_svg([[1.0]], [text], [text], title=text)):
        assert parsed(svg).tag == f"{SVG}svg"
    cell = text if text.isprintable() else "x"
    assert set(Tags(page(text, [text, table_html(pa.table({"a": [cell]}))])).tags) <= {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "h1",
            "p",
            "div",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
        )
    }


def test_a_page_needs_no_script_and_no_network() -> None:
    html = page("t", [grid_svg([[1.0, 2.0]], title="t", unit="u"), table_html(pa.table({"a": [1]}))])
    tags = Tags(html)
    assert {"script", "link", "iframe", "img"}.isdisjoint(tags.tags)
    assert "default-src 'none'" in html
    assert re.findall("https?://[^\"'<> ]*", html) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme: dark" in html
    assert "figure" in tags.tags
    assert html.startswith("<!doctype html>")


def test_only_finished_markup_stands_as_it_is() -> None:
    assert "<p>&lt;b&gt;bold&lt;/b&gt;</p>" in page("t", ["<b>bold</b>"])
    assert "<b>bold</b>" in page("t", [Markup("<b>bold</b>")])
    joined = heading("a") + "<script>"
    assert "<script>" not in page("t", [joined])
    assert escape("a<b>\x1b'\"&") == "a&lt;b&gt;\\x1b&#x27;&quot;&amp;"
    assert paragraphs("one\n\n two ") == "<p>one</p>\n<p>two</p>"
    assert preformatted("a\n\tb < c") == "<pre>a\n    b &lt; c</pre>"


def test_a_table_on_a_page_says_what_it_left_out() -> None:
    html = table_html(pa.table({"layer": [0, 1, 2], "form": ["a", None, "c"]}), max_rows=2)
    assert '<th class="number" scope="col">layer</th><th scope="col">form</th>' in html
    assert '<tr><td class="number">1</td><td>-</td></tr>' in html
    assert "… 1 of 3 rows left out" in html
    assert "(no rows)" in table_html(pa.table({"a": pa.array([], pa.int8())}))
    assert "(no columns)" in table_html(pa.table({}))
