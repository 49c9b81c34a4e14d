"""The real Alertmanager: alerts fire, stay the same while a state lasts, and resolve with it."""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.measure import free_port
from tests.command import run
from tests.lab.running import until
from tests.notify.site import Site, reported
from tests.notify.web import web

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
if PROGRAM is None and os.environ.get("CI"):
    raise RuntimeError("the alerts must be tried on a real Alertmanager (Debian: prometheus-alertmanager)")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Alertmanager here (Debian: prometheus-alertmanager)")
ROUTE = "{receiver: hook, group_by: [fabric], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}"


@contextmanager
def alertmanager(folder: Path, hook: str) -> Iterator[str]:
    """Run an Alertmanager on loopback for the length of a block; it posts to a webhook."""
    port = free_port()
    settings = folder / "alertmanager.yml"
    settings.write_text(f"route: {ROUTE}\nreceivers: [{{name: hook, webhook_configs: [{{url: '{hook}'}}]}}]\n")
    words = [
        str(PROGRAM),
        f"--config.file={settings}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            until(lambda: is_ready(port), "Alertmanager is ready")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def alerts(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=30) as answer:  # noqa: S310 (the test's own server)
        found: list[dict[str, Any]] = json.load(answer)
        return found


def test_an_alert_fires_while_a_state_lasts_and_resolves_with_it(site: Site, tmp_path: Path) -> None:
    with web() as hook, alertmanager(tmp_path, hook.url) as url:
        site.write({"name": "am", "kind": "alertmanager", "url": url, "minimum": "fail"})
        assert reported(site.check(is_bad=False)) == (1, "")
        assert alerts(url) == []
        assert reported(site.check(is_bad=True)) == (1, "")
        (first,) = alerts(url)
        labels = {"alertname": "NetkitCheck", "fabric": "small", "check": "load.errors", "device": "leaf01"}
        assert first["labels"] == {**labels, "place": "swp1s0", "severity": "critical"}
        assert first["annotations"]["summary"].startswith("load.errors[leaf01] swp1s0: 900000 packets arrived damaged")
        assert first["annotations"]["remedy"]
        assert first["status"]["state"] == "active"
        assert reported(site.check(is_bad=True)) == (1, "")
        (second,) = alerts(url)
        assert second["annotations"] == first["annotations"]
        assert (second["fingerprint"], second["startsAt"]) == (first["fingerprint"], first["startsAt"])
        assert second["endsAt"] > first["endsAt"]
        assert reported(site.check(is_bad=False)) == (0, "")
        assert alerts(url) == []
        until(lambda: [one["status"] for one in hook.values()] == ["firing", "resolved"], "both are told")
        assert [[one["fingerprint"] for one in value["alerts"]] for value in hook.values()] == [
            [first["fingerprint"]]
        ] * 2


def test_an_alert_that_ended_while_alertmanager_was_down_resolves_when_it_is_back(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netkit.notify.delivery.SHORTEST_S", 0.0)
    with web() as hook, alertmanager(tmp_path, hook.url) as url:
        site.write({"name": "am", "kind": "alertmanager", "url": url})
        site.check(is_bad=False)
        site.check(is_bad=True)
        assert len(alerts(url)) == 1
        site.write({"name": "am", "kind": "alertmanager", "url": "http://127.0.0.1:1"})
        assert "am was not notified: it cannot be reached" in site.check(is_bad=False).stderr
        site.write({"name": "am", "kind": "alertmanager", "url": url})
        assert reported(site.check(is_bad=False)) == (0, "")
        assert alerts(url) == []


def test_a_sample_fires_for_a_moment(site: Site, tmp_path: Path) -> None:
    with web() as hook, alertmanager(tmp_path, hook.url) as url:
        site.write({"name": "am", "kind": "alertmanager", "url": url})
        assert run("notify", "test", "--fabric", site.fabric).stdout == "am: received the sample\n"
        (one,) = alerts(url)
    assert one["annotations"] == {"summary": "this is a test notification: nothing is wrong"}
    assert one["endsAt"] > time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
