"""One server that checks two fabrics, and shows those of other servers in its store: the worst first."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from netkit.judge import Verdict, fail, warn
from netkit.store import Source
from netkit.store.store import open_store
from tests.lab.running import until
from tests.report.browser import browser, needs_chromium
from tests.serve.server import Running, serving
from tests.serve.test_browser import OUT, SMALL, WIDE, log_in, quiet
from tests.serve.test_serve import needs_promtool
from tests.store import runs

pytestmark = pytest.mark.daemon
MINUTE_S, HOUR_S = 60.0, 3600.0
TOKYO, PARIS, OSLO = Source("pods", site="tokyo"), Source("pods", site="paris"), Source("edge", site="oslo")
KEYS = ["pods@tokyo", "edge@oslo", "large", "small", "pods@paris"]


def elsewhere(where: str) -> None:
    """Store runs of fabrics that other servers check: one fails, one is overdue with a warning, one passes."""
    found = {
        TOKYO: (5 * MINUTE_S, runs.result("leaf01", fail("swp1", "swp1 is down", "see the cable")), Verdict.FAIL),
        OSLO: (5 * HOUR_S, runs.result("leaf07", warn("swp9", "swp9 is dim")), Verdict.WARN),
        PARIS: (2 * MINUTE_S, runs.result("leaf01"), Verdict.PASS),
    }
    now_s = time.time()  # the intervals are exact, however long saving takes
    with open_store(where) as store:
        for source, (ago_s, result, verdict) in found.items():
            for number in range(3, -1, -1):
                taken_s = now_s - ago_s - number * 15 * MINUTE_S
                one = replace(runs.run(taken_s, verdict=verdict), source=source)
                store.save(one, runs.judgement(result), runs.snapshot(taken_s))


def is_over(server: Running, key: str) -> bool:
    """Whether the first round has ended, including its report."""
    return any(one["run"] for one in server.get(f"fabrics/{key}/status")["rounds"])


@pytest.fixture(scope="module")
def server(places: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    top = tmp_path_factory.mktemp("fabrics")
    folders = []
    for name in ("small", "large"):
        folder = top / name
        shutil.copytree(places[0], folder)
        values = yaml.safe_load((folder / "fabric.yaml").read_text(encoding="utf-8"))
        (folder / "fabric.yaml").write_text(yaml.safe_dump({**values, "name": name}), encoding="utf-8")
        names = ("leaf01", "leaf02", "spine01", "spine02", "gpu01", "gpu02")
        access = {
            "addresses": dict.fromkeys(names, "127.0.0.1"),
            "platforms": {"nvue": {"port": 1}, "linux": {"port": 1}},
        }
        (folder / "access.yaml").write_text(yaml.safe_dump({**access, "known_hosts": "known_hosts"}), encoding="utf-8")
        (folder / "known_hosts").write_text("127.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==\n", encoding="utf-8")
        folders.append(folder)
    state = top / "state"
    state.mkdir()
    elsewhere(str(state / "store.db"))
    with serving(folders[0], state, "--fabric", folders[1], "--every=1d") as running:
        files = state.glob("*/serve/diary.json")
        until(lambda: len(running.get("fabrics")["items"]) == 5, "all are known")
        for key in ("small", "large"):
            until(partial(is_over, running, key), f"the first round of {key} is over")
        assert len(list(files)) == 2
        yield running
        assert "Traceback" not in running.output()


def test_all_fabrics_are_listed_worst_first_with_site_and_time(server: Running) -> None:
    found = server.get("fabrics")["items"]
    assert [one["key"] for one in found] == KEYS
    assert [(one["site"], one["state"], one["is_overdue"], one["is_scheduled"]) for one in found] == [
        ("tokyo", "fail", False, False),
        ("oslo", "warn", True, False),
        ("", "unknown", False, True),
        ("", "unknown", False, True),
        ("paris", "pass", False, False),
    ]
    assert [one["every_s"] for one in found] == [900, 900, 86_400, 86_400, 900]
    assert [one["text"] for one in found] == [
        "1 cause open",
        "1 cause open",
        "6 devices not reached",
        "6 devices not reached",
        "nothing open",
    ]


def test_the_first_page_links_to_all_and_each_to_its_own(server: Running) -> None:
    assert server.ask("/").headers["location"] == "/fabrics"
    text = server.ask("/fabrics").text
    assert re.findall(r'<tr id="fabric-([^"]+)">', text) == KEYS
    assert re.findall(r'class="open" href="([^"]+)"', text) == [f"/fabrics/{key}" for key in KEYS]
    assert "2 of 5 fabrics with open causes</h1>" in text
    assert text.count("</span>overdue</span>") == 1
    for key in KEYS:
        page = server.ask(f"/fabrics/{key}")
        assert page.code == 200
        links = re.findall(r'href="(/[^"]*)"', page.text)
        assert {server.ask(link).code for link in links} == {200}
        assert f'<a href="/fabrics/{key}/silences">' in page.text or "@" in key
    assert server.ask("/fabrics/none").code == 404
    assert server.ask("/fabrics/small/none").code == 404


def test_a_fabric_of_another_server_is_shown_from_the_store(server: Running) -> None:
    text = server.ask("/fabrics/pods@tokyo").text
    assert "swp1 is down" in text
    assert "see the cable" in text
    assert "Checked by another server, usually every 15 min." in text
    assert "/report" not in text
    now = server.get("fabrics/pods@tokyo/now")
    assert (now["site"], now["next_s"], now["deploys"]) == ("tokyo", None, [])
    assert [one["head"]["device"] for one in server.get("fabrics/pods@tokyo/causes")["items"]] == ["leaf01"]
    first = server.get("fabrics/pods@tokyo/runs?limit=3")
    assert (first["total"], first["next"].partition("?")[0]) == (4, "/api/v1/fabrics/pods@tokyo/runs")
    assert len(server.get(first["next"].removeprefix("/api/v1/"))["items"]) == 1
    for path in ("status", "silences", "deploys", "runs/latest", "devices"):
        answer = server.ask(f"/api/v1/fabrics/pods@tokyo/{path}")
        assert (answer.code, answer.data["detail"]) == (
            404,
            "pods is not checked by this server: ask the one that does",
        )


def test_two_fabrics_have_their_own_reports_and_rounds(server: Running) -> None:
    for key in ("small", "large"):
        report = server.get(f"fabrics/{key}/runs/latest")
        assert report["fabric"] == key
        assert [one["run"] for one in server.get(f"fabrics/{key}/runs")["items"]] == [report["run"]]
        page = server.ask(f"/fabrics/{key}/report").text
        assert f'<a href="/fabrics/{key}#runs">Runs</a>' in page
        assert len(server.get(f"fabrics/{key}/status")["rounds"]) == 1
    nexts = [server.get(f"fabrics/{key}/status")["next_s"] for key in ("small", "large")]
    assert abs(nexts[0] - nexts[1]) == 43_200, "rounds of several fabrics are spread"


@needs_promtool
def test_metrics_of_all_have_fabric_and_site(server: Running) -> None:
    text = server.ask("/metrics").text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for line in (
        'netkit_fabric_open_causes{fabric="pods",site="tokyo",verdict="fail"} 1',
        'netkit_fabric_overdue{fabric="pods",site="tokyo"} 0',
        'netkit_fabric_overdue{fabric="edge",site="oslo"} 1',
        'netkit_fabric_unreached_devices{fabric="large"} 6',
        'netkit_serve_round_exit_code{fabric="large"} 4',
        'netkit_serve_round_exit_code{fabric="small"} 4',
        'netkit_collector_up{fabric="small",node="leaf01"} 0',
        'netkit_collector_up{fabric="large",node="leaf01"} 0',
    ):
        assert f"{line}\n" in text, line


@needs_chromium
def test_the_overview_in_a_browser(server: Running, tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{server.port}"
    with browser(tmp_path, f"127.0.0.1:{server.port}") as shown:
        shown.complaints()
        shown.requests()
        shown.go(f"{address}/")
        log_in(shown)
        assert shown.text("#verdict-title") == "2 of 5 fabrics with open causes"
        assert shown.count("#fabrics tbody tr") == 5
        for scheme in ("light", "dark"):
            shown.prefer(scheme)
            shown.picture(OUT / f"fabrics-{scheme}.png")
        shown.command("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
        assert shown.run("return [innerWidth, document.documentElement.scrollWidth]") == [360, 360]
        assert shown.run(WIDE) == [], "whatever is wider than the window is cut"
        assert shown.run(SMALL) == [], "what is smaller than a finger cannot be tapped"
        shown.picture(OUT / "fabrics-phone.png")
        shown.command("Emulation.clearDeviceMetricsOverride")
        shown.click("#fabrics tbody tr:first-child a")
        assert shown.text("#verdict-title") == "pods at tokyo 1 cause open"
        shown.picture(OUT / "fabric-elsewhere.png")
        shown.click('nav a[href="/fabrics"]')
        assert shown.count("#fabrics tbody tr") == 5
        quiet(shown, server)
