"""A real headless Chromium, driven through the WebDriver protocol by a few requests to a local port."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab.running import until

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
LACKS = "" if CHROMIUM and DRIVER else "Chromium is not there: apt-get install chromium chromium-driver"
if LACKS and os.environ.get("CI"):
    raise RuntimeError(LACKS)
needs_chromium = pytest.mark.skipif(bool(LACKS), reason=LACKS or "Chromium is there")
PATIENCE_S = 180
KEYS = {
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Tab": "\ue004",
    "Right": "\ue014",
    "Down": "\ue015",
    "End": "\ue010",
    "PageDown": "\ue00f",
}
FLAGS = (
    "about:blank",
    "--headless=new",
    "--no-sandbox",  # it may run as root, and shows only pages of the tests
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # anything external fails to resolve
    "--proxy-server=http://127.0.0.1:9",
)
LOGGED = {"browser": "ALL", "performance": "ALL"}


@dataclass(frozen=True)
class Browser:
    """A window with one page in it."""

    session: str

    def open(self, file: Path, fragment: str = "") -> None:
        """Open a file from its top."""
        _post(f"{self.session}/url", {"url": "about:blank"})
        _post(f"{self.session}/url", {"url": f"{file.as_uri()}{fragment}"})

    def go(self, address: str) -> None:
        """Open an address of a server."""
        _post(f"{self.session}/url", {"url": address})

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script and return its result."""
        return _post(f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def texts(self, selector: str) -> list[str]:
        """The text of every element that matches."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent.trim())", selector
        )
        return found

    def text(self, selector: str) -> str:
        """The text of the one matching element, once it exists."""
        until(lambda: self.count(selector) == 1, f"one {selector}")
        (found,) = self.texts(selector)
        return found

    def count(self, selector: str) -> int:
        return len(self.texts(selector))

    def click(self, selector: str) -> None:
        found = _post(f"{self.session}/element", {"using": "css selector", "value": selector})
        _post(f"{self.session}/element/{next(iter(found.values()))}/click", {})

    def press(self, *names: str) -> None:
        """Press keys, named ones or the letters of a text, one after the other."""
        letters = [KEYS.get(name, name) for name in names]
        actions = [{"type": kind, "value": letter} for letter in letters for kind in ("keyDown", "keyUp")]
        _post(f"{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def focused(self) -> str:
        """The name of the focused element."""
        reported: str = self.run(
            "const on = document.activeElement; return on.getAttribute('aria-label') || on.id || on.tagName"
        )
        return reported

    def command(self, method: str, **parameters: object) -> Any:
        """Run a command of the DevTools protocol."""
        return _post(f"{self.session}/goog/cdp/execute", {"cmd": method, "params": parameters})

    def resize(self, width: int, height: int) -> None:
        _post(f"{self.session}/window/rect", {"width": width, "height": height})

    def prefer(self, scheme: str) -> None:
        """Set the preferred color scheme, `light` or `dark`."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, file: Path) -> None:
        """Save the whole page as a picture."""
        self.run("scrollTo(0, 0)")
        size = self.command("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        found = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        _save(file, found["data"])

    def window_picture(self, file: Path) -> None:
        """Save the visible part as a picture."""
        _save(file, self.command("Page.captureScreenshot")["data"])

    def print(self, file: Path) -> None:
        """Print to a PDF file."""
        _save(file, self.command("Page.printToPDF", printBackground=True)["data"])

    def complaints(self) -> list[str]:
        """Messages of the console since the last call."""
        return [entry["message"] for entry in _post(f"{self.session}/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """Addresses requested since the last call."""
        entries = _post(f"{self.session}/se/log", {"type": "performance"})
        reported = [json.loads(entry["message"])["message"] for entry in entries]
        return [one["params"]["request"]["url"] for one in reported if one["method"] == "Network.requestWillBeSent"]


def _save(file: Path, data: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(base64.b64decode(data))


@contextmanager
def browser(folder: Path, reachable: str = "") -> Iterator[Browser]:
    """Start a browser with its own profile that can reach one address or none, and end it whatever happens."""
    assert CHROMIUM
    assert DRIVER
    port = _free_port()
    words = [DRIVER, f"--port={port}", "--allowed-ips=127.0.0.1"]
    home = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    with (folder / "driver.log").open("wb") as log:
        driver = subprocess.Popen(words, stdout=log, stderr=log, env=home)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(address, driver)
        started = _post(f"{address}/session", {"capabilities": {"alwaysMatch": _wanted(folder, reachable)}})
        session = f"{address}/session/{started['sessionId']}"
        try:
            yield Browser(session)
        finally:
            _ask(session, "DELETE")
    finally:
        driver.terminate()
        driver.wait(PATIENCE_S)


def _wanted(folder: Path, reachable: str) -> dict[str, Any]:
    own = (f"--proxy-bypass-list=<-loopback>;{reachable}", f"--user-data-dir={folder / 'profile'}")
    options = {"binary": CHROMIUM, "args": [*FLAGS, *own, "--window-size=1280,900"]}
    return {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": LOGGED}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait(address: str, driver: subprocess.Popen[bytes]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        assert driver.poll() is None, "chromedriver ended at once"
        try:
            if _ask(f"{address}/status", "GET")["ready"]:
                return
        except urllib.error.URLError:
            time.sleep(0.1)
    raise TimeoutError("chromedriver does not answer")


def _post(address: str, body: object) -> Any:
    return _ask(address, "POST", body)


def _ask(address: str, method: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310 (a port of this machine)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from None
