"""This file tests what people do on the pages: ask, fetch, go back, look at clusters, copy the way to a state."""

import csv
import io
import urllib.request

import pytest

from tests.serve.browser.chrome import Browser, foreign

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def test_an_answer_of_the_sql_box_can_be_fetched(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small/sql")
    box = browser.one("main textarea[name=sql]")
    box.clear()
    box.send_keys("select word, form from words where example = 0 order by word")
    browser.click(browser.one("main form button:not([type=button])"))
    assert "sql=select" in browser.driver.current_url
    assert "farmer" in browser.one("main table").text
    ways = {
        one.text: one.get_attribute("href") for one in browser.all("main a") if one.text in ("CSV", "JSON", "Arrow")
    }
    assert set(ways) == {"CSV", "JSON", "Arrow"}
    for words, first in (("CSV", b"word,form"), ("JSON", b"{"), ("Arrow", b"\xff\xff\xff\xff")):
        with urllib.request.urlopen(ways[words]) as answer:
            assert answer.read().startswith(first), words
    with urllib.request.urlopen(ways["CSV"]) as answer:
        rows = list(csv.DictReader(io.TextIOWrapper(answer, "utf-8")))
    assert rows[1] == {"word": "1", "form": "farmer"}
    assert "\n".join(browser.console()) == ""
    assert foreign(browser.requests(), address) == []


def test_an_example_of_the_sql_box_is_one_click_and_has_an_answer(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small/sql")
    browser.click(browser.driver.find_element("partial link text", "governors"))
    assert "select" in browser.one("main textarea[name=sql]").get_property("value").lower()
    assert "farmer" in browser.one("main table tbody").text


def test_a_statement_that_is_refused_says_why_and_keeps_the_text(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small/sql?sql=copy%20heads%20to%20'x.csv'")
    assert browser.one("main textarea[name=sql]").get_property("value") == "copy heads to 'x.csv'"
    assert browser.all("main [role=alert], main .missing")


def test_the_back_button_restores_each_state_of_the_sentence_view(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small/examples/0?layer=0&head=0")
    states = [(browser.driver.current_url, browser.one("h1").text, len(browser.all("svg[data-sentence] path.line")))]
    for way in ("[data-grid] a[data-row='1'][data-column='2']", "a[data-choice=view]:not([aria-current])"):
        before = browser.driver.current_url
        browser.click(browser.one(way))
        browser.wait(lambda before=before: browser.driver.current_url != before)
        browser.settle()
        lines = len(browser.all("svg[data-sentence] path.line"))
        states.append((browser.driver.current_url, browser.one("h1").text, lines))
    assert states[1][1] == "Layer 1, head 2"
    assert states[2][2] == 0, "the matrix has no lines"
    for url, title, lines in reversed(states[:-1]):
        browser.driver.back()
        browser.wait(lambda url=url: browser.driver.current_url == url)
        browser.wait(lambda title=title: browser.one("h1").text == title)
        browser.wait(lambda lines=lines: len(browser.all("svg[data-sentence] path.line")) == lines)
    # The address alone brings the state back, as in a message to somebody else.
    assert browser.visit(states[2][0]) == 200
    assert browser.one("h1").text == states[2][1]
    assert not browser.all("svg[data-sentence] path.line")


def test_the_clusters_are_drawn_and_a_point_leads_to_its_head(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small/clusters")
    points = browser.all("main svg a[href]")
    assert len(points) == 12
    assert "/heads/" in browser.run("return arguments[0].href.baseVal", points[5])
    browser.click(points[5])
    assert "/heads/" in browser.driver.current_url
    assert browser.one("h1").text.startswith("Layer ")


def test_a_question_is_asked_with_its_parameters_and_the_form_keeps_them(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/stores/small/questions/relations/best?relation=obj")
    assert browser.one("main [name=relation]").get_property("value") == "obj"
    rows = browser.all("main tbody tr")
    assert any("obj" in row.text and "0.667" in row.text for row in rows)
    assert "snapshot 1" in browser.one("main").text
