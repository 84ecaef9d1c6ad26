"""Fixtures of the tests in a browser: services over small stores, and Chromium where it is installed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.browser.chrome import BROWSER, DRIVER, Browser
from tests.serve.browser.stores import make_hostile, make_small
from tests.serve.running import serving


@pytest.fixture(scope="session")
def chromium() -> None:
    """Skips where Debian's packages chromium and chromium-driver are not installed."""
    pytest.importorskip("selenium")
    if not (BROWSER and DRIVER):
        pytest.skip("no browser here: install chromium and chromium-driver (as root: make browser)")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of short sentences in which one head finds direct objects."""
    return make_small(tmp_path_factory.mktemp("small") / "made")


@pytest.fixture(scope="session")
def address(small: Path, chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service of two stores, `small` and `other`."""
    other = make_small(tmp_path_factory.mktemp("other") / "made", seed=2, title="Other sentences")
    with serving(f"small={small}", f"other={other}", "--workers", "2") as found:
        yield found.url


@pytest.fixture(scope="session")
def hostile(chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service of the hostile store, `hostile`, twice, so that it can be compared."""
    store = make_hostile(tmp_path_factory.mktemp("hostile") / "made")
    with serving(f"hostile={store}", f"again={store}", "--workers", "2") as found:
        yield found.url


@pytest.fixture(scope="session")
def chrome(chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def browser(chrome: Browser) -> Browser:
    """The browser, with nothing written down yet: a wide window and light colours."""
    chrome.look()
    chrome.forget()
    return chrome


@pytest.fixture(scope="session")
def plain(chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that runs no JavaScript."""
    made = Browser(tmp_path_factory.mktemp("plain"), scripts=False)
    yield made
    made.close()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of screenshots, ATTNSTORE_SCREENSHOTS where one wants to look at them."""
    chosen = os.environ.get("ATTNSTORE_SCREENSHOTS")
    place = Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")
    place.mkdir(parents=True, exist_ok=True)
    return place
