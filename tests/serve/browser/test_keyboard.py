"""This file tests that everything can be reached and used with the keyboard alone."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.serve.browser.addresses import PAGES
from tests.serve.browser.chrome import Browser

pytestmark = [pytest.mark.slow, pytest.mark.browser]

# A grid is one stop; its cells are reached with the arrow keys. Radio buttons of one name are one stop as well.
STOPS = """
const seen = (one) => one.checkVisibility({checkVisibilityCSS: true}) && one.tabIndex >= 0 && !one.disabled;
const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]";
const all = [...document.querySelectorAll(kinds)];
const stops = all.filter(seen).filter((one) => !(one.type === "radio" && !one.checked));
stops.forEach((one, index) => one.setAttribute("data-stop", index));
return stops.map((one) => one.outerHTML.slice(0, 120));
"""
FOCUS = "const one = document.activeElement; return [one.getAttribute('data-stop'), one.tagName]"
# Whether the element in focus, or what is drawn in it, looks other than before.
LOOKS = """
const look = (one) => [one, ...one.querySelectorAll("*")].map((part) => {
  const style = getComputedStyle(part);
  return [style.outlineStyle, style.outlineWidth, style.boxShadow, style.stroke, style.strokeWidth, style.fill,
    style.backgroundColor, style.textDecorationLine].join();
}).join("|");
"""
BEFORE = LOOKS + "window.before = [...document.querySelectorAll('[data-stop]')].map((one) => [one, look(one)]);"
SHOWS = LOOKS + "const one = document.activeElement; return new Map(window.before).get(one) !== look(one);"


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        ActionChains(browser.driver).send_keys(key).perform()


@pytest.mark.parametrize("page", PAGES)
def test_tab_reaches_everything_and_shows_where_it_is(browser: Browser, address: str, page: str) -> None:
    assert browser.visit(address + PAGES[page]) == 200
    stops = browser.run(STOPS)
    assert len(stops) > 3
    browser.run(BEFORE)
    reached, without_sign = set(), set()
    for _ in range(len(stops) + 5):
        press(browser, Keys.TAB)
        number, _ = browser.run(FOCUS)
        if number is not None:
            reached.add(int(number))
            if not browser.run(SHOWS):
                without_sign.add(stops[int(number)])
    assert [stops[number] for number in range(len(stops)) if number not in reached] == []
    assert without_sign == set()


def test_the_first_stop_skips_to_the_content(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small")
    press(browser, Keys.TAB, Keys.ENTER)
    assert browser.run("return document.activeElement.tagName") == "MAIN"


def test_arrows_move_in_the_grid_and_enter_opens_the_head(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small?question=heads/entropy")
    where = "return document.activeElement.getAttribute('aria-label')"
    browser.run("document.querySelector('figure.grid a[href]').focus()")
    assert browser.run(where).startswith("layer 0, head 0")
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert browser.run(where).startswith("layer 1, head 2")
    press(browser, Keys.ARROW_LEFT, Keys.ARROW_UP)
    assert browser.run(where).startswith("layer 0, head 1")
    press(browser, Keys.ARROW_UP)
    assert browser.run(where).startswith("layer 0, head 1"), "the grid has an edge"
    press(browser, Keys.ARROW_DOWN, Keys.ENTER)
    browser.wait(lambda: "/heads/1/1" in browser.driver.current_url)
    assert "layer 1, head 1" in browser.one("h1").text.lower()


def test_arrows_move_among_the_heads_of_the_sentence_view(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small/examples/3?layer=0&head=0")
    browser.run("document.querySelector('[data-grid] a[href]').focus()")
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    browser.wait(lambda: "layer=1&head=1" in browser.driver.current_url)
    browser.wait(lambda: "layer 1, head 1" in browser.one("h1").text.lower())
