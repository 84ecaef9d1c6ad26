"""This file drives Debian's Chromium and writes down what pages do: errors on the console, requests, dialogs."""

import base64
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
# Without these Chromium asks hosts of its maker, which tests must neither need nor reach.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--force-color-profile=srgb",
    "--window-size=1280,900",
)
WAIT = 60


class Browser:
    """One Chromium. `driver` is selenium's; what pages said and asked for is taken since the last `forget`."""

    def __init__(self, folder: Path, *, scripts: bool = True) -> None:
        """`folder` becomes its profile; without `scripts` pages run no JavaScript."""
        options = Options()
        options.binary_location = str(BROWSER)
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # A dialog must stay where it is, so that a test can see it.
        options.unhandled_prompt_behavior = "ignore"
        prefs: dict[str, Any] = {"download.default_directory": str(folder / "downloads")}
        if not scripts:
            prefs["profile.managed_default_content_settings.javascript"] = 2
        options.add_experimental_option("prefs", prefs)
        self._scripts = scripts
        self.driver = webdriver.Chrome(options, Service(str(DRIVER)))
        self.driver.set_page_load_timeout(WAIT)
        self._logged: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the browser and its driver."""
        self.driver.quit()

    def visit(self, address: str) -> int:
        """Open the address and wait until it is loaded and no request is under way; the status of the answer."""
        self.driver.get(address)
        self.settle()
        return int(self.run("return performance.getEntriesByType('navigation')[0].responseStatus"))

    def settle(self) -> None:
        """Wait until the page is loaded, what it fetches has come, and, with scripts, no answer is being computed."""
        self.wait(lambda: self.driver.execute_script("return document.readyState") == "complete")
        self.wait(lambda: not self._under_way())
        if self._scripts:
            self.wait(lambda: not self.all("[data-again]"))

    def wait(self, holds: Any) -> Any:
        """What `holds` returns, as soon as it is true; it is an error if it never is."""
        # A page that changes by script replaces elements while they are read.
        stale = [StaleElementReferenceException]
        return WebDriverWait(self.driver, WAIT, 0.05, stale).until(lambda _: holds())

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """How wide the window is, in CSS pixels, and which colours the person prefers."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        wish = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wish]})

    def forget(self) -> None:
        """Begin to write down anew."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self._read()
        self._logged.clear()

    def console(self) -> list[str]:
        """What the console holds of warnings and errors since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """Every address that pages asked for, in order; `data:` and `blob:` are none."""
        sent = [entry["params"]["request"]["url"] for entry in self._events("Network.requestWillBeSent")]
        return [url for url in sent if urlsplit(url).scheme not in ("data", "blob", "about", "chrome")]

    def dialog(self) -> str | None:
        """The text of the dialog that is open."""
        try:
            return str(self.driver.switch_to.alert.text)
        except NoAlertPresentException:
            return None

    def all(self, selector: str) -> list[WebElement]:
        """Every element that a CSS selector finds."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first such element, waited for."""
        found: list[WebElement] = self.wait(lambda: self.all(selector))
        return found[0]

    def text(self) -> str:
        """What a person can read on the page."""
        return self.one("body").text

    def run(self, script: str, *arguments: object) -> Any:
        """What the JavaScript returns."""
        return self.driver.execute_script(script, *arguments)

    def click(self, element: WebElement) -> None:
        """Click as a person does, after scrolling to it, and wait for what follows."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        self.settle()

    def shot(self, place: Path, *, whole: bool = True) -> None:
        """A picture of the page, from top to bottom if it is `whole`."""
        size = self.run("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        asked = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], 6000), "scale": 1}
        extra: Mapping[str, Any] = {"captureBeyondViewport": True, "clip": asked} if whole else {}
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", **extra})
        place.write_bytes(base64.b64decode(picture["data"]))

    def _under_way(self) -> set[str]:
        sent = [entry["params"] for entry in self._events("Network.requestWillBeSent")]
        # What an earlier page asked for may never be said to have ended.
        page = next((one["loaderId"] for one in reversed(sent) if one.get("type") == "Document"), None)
        begun = {one["requestId"] for one in sent if one["loaderId"] == page}
        ended = self._events("Network.loadingFinished", "Network.loadingFailed")
        return begun - {entry["params"]["requestId"] for entry in ended}

    def _events(self, *methods: str) -> Sequence[dict[str, Any]]:
        self._read()
        return [entry for entry in self._logged if entry["method"] in methods]

    def _read(self) -> None:
        self._logged += [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]


def foreign(requests: Sequence[str], address: str) -> list[str]:
    """The requests that left the service at this address."""
    return [url for url in requests if not url.startswith(f"{address}/")]
