"""Child processes, report files, clock and connections of a server, without running one."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from bench.measure import free_port
from netkit.deploy import RecentRuns
from netkit.errors import OutputError
from netkit.judge import fail
from netkit.serve import api, listening, rounds
from netkit.serve.guard import MOST_FIELDS, Door, Token
from netkit.serve.now import OwnChecks, ServedFabric
from netkit.serve.record import MOST_REPORTS, READ_S, Records, StoreReader
from netkit.serve.request import ServeRequest
from netkit.serve.rounds import Children, Command, Ended, ScheduledRound
from netkit.serve.schedule import MOST_ROUNDS, Agenda, Diary, DiaryFile, Schedule
from netkit.serve.silencing import Silencer
from netkit.store import CheckRun
from netkit.store.store import open_store
from tests.serve.server import PATIENCE_S
from tests.serve.test_tls import certificate
from tests.store import runs

NOON_S = 1_795_348_800.0
TOKEN = "x" * 40


@pytest.fixture
def records(tmp_path: Path) -> Records:
    (tmp_path / "reports").mkdir()
    with open_store(str(tmp_path / "store.db")):
        return Records(StoreReader(str(tmp_path / "store.db")), runs.SOURCE, tmp_path / "reports")


def children(records: Records) -> Children:
    return Children(ServeRequest(records.folder), records, records.folder.parent, {}, asyncio.Event())


def kept(records: Records, taken_s: float) -> CheckRun:
    """Store a run."""
    with open_store(records.store.where) as store:
        return runs.save(store, taken_s, runs.result("leaf01", fail("swp1", "down"), fail("swp2", "down")))


def named(records: Records, count: int, *, made_s: float) -> list[Path]:
    """The report files of consecutive runs, all made at one time."""
    files = [records.folder / f"20261122T1200{number:03}-abcdef.json" for number in range(count)]
    for file in files:
        file.write_text("{}", encoding="utf-8")
        os.utime(file, (made_s, made_s))
    return files


def test_a_report_made_again_evicts_no_newer_one(records: Records) -> None:
    files = named(records, MOST_REPORTS + 5, made_s=NOON_S)
    again = files[0]
    os.utime(again)
    records.prune()
    assert set(records.folder.iterdir()) == {again, *files[5:]}
    os.utime(again, (NOON_S - READ_S, NOON_S - READ_S))
    records.prune()
    assert set(records.folder.iterdir()) == set(files[5:])


def test_reports_made_on_request_are_bounded(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    files = named(records, MOST_REPORTS + 1, made_s=NOON_S)
    run = kept(records, runs.BEGAN_S)
    monkeypatch.setattr(rounds, "run_command", _reporting(records.file(run)))
    asyncio.run(children(records).make(run))
    assert set(records.folder.iterdir()) == {records.file(run), *files[1:]}


def _reporting(file: Path) -> Any:
    async def run_command(*_: object) -> Ended:
        file.write_text("{}", encoding="utf-8")
        return Ended(0, "")

    return run_command


def test_a_slow_report_is_announced_and_made(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    run = kept(records, runs.BEGAN_S)
    monkeypatch.setattr(rounds, "PATIENCE_S", 0.01)
    monkeypatch.setattr(ServeRequest, "report", lambda *_: ["cat", str(records.folder.parent / "pipe")])
    os.mkfifo(records.folder.parent / "pipe")

    async def asked() -> None:
        own = children(records)
        for _ in range(2):
            with pytest.raises(OutputError, match="is still being made; ask again"):
                await own.make(run)
        records.file(run).write_text("{}", encoding="utf-8")
        await asyncio.to_thread((records.folder.parent / "pipe").write_text, "done")
        await own.ended()
        await own.make(run)

    asyncio.run(asked())


def test_the_report_of_a_check_that_outlived_its_server_is_kept(records: Records) -> None:
    run, own = kept(records, runs.BEGAN_S), children(records)
    own.draft.write_text(f'{{"run": "{run.name}"}}', encoding="utf-8")
    own.check()
    assert (records.file(run).exists(), own.draft.exists()) == (True, False)
    own.draft.write_text('{"run": "another"}', encoding="utf-8")
    own.check()
    assert not own.draft.exists()


def test_a_report_that_cannot_be_stored_ends_a_round_and_not_the_server(records: Records) -> None:
    run, own = kept(records, runs.BEGAN_S), children(records)
    own.draft.write_text(f'{{"run": "{run.name}"}}', encoding="utf-8")
    records.file(run).mkdir()
    ended = asyncio.run(own.finish(ScheduledRound("check", 1.0, 2.0, 0), (), asyncio.Event()))
    assert ended.text.startswith("no report: ")


class Broken:
    """Work that cannot start because the disk fails."""

    def check(self) -> Command:
        raise OSError(5, "Input/output error")

    def backup(self) -> Command:
        raise NotImplementedError

    async def finish(self, one: ScheduledRound, held: tuple[int, ...], stop: asyncio.Event) -> ScheduledRound:
        del held
        stop.set()
        return one


class Ahead(Broken):
    """Work that finishes at once, while the clock is set forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s, right = 0.0, time.time
        monkeypatch.setattr(time, "time", lambda: right() + self.ahead_s)

    def check(self) -> Command:
        self.ahead_s = 7200.0
        return Command(["true"], {}, 60.0)

    async def finish(self, one: ScheduledRound, held: tuple[int, ...], stop: asyncio.Event) -> ScheduledRound:
        del held, stop
        return one


def schedule(folder: Path, work: Broken) -> Schedule:
    book = DiaryFile(folder / "diary.json")
    return Schedule(Agenda(1800.0), book, work, folder / "round.lock", asyncio.Event(), lambda _: None)


def test_a_round_that_cannot_start_is_recorded_and_ends_nothing(tmp_path: Path) -> None:
    found = schedule(tmp_path, Broken())
    asyncio.run(found.run())
    (one,) = found.diary.rounds
    assert (one.text, one.exit_code, found.diary.failed_total) == ("cannot be started: Input/output error", None, 1)


def test_a_clock_set_forward_during_a_round_makes_none_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = schedule(tmp_path, Ahead(monkeypatch))
    asyncio.run(found.turn())
    (one,) = found.diary.rounds
    assert (found.diary.missed_total, found.diary.clock) == (0, "the clock was set forward by 7200 s")
    assert one.ended_s is not None
    assert 0 < one.ended_s - one.begun_s < 7200


def test_the_last_success_and_backup_are_never_pruned() -> None:
    backup, well = ScheduledRound("backup", NOON_S, NOON_S + 1, 0), ScheduledRound("check", NOON_S + 2, NOON_S + 3, 0)
    diary = Diary().begun(backup).ended(backup).begun(well).ended(well)
    for number in range(2 * MOST_ROUNDS):
        bad = ScheduledRound("check", NOON_S + 10 + number, NOON_S + 10 + number, 3)
        diary = diary.begun(replace(bad, ended_s=None, exit_code=None)).ended(bad)
    assert diary.rounds[:2] == (backup, well)
    assert len(diary.rounds) == MOST_ROUNDS + 2
    assert diary.last("backup", is_ended=True) == backup


def test_pages_of_findings_stay_with_their_run(records: Records) -> None:
    run = kept(records, runs.BEGAN_S)
    own = OwnChecks(
        Agenda(900.0),
        Diary,
        lambda: 0.0,
        str,
        children(records).make,
        0.0,
        RecentRuns(records.folder, "small"),
        Silencer(
            records.folder,
            records,
            lambda words: Command(words, {}, PATIENCE_S),
            records.folder / "log",
            asyncio.Event(),
            lambda _: None,
        ),
    )
    first = api.findings(ServedFabric(records, own), [("limit", "1")])
    assert first["next"] == f"/api/v1/findings?limit=1&offset=1&run={run.name}"


def posted(body: bytes, *, is_gone: bool = False, **headers: str) -> Request:
    """A posted login form."""
    reported = [(key.encode(), text.encode()) for key, text in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/login", "headers": reported, "client": ("127.0.0.1", 5)}

    async def receive() -> dict[str, Any]:
        if is_gone:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)


def login(request: Request, *, is_tls: bool = False) -> Any:
    door = Door(Token(TOKEN), "small", {"fabric.example"}, "netkit_1", is_tls=is_tls)
    return asyncio.run(door.login(request))


def test_a_malformed_form_is_refused() -> None:
    assert login(posted(b"&".join([b"a=b"] * (MOST_FIELDS + 1)))).status_code == 400
    assert login(posted(b"", is_gone=True)).status_code == 400


def test_a_session_over_tls_has_a_secure_cookie() -> None:
    form = f"token={TOKEN}".encode()
    host = "fabric.example"
    assert "Secure" in login(posted(form, origin=f"https://{host}", host=host)).headers["set-cookie"]
    assert "Secure" in login(posted(form, host=host), is_tls=True).headers["set-cookie"]
    assert "Secure" not in login(posted(form, origin=f"http://{host}", host=host)).headers["set-cookie"]


def test_a_stalled_handshake_is_closed_and_others_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, key = certificate(tmp_path)
    place = listening.ListenAddress("127.0.0.1", free_port(), made, key)
    trusted = ssl.create_default_context(cafile=str(made))
    answer = asyncio.run(_of_served(place, lambda: _asked(place.port, trusted)))
    assert answer.startswith(b"HTTP/1.1 204 No Content")
    monkeypatch.setattr(listening, "ASK_S", 0.5)
    assert asyncio.run(_of_served(place, lambda: _read(_connected(place.port)))) == b""


async def _of_served(place: listening.ListenAddress, client: Callable[[], bytes]) -> bytes:
    """The bytes that a client reads from a server that sends nothing."""
    web = listening.server(_empty, place)
    with place.opened() as opened:
        ends = asyncio.ensure_future(web.serve(sockets=[opened]))
        found = await asyncio.to_thread(client)
        web.should_exit = True
        await ends
    return found


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S / 4)


async def _empty(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def _read(one: socket.socket) -> bytes:
    with one:
        return one.recv(1000)


def _asked(port: int, trusted: ssl.SSLContext) -> bytes:
    one = trusted.wrap_socket(_connected(port), server_hostname="127.0.0.1")
    one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return _read(one)
