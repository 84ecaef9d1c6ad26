"""This file tests the page on which a person types the token in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.browser.chrome import Browser, foreign
from tests.serve.running import serving

pytestmark = [pytest.mark.slow, pytest.mark.browser]

TOKEN = "open-sesame"


@pytest.fixture(scope="module")
def guarded(small: Path, chromium: None) -> Iterator[str]:
    """A service that asks for a token."""
    with serving(f"small={small}", "--workers", "1", environment={"ATTNSTORE_TOKEN": TOKEN}) as found:
        yield found.url


def send(browser: Browser, token: str) -> None:
    browser.one("input[name=token]").send_keys(token)
    browser.click(browser.one("main form button"))


def test_a_token_leads_to_the_page_that_was_asked_for(browser: Browser, guarded: str) -> None:
    browser.driver.delete_all_cookies()
    browser.visit(f"{guarded}/stores/small/examples?text=boat")
    assert "/login" in browser.driver.current_url
    assert "farmer" not in browser.text()
    send(browser, "wrong")
    assert "not the token" in browser.one("[role=alert]").text
    assert "farmer" not in browser.text()
    send(browser, TOKEN)
    assert browser.driver.current_url == f"{guarded}/stores/small/examples?text=boat"
    assert "boat" in browser.one("main").text
    # What the browser keeps says nothing about the token, and scripts cannot read it.
    cookies = browser.driver.get_cookies()
    assert [(one["httpOnly"], one["sameSite"]) for one in cookies] == [(True, "Strict")]
    assert TOKEN not in cookies[0]["value"]
    browser.visit(f"{guarded}/stores/small")
    assert browser.driver.current_url == f"{guarded}/stores/small"
    assert foreign(browser.requests(), guarded) == []


def test_the_page_for_the_token_can_be_used_with_the_keyboard_alone(browser: Browser, guarded: str) -> None:
    browser.driver.delete_all_cookies()
    browser.visit(f"{guarded}/stores/small")
    browser.driver.switch_to.active_element.send_keys(f"{TOKEN}\n")
    browser.wait(lambda: browser.driver.current_url == f"{guarded}/stores/small")


@pytest.mark.parametrize("to", ["//elsewhere.example/x", "https://elsewhere.example/", "/\\elsewhere.example"])
def test_a_token_leads_nowhere_else(browser: Browser, guarded: str, to: str) -> None:
    browser.driver.delete_all_cookies()
    browser.visit(f"{guarded}/login?to={to}")
    send(browser, TOKEN)
    assert browser.driver.current_url.startswith(f"{guarded}/stores/")
    assert foreign(browser.requests(), guarded) == []
