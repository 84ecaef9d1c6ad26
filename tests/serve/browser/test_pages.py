"""This file tests that every page loads in a browser: wide and narrow, light and dark, with nothing from elsewhere."""

from pathlib import Path

import pytest

from tests.serve.browser.addresses import PAGES
from tests.serve.browser.chrome import Browser, foreign

pytestmark = [pytest.mark.slow, pytest.mark.browser]

OVERFLOW = """
const scrolls = (one) => one && one !== document.body
  && (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
const hides = (one) => scrolls(one.parentElement);
const wide = document.documentElement.clientWidth;
return document.documentElement.scrollWidth <= wide ? [] : [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > wide + 1 && !hides(one))
  .map((one) => `${one.tagName}.${one.getAttribute("class")} to ${one.getBoundingClientRect().right}`).slice(0, 5)
  .concat(`document ${document.documentElement.scrollWidth} > ${wide}`);
"""


@pytest.mark.parametrize("page", PAGES)
def test_every_page_loads_without_an_error_and_asks_nobody_else(
    browser: Browser, address: str, pictures: Path, page: str
) -> None:
    for width in (1280, 390):
        for dark in (False, True):
            browser.look(width=width, dark=dark)
            assert browser.visit(address + PAGES[page]) == 200
            browser.shot(pictures / f"{page}-{width}-{'dark' if dark else 'light'}.png")
            assert "\n".join(browser.run(OVERFLOW)) == "", f"wider than a window of {width} px"
    assert "\n".join(browser.console()) == ""
    assert foreign(browser.requests(), address) == []
    assert len(browser.requests()) >= 4
    assert browser.all("main h1"), "the page has no heading"
