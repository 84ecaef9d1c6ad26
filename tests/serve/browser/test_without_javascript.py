"""This file tests that pages say all they have to say to a browser that runs no JavaScript."""

import pytest
from selenium.webdriver.support.select import Select

from tests.serve.browser.addresses import PAGES
from tests.serve.browser.chrome import Browser, foreign

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_stands_without_scripts(plain: Browser, address: str, page: str) -> None:
    plain.forget()
    assert plain.visit(address + PAGES[page]) == 200
    assert plain.one("main h1").text
    assert not [url for url in plain.requests() if url.endswith(".js")], "this browser runs scripts"
    assert foreign(plain.requests(), address) == []


def test_the_grid_is_painted_by_another_question_and_its_cells_lead_on(plain: Browser, address: str) -> None:
    plain.visit(f"{address}/stores/small")
    choice = Select(plain.one("main select[name=question]"))
    wanted = next(one for one in choice.options if "distance" in one.get_attribute("value"))
    value = wanted.get_attribute("value")
    choice.select_by_visible_text(wanted.text)
    plain.click(plain.one("main form button"))
    assert f"question={value.replace('/', '%2F')}" in plain.driver.current_url
    cells = plain.all("figure.grid a[href]")
    assert len(cells) == 12
    assert "distance" in plain.one("main").text
    plain.click(cells[6])
    assert "layer 1, head 2" in plain.one("h1").text.lower()


def test_a_sentence_is_searched_and_its_view_is_changed_by_links(plain: Browser, address: str) -> None:
    plain.visit(f"{address}/stores/small/examples")
    plain.one("main input[name=text]").send_keys("ladder")
    plain.click(plain.one("main form button"))
    found = plain.all("main td.words a")
    assert found
    assert all("ladder" in one.text for one in found)
    plain.click(found[0])
    assert "ladder" in plain.one("main").text
    assert plain.all("svg[data-sentence] path.line")
    for words, marks in (("Matrix", "svg[data-sentence] rect"), ("Words", "svg[data-sentence] rect")):
        plain.click(plain.driver.find_element("link text", words))
        assert plain.all(marks)
    assert "level=word" in plain.driver.current_url
    assert "view=matrix" in plain.driver.current_url


def test_a_statement_is_answered_on_a_page(plain: Browser, address: str) -> None:
    plain.visit(f"{address}/stores/small/sql")
    box = plain.one("main textarea[name=sql]")
    box.clear()
    box.send_keys("select layer, count(*) as n from heads group by layer order by layer")
    plain.click(plain.one("main form button:not([type=button])"))
    cells = [[one.text for one in row.find_elements("css selector", "td")] for row in plain.all("main tbody tr")]
    assert [row for row in cells if len(row) == 2 and row[1] == "4"] == [["0", "4"], ["1", "4"], ["2", "4"]]
    assert "select" in plain.one("main textarea[name=sql]").get_property("value")


def test_two_stores_are_compared_on_a_page(plain: Browser, address: str) -> None:
    plain.visit(f"{address}/compare?a=small&b=other")
    assert "Small sentences" in plain.text() or "small" in plain.text()
    assert len(plain.all("main svg, main table")) >= 1
