"""A run of very many devices: it has no report, and the server shows what is in the store."""

from dataclasses import replace
from pathlib import Path

import pytest

from netkit.cli import check, report
from netkit.cli.requests import CheckRequest, ReportRequest
from netkit.errors import UsageError
from netkit.facts import serial
from netkit.judge import fail
from netkit.project import reporting
from netkit.report import page
from netkit.store.store import open_store
from tests.lab.running import until
from tests.serve.server import serving
from tests.store import runs


@pytest.mark.daemon
def test_a_large_run_is_listed_without_a_report(places: tuple[Path, Path], tmp_path: Path) -> None:
    large = replace(runs.run(serial.read(places[1]).taken_s - 3600), devices=page.MOST_DEVICES + 1)
    with open_store(str(tmp_path / "store.db")) as store:
        found = runs.judgement(runs.result("leaf01", fail("swp1", "swp1 is down")))
        store.save(large, found, runs.snapshot(large.taken_s))
    with serving(places[0], tmp_path, "--from", places[1], "--every=1d") as server:
        until(lambda: len(server.get("runs")["items"]) == 2, "the first round is over")
        where = f"/api/v1/findings?run={large.name}"
        answer = server.ask(f"/api/v1/runs/{large.name}")
        reported = f"a run of {page.MOST_DEVICES + 1:,} devices has no report: {where} lists what it found"
        assert (answer.code, answer.data["detail"]) == (404, reported)
        assert where in server.ask(f"/runs/{large.name}").text
        assert [one["text"] for one in server.ask(where).data["items"]] == ["swp1 is down"]


def test_a_check_of_too_many_devices_writes_no_report_and_prints_that(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "MOST_DEVICES", 5)
    file = tmp_path / "report.json"
    request = CheckRequest(places[0], snapshot=places[1], report_file=file)
    assert check.run(request) == 4
    assert capsys.readouterr().err.endswith("no report: 6 devices are too many for one; the most are 5\n")
    assert not file.exists()
    monkeypatch.setattr(page, "MOST_DEVICES", 6)
    assert check.run(request) == 4
    assert file.exists()


def test_a_report_on_too_many_devices_is_refused(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "MOST_DEVICES", 5)
    with pytest.raises(UsageError, match=r"a report on 6 devices would be too large to open; the most are 5; select"):
        report.run(ReportRequest(places[0], snapshot=places[1]))
