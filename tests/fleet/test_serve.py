"""`netkit serve --fleet`: rounds at the sites, and what the pages show of them, also when the broker is down."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.project.project import Project
from tests.command import begin, run
from tests.fleet.bed import FABRIC, PATIENCE_S, Bed, bed, eventually, password
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.repository import FabricRepository, fabric_repository
from tests.lab.running import until
from tests.report.browser import browser, needs_chromium
from tests.serve.server import Answer, Running, serving
from tests.serve.test_api import FLEET, checked
from tests.serve.test_browser import OUT, WIDE, log_in, quiet
from tests.serve.test_serve import needs_promtool

pytestmark = [needs_rabbitmq, pytest.mark.daemon]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> FabricRepository:
    return fabric_repository(tmp_path_factory.mktemp("serve") / "origin", FABRIC["tokyo"])


@contextmanager
def sites(origin: FabricRepository, state: Path, fabrics: Mapping[str, Mapping[str, tuple[int, ...]]]) -> Iterator[Bed]:
    """Run a broker, and a worker at each site, whose devices refuse every connection."""
    with bed(repository=str(origin.folder), fabrics=fabrics) as found, ExitStack() as workers:
        for site in (name for name, units in fabrics.items() if FABRIC["tokyo"] in units):
            workers.enter_context(worker(found, site, origin, state))
        yield found


@contextmanager
def worker(found: Bed, site: str, origin: FabricRepository, state: Path) -> Iterator[None]:
    folder = found.home / "sites" / site
    access = folder / "access" / FABRIC["tokyo"]
    access.mkdir(parents=True)
    names = Project.open(origin.folder / FABRIC["tokyo"]).fabric.names
    settings = {
        "addresses": dict.fromkeys(names, "127.0.0.1"),
        "platforms": {"nvue": {"port": 1}, "linux": {"port": 1}},
        "known_hosts": "known_hosts",
    }
    (access / "access.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (access / "known_hosts").write_text("127.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==\n", encoding="utf-8")
    words = ("worker", "--site", site, "--fleet", folder, "--state", state / site)
    (state / site).mkdir()
    log_file = state / site / "log"
    with log_file.open("wb") as log:
        process = begin(*words, output=log, NETKIT_SECRET_BROKER=password(folder))
    try:
        eventually(lambda: b"connected to localhost as" in log_file.read_bytes())
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, log_file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(origin: FabricRepository, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A broker, and the worker of tokyo."""
    fabrics: dict[str, dict[str, tuple[int, ...]]] = {name: {path: ()} for name, path in FABRIC.items()}
    with sites(origin, tmp_path_factory.mktemp("worker"), fabrics) as found:
        yield found


def served(site: Bed, origin: FabricRepository, state: Path, *options: str) -> Any:
    fabric = origin.folder / FABRIC["tokyo"]
    return serving(fabric, state, "--fleet", str(site.home), *options, NETKIT_SECRET_BROKER=password(site.home))


def reasons(server: Running) -> list[str]:
    return [one["text"] for one in server.get("now")["unknown"] if one["kind"] == "fleet"]


def stored(server: Running, origin: FabricRepository, *options: str) -> list[tuple[str, str]]:
    """Return site and name of the runs that `netkit history` lists."""
    words = ("history", "--checks", "--format=json", "--fabric", str(origin.folder / FABRIC["tokyo"]), *options)
    variables: dict[str, Any] = {"NETKIT_STATE_DIR": str(server.state)}
    return [(one["site"], one["run"]) for one in json.loads(run(*words, **variables).stdout)]


@needs_promtool
def test_rounds_run_at_the_site_and_the_pages_show_it(site: Bed, origin: FabricRepository, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    with served(site, origin, tmp_path / "state", "--every=1d", f"--backup={saved}") as server:
        until(lambda: len(server.ended_rounds()) == 2, "the first check and backup are over")
        assert [(one["kind"], one["exit_code"]) for one in server.ended_rounds()] == [("check", 4), ("backup", 4)]
        assert "not saved: leaf01: cannot be reached at 127.0.0.1 port 1" in server.ended_rounds()[1]["text"]
        (first,) = server.get("runs")["items"]
        assert (first["state"], first["unreached"]) == ("unknown", first["devices"])
        assert [(one["key"], one["site"]) for one in server.get("fabrics")["items"]] == [("small@tokyo", "tokyo")]
        for report in (server.state / "small" / "serve" / "reports").iterdir():
            report.unlink()
        assert server.get(f"runs/{first['run']}")["run"] == first["run"], "it is made again from the store"
        assert stored(server, origin, "--site=tokyo") == [("tokyo", first["run"])]
        assert stored(server, origin) == []
        assert server.get("now")["unreached"][0]["reason"].startswith("cannot be reached at 127.0.0.1 port 1")
        until(lambda: bool(server.get("fleet")["sites"]), "the sites are asked")
        found = {one["site"]: one for one in server.get("fleet")["sites"]}
        assert [(one["waiting"], one["receivers"], len(one["workers"])) for one in found.values()] == [
            (0, 1, 1),
            (0, 0, 0),
        ]
        checked(server.ask(FLEET), FLEET)
        assert (server.get("fleet")["problems"], reasons(server)) == ([], [])
        text = server.ask("/fleet").text
        assert f"<td>{found['tokyo']['workers'][0]['worker']}</td>" in text
        assert text.count("no worker is connected") == 1
        assert '<a href="/fleet">Sites</a>' in server.ask("/").text
        metrics = server.ask("/metrics").text
        assert 'netkit_fleet_workers{site="tokyo"} 1\n' in metrics
        assert 'netkit_fleet_site_up{site="osaka"} 1\n' in metrics
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert "Traceback" not in server.output()


def acknowledged(server: Running, key: str, device: str) -> Answer:
    """Acknowledge that the last run at a site did not reach a device."""
    asked = {"kind": "acknowledgement", "check": "reached", "where": device, "by": "ann", "why": "swapped"}
    path = f"/api/v1/{key}/silences"
    return server.ask(path, method="POST", body=json.dumps(asked), Content_Type="application/json")


@needs_promtool
def test_a_fabric_at_two_sites_has_a_history_and_a_page_at_each(origin: FabricRepository, tmp_path: Path) -> None:
    fabrics = {"tokyo": {FABRIC["tokyo"]: (1,)}, "osaka": {FABRIC["tokyo"]: (2,)}}
    (tmp_path / "state").mkdir()
    (tmp_path / "workers").mkdir()
    with (
        sites(origin, tmp_path / "workers", fabrics) as two_sites,
        served(two_sites, origin, tmp_path / "state", "--every=1d", "--allow-silences") as server,
    ):
        until(lambda: bool(server.ended_rounds()), "the first check is over")
        checked(server.ask("/api/v1/fabrics"), "/api/v1/fabrics")
        found = {one["key"]: one for one in server.get("fabrics")["items"]}
        assert {key: (one["site"], one["is_part"], one["counts"]["unreached"]) for key, one in found.items()} == {
            "small": ("", False, 10),
            "small@tokyo": ("tokyo", True, 6),
            "small@osaka": ("osaka", True, 4),
        }
        assert {(one["state"], one["is_scheduled"], one["is_overdue"]) for one in found.values()} == {
            ("unknown", True, False)
        }
        assert server.ask("/").headers["location"] == "/fabrics"
        assert "0 of 1 fabric with open causes</h1>" in server.ask("/fabrics").text
        for site, number in (("tokyo", 6), ("osaka", 4)):
            key = f"fabrics/small@{site}"
            (run_there,) = server.get(f"{key}/runs")["items"]
            assert (run_there["devices"], run_there["unreached"], run_there["exit_code"]) == (number, number, 4)
            assert stored(server, origin, f"--site={site}") == [(site, run_there["run"])]
            here = [one["device"] for one in server.get(f"{key}/states?check=reached")["items"]]
            assert len(here) == number
            assert server.get(f"{key}/runs/latest")["run"] == run_there["run"], "its report is made from the store"
            assert [one["run"] for one in server.get(f"{key}/trends")["runs"]] == [run_there["run"]]
            text = server.ask(f"/{key}").text
            assert f"small at {site}" in text
            assert f'<a href="/{key}/silences">' in text
            assert acknowledged(server, key, here[0]).code == 201
            refused = acknowledged(server, key, "gpu01" if site == "osaka" else "gpu04")
            assert refused.code == 400
            assert f"the last run, {run_there['run']}, has no warning or failure of reached" in refused.text
        (whole,) = stored(server, origin)
        assert whole[0] == ""
        metrics = server.ask("/metrics").text
        for labels, number in (('fabric="small"', 10), ('fabric="small",site="tokyo"', 6)):
            assert f"netkit_fabric_unreached_devices{{{labels}}} {number}\n" in metrics
        assert metrics.count("netkit_serve_rounds_total{") == 1
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert "Traceback" not in server.output()

    # Of a folder with files that are not committed, no later round would run.
    (origin.folder / FABRIC["tokyo"] / "silences.yaml").unlink()


@needs_chromium
def test_the_sites_in_a_browser(site: Bed, origin: FabricRepository, tmp_path: Path) -> None:
    with served(site, origin, tmp_path / "state", "--every=1d") as server:
        until(lambda: bool(server.get("fleet")["sites"]), "the sites are asked")
        with browser(tmp_path, f"127.0.0.1:{server.port}") as shown:
            shown.go(f"http://127.0.0.1:{server.port}/")
            log_in(shown)
            shown.click('nav a[href="/fleet"]')
            assert shown.text("#sites-title") == "Sites and their workers"
            assert shown.count("#sites tbody tr") == 2
            shown.command("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
            assert shown.run("return [innerWidth, document.documentElement.scrollWidth]") == [360, 360]
            assert shown.run(WIDE) == [], "whatever is wider than the window is cut"
            shown.picture(OUT / "fleet-phone.png")
            quiet(shown, server)


SOME = 20
"""Rounds, of which one should have been refused."""


def refused_rounds(server: Running) -> list[Mapping[str, Any]]:
    return [one for one in server.get("status")["rounds"] if one["exit_code"] == 5]


@contextmanager
def held_round(site: Bed) -> Iterator[None]:
    """A check that another coordinator holds; its heartbeats do not wait for a slow server, or the broker frees it."""
    ended = threading.Event()
    with site.coordinator() as other:
        other.hold(f"check of {FABRIC['tokyo']}", ["tokyo"])
        (link,) = [one.link for one in other._sites.values() if one.link]  # noqa: SLF001 (nothing else uses it)

        def beat() -> None:
            while not ended.wait(1):
                link.wait(0)

        beating = threading.Thread(target=beat)
        beating.start()
        try:
            yield
        finally:
            ended.set()
            beating.join()


def test_a_round_that_another_one_keeps_from_running_is_noted(
    site: Bed, origin: FabricRepository, tmp_path: Path
) -> None:
    with ExitStack() as busy:
        busy.enter_context(held_round(site))
        with served(site, origin, tmp_path / "state", "--every=4s") as server:
            # A round that begins before the worker is known cannot run at all.
            until(lambda: bool(refused_rounds(server)) or len(server.ended_rounds()) > SOME, "a round is refused")
            assert refused_rounds(server), {(one["exit_code"], one["text"]) for one in server.ended_rounds()}
            refused = refused_rounds(server)[0]
            assert (refused["run"], refused["end"]) == ("", "another round of the fabric was running")
            assert "another check of inventory/tokyo is running at the site tokyo" in refused["text"]
            now = server.get("now")
            assert (now["state"], now["looked"], server.get("runs")["items"]) == ("unknown", None, [])
            assert "another check of inventory/tokyo is running at the site tokyo" in server.ask("/").text
            busy.close()
            until(lambda: bool(server.get("runs")["items"]), "a later round is not refused")


def test_a_broker_that_is_down_is_reported_and_delays_no_page(
    site: Bed, origin: FabricRepository, tmp_path: Path
) -> None:
    with served(site, origin, tmp_path / "state", "--every=1d") as server:
        until(lambda: bool(server.get("fleet")["sites"]), "the sites are asked")
        until(lambda: bool(server.ended_rounds()), "the first round is over")
        site.server.kill()
        try:
            # A site whose connection was just being made when the broker died names that first.
            down = ["tokyo, osaka: the broker does not answer: Connection refused"]
            until(lambda: reasons(server) == down, "the broker is missed")
            assert "tokyo, osaka: the broker does not answer: Connection refused" in server.ask("/").text
            assert "tokyo, osaka: the broker does not answer: Connection refused" in server.ask("/fleet").text
            metrics = server.ask("/metrics").text
            assert 'netkit_fleet_site_up{site="tokyo"} 0\n' in metrics
            assert "netkit_fleet_workers" not in metrics
        finally:
            site.server.start()
        until(lambda: not reasons(server), "the broker is back")
        assert server.end() == 0
        assert "Traceback" not in server.output()


def test_a_fleet_that_cannot_be_used_is_refused_at_the_start(origin: FabricRepository, tmp_path: Path) -> None:
    fabric = origin.folder / FABRIC["tokyo"]
    state: dict[str, Any] = {"NETKIT_STATE_DIR": str(tmp_path)}
    done = run("serve", "--fabric", fabric, "--fleet", tmp_path / "none", **state)
    assert (done.returncode, done.stdout) == (3, "")
    assert "fleet.yaml: does not exist; begin with `netkit fleet init`" in done.stderr
    done = run("serve", "--fabric", fabric, "--fleet", tmp_path, "--lab", **state)
    assert (done.returncode, done.stderr) == (3, "error: --lab does not work with --fleet; drop --lab, or --fleet\n")
