"""The pages of a server in a real browser: from the token to the report and the history, and nothing from elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import ROOT
from tests.lab.running import until
from tests.report.browser import Browser, browser, needs_chromium
from tests.serve.server import TOKEN, Running

pytestmark = needs_chromium
OUT = ROOT / "out" / "serve"


@pytest.fixture(scope="module")
def chromium(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium"), f"127.0.0.1:{server.port}") as opened:
        yield opened


def log_in(shown: Browser) -> None:
    """Type the token where the cursor is when the page has come."""
    assert shown.text("label") == "Token"
    until(lambda: shown.focused() == "token", "the cursor is in the field")
    shown.press(*TOKEN)
    until(
        lambda: bool(shown.run("return document.getElementById('token').value === arguments[0]", TOKEN)), "it is typed"
    )
    shown.press("Enter")


def quiet(shown: Browser, server: Running) -> None:
    """Check that the browser has nothing to complain of, and asked this server only."""
    assert shown.complaints() == []
    asked = [one for one in shown.requests() if not one.startswith(("data:", "about:"))]
    assert [one for one in asked if not one.startswith(f"http://127.0.0.1:{server.port}/")] == []


def test_from_the_token_to_report_and_history(chromium: Browser, server: Running) -> None:
    address = f"http://127.0.0.1:{server.port}"
    chromium.prefer("light")
    chromium.complaints()
    chromium.requests()
    chromium.go(f"{address}/report")
    log_in(chromium)
    assert chromium.text("#verdict-title") == "small 2 fail"
    assert chromium.count("#changes tbody tr") == 5
    chromium.picture(OUT / "overview-light.png")
    chromium.prefer("dark")
    chromium.picture(OUT / "overview-dark.png")
    chromium.click(".open")
    assert "2 fail of 2 causes" in chromium.text("#verdict-title")
    assert chromium.count(".cause") == 2
    chromium.click('a[href="/#runs"]')
    assert chromium.count("#runs tbody tr") == 1
    chromium.click("#runs tbody a")
    assert "2 fail of 2 causes" in chromium.text("#verdict-title")
    chromium.go(f"{address}/")
    assert chromium.run("return document.cookie") == "", "no script reads the session"
    chromium.click(".top button")
    assert chromium.text("label") == "Token"
    chromium.go(f"{address}/runs/latest")
    assert chromium.text("label") == "Token"
    quiet(chromium, server)


def test_a_narrow_window_needs_no_scrolling_sideways(chromium: Browser, server: Running, tmp_path: Path) -> None:
    chromium.go(f"http://127.0.0.1:{server.port}/login")
    log_in(chromium)
    chromium.text("#verdict-title")
    chromium.resize(400, 800)
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    chromium.window_picture(tmp_path / "narrow.png")
    assert chromium.run("return [...document.querySelectorAll('th')].every((one) => one.scope)")
    assert chromium.run(
        "return [...document.querySelectorAll('section')].every((one) => one.ariaLabelledByElements.length)"
    )
    chromium.resize(1280, 900)
