"""The HTML report in a real browser: its content and controls, and that it requests nothing."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench import fabrics
from netkit import design
from netkit.hardware import Catalog
from netkit.intent import load
from netkit.judge import Verdict
from netkit.report.page import NO_TRENDS, Reported, Series, Tally, Trends, page
from tests import intents
from tests.command import ROOT
from tests.lab.running import until
from tests.lanes import daily
from tests.report.browser import Browser, browser, needs_chromium
from tests.report.seen import (
    HOSTILE,
    LONG,
    WIDE,
    all_dim,
    built,
    burst,
    dim,
    misnamed,
    paused,
    reported,
    unreached,
    worn_out,
)

pytestmark = needs_chromium
OUT = ROOT / "out" / "report"
MOST_BYTES = 3_000_000
DAY_S = 86_400.0
RUNS = tuple(
    Tally(f"run{number:02}", 1_763_000_000 + number * DAY_S, Verdict.FAIL, number % 4, number % 7, 0, 900, 0)
    for number in range(30)
)
FADING = Series(
    "leaf01", "swp1s0/1", "rx_dbm", tuple((1_763_000_000 + day * DAY_S, -2.0 - day / 4) for day in range(30))
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def sick(folder: Path) -> Path:
    run = reported(trends=Trends(RUNS, (FADING,)), leaf01=dim, leaf02=paused, spine02=unreached)
    return written(folder / "sick.html", run)


@pytest.fixture
def shown(chromium: Browser, sick: Path) -> Iterator[Browser]:
    """Open the report on a failing fabric, and check afterwards that the browser logged and requested nothing."""
    chromium.prefer("light")
    chromium.open(sick)
    chromium.complaints()
    chromium.requests()
    yield chromium
    assert_quiet(chromium)


def written(file: Path, run: Reported) -> Path:
    file.write_text(page(run), encoding="utf-8")
    return file


def assert_quiet(chromium: Browser) -> None:
    assert chromium.complaints() == []
    # The browser loads parts of its own start page at any time.
    asked = [url for url in chromium.requests() if not url.startswith(("file:", "data:", "about:", "chrome:"))]
    assert asked == []


def cursor_is_in_view(chromium: Browser) -> bool:
    """Whether the last row of the heatmap is visible."""
    found: bool = chromium.run(
        "const frame = document.querySelector('.heat').getBoundingClientRect();"
        "const end = document.querySelector('canvas').getBoundingClientRect().bottom;"
        "return end <= frame.bottom && end <= innerHeight"
    )
    return found


def leads_to(chromium: Browser, address: str, title: str) -> None:
    """Wait for a dialog, and check that it is the expected one."""
    until(lambda: chromium.run("return document.getElementById('detail').open") is True, f"{title} is shown")
    assert (chromium.run("return location.hash"), chromium.text("#detail-title")) == (address, title)


def closes(chromium: Browser) -> None:
    chromium.press("Escape")
    until(lambda: chromium.run("return location.hash + document.getElementById('detail').open") == "false", "it closes")


def test_the_verdict_comes_first_with_its_counts(shown: Browser) -> None:
    assert shown.text("h1") == "small 6 fail of 2 causes"
    counts = dict(zip(shown.texts(".counts dt"), shown.texts(".counts dd"), strict=True))
    assert (counts["Reached"], counts["Not reached"], counts["Broken checks"]) == ("3 of 4", "1", "0")
    assert int(counts["Examined"].replace(",", "")) > 100


def test_loading_requests_only_the_file_itself(chromium: Browser, sick: Path) -> None:
    chromium.requests()
    chromium.open(sick)
    asked = {url for url in chromium.requests() if not url.startswith(("data:", "about:"))}
    assert asked == {sick.as_uri()}
    assert chromium.complaints() == []


def test_the_picture_shows_every_device_with_its_state_as_a_link(shown: Browser) -> None:
    names = shown.run("return [...document.querySelectorAll('.node')].map((one) => one.getAttribute('aria-label'))")
    assert names == [
        "spine01, spine, well",
        "spine02, spine, not reached",
        "leaf01, leaf, fail",
        "leaf02, leaf, fail",
    ]
    shown.click(".node.is-unreached")
    leads_to(shown, "#device/spine02", "spine02")
    assert "connection refused" in shown.text("#detail")


def test_findings_are_filtered_by_words_and_by_verdict(shown: Browser) -> None:
    assert shown.count("#findings .cause") == 2
    shown.press("/")
    shown.press(*"leaf02 pauses")
    assert shown.texts("#findings .cause .where") == ["gpu01:rail1 — leaf02:swp1s0"]
    assert shown.text("#findings [role=status]").startswith("1 of 2 causes")
    shown.run("document.getElementById('search').value = ''")
    shown.press(" ")
    shown.click("input[name=verdict][value=fail]")
    assert shown.count("#findings .cause") == 0


def test_a_layer_can_be_chosen(shown: Browser) -> None:
    shown.run(
        "const layer = document.getElementById('layer');"
        "layer.value = 'physical'; layer.dispatchEvent(new Event('change'))"
    )
    assert shown.texts("#findings .cause .where") == ["gpu01:rail0 → leaf01:swp1s0"]


def test_a_finding_unfolds_to_evidence_remedy_and_symptoms(shown: Browser) -> None:
    shown.click("#findings .cause:first-child summary")
    until(lambda: shown.count("#findings .cause[open] .inside") == 1, "it unfolds")
    assert "What to do: clean the connectors" in shown.text("#findings .cause .remedy")
    assert shown.texts("#findings .cause .pairs dt") == ["Where", "Counter window"]
    assert shown.count("#findings .cause[open] .symptoms li") == 3
    shown.click("#findings .cause .pairs a")
    leads_to(shown, "#device/leaf01/swp1s0", "leaf01:swp1s0")


def test_a_port_shows_all_its_values(shown: Browser, sick: Path) -> None:
    shown.open(sick, "#device/leaf02/swp1s0")
    assert shown.text("#detail-title") == "leaf02:swp1s0"
    output = dict(zip(shown.texts("#detail .pairs dt"), shown.texts("#detail .pairs dd"), strict=True))
    wanted = {
        "cabled to": "gpu01",
        "FEC": "rs",
        "optic margin (dB)": "6",
        "rx pause/3": "900,000",
        "serial": "leaf02-1",
    }
    assert {name: output[name] for name in wanted} == wanted
    closes(shown)


def test_a_port_links_to_a_cause_that_does_not_list_it(chromium: Browser, folder: Path) -> None:
    run = reported(built(intents.on_platform("nvue", "5.13.0", WIDE)), leaf01=all_dim, leaf02=all_dim)
    file = written(folder / "wide.html", run)
    chromium.open(file)
    chromium.press("/")
    chromium.press(*"leaf02:swp6s1")
    assert chromium.text("#findings [role=status]").startswith("1 of 1 cause")
    chromium.open(file, "#device/leaf02/swp6s1")
    (where,) = chromium.texts("#detail .cause .where")
    assert re.match(r"\d\d places on ", where)
    assert_quiet(chromium)


def test_the_heatmap_switches_its_metric(shown: Browser) -> None:
    drawn = shown.run("return document.querySelector('canvas').toDataURL()")
    assert shown.text("#heat-now") == "leaf01:swp1s0 to gpu01:rail0: pause rate 0/s, fail"
    shown.click("input[name=metric][value=margin]")
    assert shown.text("#heat-now") == "leaf01:swp1s0 to gpu01:rail0: optic margin -1.5 dB, fail"
    assert shown.texts(".worst tbody tr:first-child > *") == ["leaf01:swp1s0", "-1.5 dB", "gpu01:rail0", "fail"]
    assert shown.run("return document.querySelector('canvas').toDataURL()") != drawn
    shown.click("input[name=role][value=spine]")
    assert shown.text("#heat-now").startswith("spine01:swp1s0 to leaf01:")


def test_peaks_of_queues_are_shown_by_port(chromium: Browser, folder: Path) -> None:
    chromium.open(written(folder / "burst.html", reported(leaf01=burst)))
    chromium.click("input[name=metric][value=queue]")
    assert chromium.text("#heat-now").startswith("leaf01:swp1s0 to gpu01:rail0: queue peak ")
    assert len(chromium.texts(".worst tbody tr")) == 1
    chromium.run("location.hash = '#device/leaf01/swp1s0'")
    leads_to(chromium, "#device/leaf01/swp1s0", "leaf01:swp1s0")
    output = dict(zip(chromium.texts("#detail dt"), chromium.texts("#detail dd"), strict=True))
    assert output["longest queue in the window (bytes), priority 3"] == "900,000"
    assert output["headroom used in the window (bytes), priority 3"] == "40,000"
    assert "queue peak bytes/3" not in output
    closes(chromium)
    assert_quiet(chromium)


def test_everything_works_by_keyboard(shown: Browser) -> None:
    shown.run("document.querySelector('.node').focus()")
    shown.press("Right")
    assert shown.focused() == "spine02, spine, not reached"
    shown.press("Down")
    assert shown.focused() == "leaf02, leaf, fail"
    shown.press("Enter")
    leads_to(shown, "#device/leaf02", "leaf02")
    closes(shown)
    assert shown.focused() == "leaf02, leaf, fail"
    shown.run("document.querySelector('canvas').focus()")
    shown.press("Down", "Right")
    assert shown.text("#heat-now").startswith("leaf02:swp1s1 ")
    shown.press("Enter")
    leads_to(shown, "#device/leaf02/swp1s1", "leaf02:swp1s1")


def test_every_element_has_an_accessible_name(shown: Browser) -> None:
    nodes = shown.command("Accessibility.getFullAXTree")["nodes"]
    named = {"link", "button", "checkbox", "radio", "combobox", "searchbox", "application", "table", "image", "dialog"}
    nameless = [
        node["role"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") in named and not node.get("ignored") and not node["name"]["value"]
    ]
    assert nameless == []
    landmarks = {node["role"]["value"] for node in nodes if not node.get("ignored")}
    assert {"banner", "navigation", "main", "search", "region"} <= landmarks


def test_light_and_dark_follow_the_desktop_and_the_button(shown: Browser) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = shown.run(paper)
    shown.prefer("dark")
    dark = shown.run(paper)
    assert light != dark
    shown.click("#theme")
    assert (shown.text("#theme"), shown.run(paper)) == ("Theme: light", light)
    shown.click("#theme")
    assert (shown.text("#theme"), shown.run(paper)) == ("Theme: dark", dark)


def test_trends_are_charts_and_a_table(shown: Browser) -> None:
    assert shown.count(".bars > g") == len(RUNS)
    assert shown.count("#trends tbody tr") == len(RUNS)
    assert "-2 dBm → -9.25 dBm" in shown.text("#trends .chart")


def test_print_has_every_finding_unfolded(shown: Browser) -> None:
    shown.run("window.dispatchEvent(new Event('beforeprint'))")
    assert shown.count("#findings .cause[open] .remedy") == 2
    shown.run("window.dispatchEvent(new Event('afterprint'))")
    assert shown.count("#findings .cause[open]") == 0


def test_names_of_devices_stay_text(chromium: Browser, folder: Path) -> None:
    run = reported(leaf01=misnamed(HOSTILE), leaf02=misnamed(LONG), spine01=unreached)
    file = written(folder / "hostile.html", run)
    for fragment in ("", "#device/leaf01/swp1s0", "#device/leaf02/swp1s0", "#device/%E0%A4%A", "#device/<img src=x>"):
        chromium.open(file, fragment)
        assert chromium.run("return document.title").startswith("small: ")
        assert chromium.count("script, img, iframe") == 2
    chromium.open(file, "#device/leaf01/swp1s0")
    assert "By design this is cabled to gpu01; LLDP reports <script>" in chromium.text("#detail .note")
    wide = chromium.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
    assert_quiet(chromium)


def test_a_clean_fabric_reports_how_much_was_examined(chromium: Browser, folder: Path) -> None:
    chromium.open(written(folder / "clean.html", reported()))
    assert chromium.text("h1") == "small clean"
    assert chromium.text("#findings [role=status]").startswith("Nothing wrong was found in ")
    assert chromium.count("#findings .controls") == 0
    assert_quiet(chromium)


def test_unreported_values_are_not_shown_as_zero(chromium: Browser, folder: Path) -> None:
    nobody = reported(leaf01=unreached, leaf02=unreached, spine01=unreached, spine02=unreached)
    chromium.open(written(folder / "nobody.html", nobody))
    assert chromium.text("h1") == "small nothing could be judged"
    assert chromium.text(".worst p") == "No port reports it, so nothing is known."
    assert_quiet(chromium)


def test_a_stored_run_reports_what_it_did_not_keep(chromium: Browser, folder: Path) -> None:
    run = reported(leaf01=dim)
    chromium.open(written(folder / "stored.html", Reported(run.judged, run.fabric, None, 3, "run01", NO_TRENDS)))
    assert chromium.text("#heatmap p").startswith("A stored run keeps its verdicts")
    chromium.click(".node.is-fail")
    assert chromium.text("#detail-title") == "leaf01"
    assert_quiet(chromium)


@pytest.mark.parametrize("units", daily([2, 16], 2))
def test_a_large_fabric_fits_and_is_fast(
    chromium: Browser, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], units: int
) -> None:
    """With different readings on every port and thousands of findings; 128 leaves are the largest input of a report."""
    intent = load(fabrics.write(tmp_path / "large", replace(fabrics.SPEED, units=units), "nvue")).intent
    run = worn_out(design.build(intent, Catalog()))
    file = written(folder / "large.html", run)
    ports = units * 8 * 64
    assert run.judged.judgement.count(Verdict.WARN) > 0.6 * ports
    assert file.stat().st_size < MOST_BYTES * units / 16 + 300_000
    chromium.open(file)
    assert chromium.text(".scale p:first-child").endswith(f"{ports:,} of {ports:,} ports report it.")
    assert chromium.count("*") < 4000
    ready_ms = chromium.run("return document.documentElement.dataset.readyMs")
    switched_ms = chromium.run(
        "const began = performance.now(); document.querySelector('input[value=margin]').click();"
        "return Math.round(performance.now() - began)"
    )
    with capsys.disabled():
        size = file.stat().st_size / 1e6
        print(
            f"\nreport of {units * 8} leaves: {size:.1f} MB, ready in {ready_ms} ms, another metric in {switched_ms} ms"
        )
    begins = "return [...document.querySelectorAll('.wires .bad')].map((one) => one.getAttribute('d').split(' ')[0])"
    assert len(set(chromium.run(begins))) > 12, "no spine looks as if it alone were ill"
    chromium.run("document.querySelector('canvas').focus()")
    chromium.press("End", *["PageDown"] * 13)
    assert chromium.text("#heat-now").startswith(f"leaf-u{units:02}-r7:")
    assert cursor_is_in_view(chromium)
    chromium.picture(OUT / "large.png")
    assert_quiet(chromium)


@pytest.mark.whole
def test_pictures_for_manual_review(shown: Browser, sick: Path) -> None:
    for scheme in ("light", "dark"):
        shown.prefer(scheme)
        shown.open(sick)
        shown.click("#findings .cause:first-child summary")
        until(lambda: shown.count("#findings .cause[open] .inside") == 1, "it unfolds")
        shown.picture(OUT / f"{scheme}.png")
    shown.prefer("light")
    shown.open(sick, "#device/leaf01/swp1s0")
    shown.window_picture(OUT / "port.png")
    shown.open(sick)
    shown.print(OUT / "print.pdf")
    assert (OUT / "print.pdf").stat().st_size > 10_000
