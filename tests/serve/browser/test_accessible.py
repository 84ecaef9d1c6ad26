"""This file tests that pages can be read with a screen reader and by weak eyes: names, headings, contrast."""

from pathlib import Path

import pytest

from tests.serve.browser.addresses import PAGES
from tests.serve.browser.chrome import Browser

pytestmark = [pytest.mark.slow, pytest.mark.browser]

LACKS = (Path(__file__).parent / "accessible.js").read_text(encoding="utf-8")
BAD = """<!doctype html><title> </title><main><h1>One</h1><h3>Three</h3><input><a href="/"></a><svg></svg>
<p id="p">fine</p><p id="p" style="color:#999;background:#fff">faint</p><table><tr><td>1</table></main>"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_names_headings_in_order_and_contrast(browser: Browser, address: str, page: str, dark: bool) -> None:
    browser.look(dark=dark)
    assert browser.visit(address + PAGES[page]) == 200
    assert "\n".join(browser.run(LACKS)) == ""


def test_the_script_finds_what_a_bad_page_lacks(browser: Browser) -> None:
    browser.run("document.documentElement.innerHTML = arguments[0]", BAD)
    found = "\n".join(browser.run(LACKS))
    for lack in (
        "no language",
        "no title",
        "no label",
        "no name",
        "a picture",
        "h3 after h1",
        "id p twice",
        "table without headings",
        "contrast 2.8",
    ):
        assert lack in found, lack
    assert "fine" not in found
