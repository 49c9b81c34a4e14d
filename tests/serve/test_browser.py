"""The pages of a server in a real browser: from the token to the report and the history, without external requests."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest

from netkit.facts import Observation, serial
from tests.command import ROOT, run
from tests.lab.running import until
from tests.report.browser import Browser, browser, needs_chromium
from tests.serve.server import TOKEN, Running, serving

pytestmark = needs_chromium
OUT = ROOT / "out" / "serve"
WIDE = """return [...document.querySelectorAll("main *, header *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5 || one.scrollWidth > one.clientWidth + 1)
    .filter((one) => one.getClientRects().length && one.clientWidth)
    .map((one) => one.outerHTML.slice(0, 80))"""
SMALL = """return [...document.querySelectorAll("nav a, main a, main summary, button")]
    .filter((one) => one.getClientRects().length && one.getBoundingClientRect().height < 40)
    .map((one) => one.outerHTML.slice(0, 80))"""
AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


@pytest.fixture(scope="module")
def chromium(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium"), f"127.0.0.1:{server.port}") as opened:
        yield opened


def log_in(shown: Browser) -> None:
    """Type the token into the focused field of the login page."""
    assert shown.text("label") == "Token"
    until(lambda: shown.focused() == "token", "the cursor is in the field")
    shown.press(*TOKEN)
    until(
        lambda: bool(shown.run("return document.getElementById('token').value === arguments[0]", TOKEN)), "it is typed"
    )
    shown.press("Enter")
    until(lambda: shown.count("#token") == 0, "the page after it has come")


def quiet(shown: Browser, server: Running) -> None:
    """Check that the browser logged nothing, and requested only this server."""
    assert shown.complaints() == []
    asked = [one for one in shown.requests() if not one.startswith(("data:", "about:", "chrome:"))]
    assert [one for one in asked if not one.startswith(f"http://127.0.0.1:{server.port}/")] == []


def test_from_the_token_to_report_and_history(chromium: Browser, server: Running) -> None:
    address = f"http://127.0.0.1:{server.port}"
    chromium.prefer("light")
    chromium.complaints()
    chromium.requests()
    chromium.go(f"{address}/report")
    log_in(chromium)
    assert chromium.text("#verdict-title") == "small 2 causes open, 3 devices not reached"
    assert chromium.count(".open-cause") == 2
    assert chromium.count("#unreached li") == 3
    chromium.picture(OUT / "overview-light.png")
    chromium.prefer("dark")
    chromium.picture(OUT / "overview-dark.png")
    chromium.click("#verdict .open")
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


def test_the_page_fits_a_phone(chromium: Browser, server: Running) -> None:
    chromium.go(f"http://127.0.0.1:{server.port}/login")
    log_in(chromium)
    chromium.text("#verdict-title")
    for scheme in ("light", "dark"):
        chromium.prefer(scheme)
        chromium.command("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
        assert chromium.run("return [innerWidth, document.documentElement.scrollWidth]") == [360, 360]
        assert chromium.run(WIDE) == [], "whatever is wider than the window is cut"
        assert chromium.run(SMALL) == [], "what is smaller than a finger cannot be tapped"
        chromium.picture(OUT / f"overview-phone-{scheme}.png")
    chromium.command("Emulation.clearDeviceMetricsOverride")
    assert chromium.run("return [...document.querySelectorAll('th')].every((one) => one.scope)")
    assert chromium.run(
        "return [...document.querySelectorAll('section')].every((one) => one.ariaLabelledByElements.length)"
    )


def judged_again(server: Running, fabric: Path, snapshot: Path) -> None:
    """Judge a snapshot from the command line, into the store of a server."""
    words = ("check", "--fabric", str(fabric), "--from", str(snapshot), "--store")
    done = run(*words, NETKIT_STATE_DIR=str(server.state), NETKIT_STORE="")
    assert done.returncode == 4, done.stderr


def test_the_page_loads_news_and_keeps_the_scroll_position(places: tuple[Path, Path], tmp_path: Path) -> None:
    fabric, found, began_s = places[0], serial.read(places[1]), time.time()
    file, again = tmp_path / "first.json", tmp_path / "again.json"
    file.write_bytes(serial.dump(replace(found, taken_s=began_s - 600)))
    lost = {**found.devices, "leaf02": Observation("leaf02", "nvue", failure="no route to host")}
    again.write_bytes(serial.dump(replace(found, taken_s=began_s, devices=lost)))
    with serving(fabric, tmp_path / "state", "--from", file, "--every=1d") as server:
        server.await_run()
        with browser(tmp_path, f"127.0.0.1:{server.port}") as shown:
            shown.complaints()
            shown.requests()
            shown.go(f"http://127.0.0.1:{server.port}/")
            log_in(shown)
            shown.text("#verdict-title")
            shown.resize(900, 500)
            shown.click(".open-cause summary")
            shown.run("scrollTo(0, 300); window.kept = document.querySelector('.open-cause details')")
            place = "return document.getElementById('deploys').getBoundingClientRect().top"
            judged_again(server, fabric, again)
            shown.run(f"document.getElementById('deploys').scrollIntoView(); {AGAIN}")
            before = shown.run(place)
            until(
                lambda: shown.text("#verdict-title") == "small 2 causes open, 4 devices not reached", "it is taken up"
            )
            assert shown.run(place) == pytest.approx(before, abs=1), "nothing moves under the reader"
            assert shown.run("return window.kept.isConnected && window.kept.open"), "what is unfolded stays so"
            assert shown.run("return document.title") == "small: 2 causes open, 4 devices not reached"
            reported = {one.split()[1]: one for one in shown.texts(".open-cause")}
            assert [where for where, text in reported.items() if "Not judged by the latest run" in text] == [
                "leaf02:swp33s0"
            ]
            assert [where for where, text in reported.items() if "new" in text.split()] == []
            assert shown.run("return document.getElementById('unrefreshed').hidden")
            quiet(shown, server)
            server.end()
            shown.run(AGAIN)
            until(lambda: shown.text("#unrefreshed").startswith("Not refreshed since"), "silence is not health")


def fill(shown: Browser, **fields: str) -> None:
    """Type into the fields of a form."""
    for name, text in fields.items():
        shown.click(f"#{name}")
        shown.press(*text)
        until(
            partial(
                lambda id_, text: shown.run("return document.getElementById(arguments[0]).value", id_) == text,
                name,
                text,
            ),
            f"{name} is typed",
        )


def test_a_silence_is_added_and_ended_on_its_page(places: tuple[Path, Path], tmp_path: Path) -> None:
    fabric = tmp_path / "fabric"
    copytree(places[0], fabric)
    options = ("--from", places[1], "--every=1d", "--allow-silences")
    with serving(fabric, tmp_path / "state", *options) as server:
        server.await_run()
        address = f"http://127.0.0.1:{server.port}"
        with browser(tmp_path, f"127.0.0.1:{server.port}") as shown:
            shown.complaints()
            shown.requests()
            shown.go(f"{address}/silences")
            log_in(shown)
            shown.go(f"{address}/silences")
            assert shown.text("main > section:first-child") == "Silences and acknowledgements\n  Nothing is silenced."
            fill(shown, check="load.eror", where="leaf01:swp1s0", until="2d", by="alice", why="spare comes")
            shown.click("form.silence button")
            assert "did you mean load.errors?" in shown.text("#complaint")
            assert shown.run("return document.getElementById('where').value") == "leaf01:swp1s0", "what was typed stays"
            assert not (fabric / "silences.yaml").exists()
            (refused,) = shown.complaints()
            assert refused.endswith("status of 400 (Bad Request)")
            ids = shown.run("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
            assert len(ids) == len(set(ids)), "a label leads to one field"
            shown.run("document.getElementById('check').value = ''")
            fill(shown, check="load.errors")
            shown.click("form.silence button")
            assert "load.errors on leaf01:swp1s0" in shown.text(".rows li strong")
            assert "alice: spare comes" in shown.text(".rows li")
            assert "by: alice" in (fabric / "silences.yaml").read_text(encoding="utf-8")
            shown.command("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
            assert shown.run("return [innerWidth, document.documentElement.scrollWidth]") == [360, 360]
            assert shown.run(WIDE) == [], "whatever is wider than the window is cut"
            assert shown.run(SMALL) == [], "what is smaller than a finger cannot be tapped"
            shown.picture(OUT / "silences-phone.png")
            shown.command("Emulation.clearDeviceMetricsOverride")
            shown.click(".rows li input[name=by]")
            shown.press(*"bob")
            shown.click(".rows li button")
            until(lambda: shown.count(".rows li") == 0, "it is ended")
            assert "load.errors" not in (fabric / "silences.yaml").read_text(encoding="utf-8")
            quiet(shown, server)
