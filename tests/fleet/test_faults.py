"""Workers, the broker and messages fail at every step: each job is answered once, or lost by name."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from netkit import __version__
from netkit.fleet import coordinator as coordinating
from netkit.fleet import link as linking
from netkit.fleet.answer import JobAnswer, JobEvent, JobProgress, LostJob
from netkit.fleet.coordinator import Coordinator
from netkit.fleet.job import MOST_BYTES, CheckWork, SiteJob, canonical, sign_job
from netkit.fleet.link import BrokerLink
from netkit.fleet.rabbitmq import DISPATCH, JOBS, STATUS
from netkit.fleet.signing import signed
from tests.fleet.bed import PATIENCE_S, Bed, WorkerProcess, eventually, job
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.namespace import needs_root

pytestmark = needs_rabbitmq
WITHIN_S = 15
"""Long enough for a busy machine to begin a job."""


@pytest.fixture(autouse=True)
def _no_long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinating, "GRACE_S", 1.0)


@pytest.fixture(autouse=True)
def _empty_queues(fleet_bed: Bed) -> Iterator[None]:
    """End workers and leave no job behind for the next test."""
    yield
    fleet_bed.end_workers()
    fleet_bed.purge()


def results(events: Sequence[JobEvent]) -> list[tuple[str, int, bytes, bool]]:
    return [(e.job.nonce, e.sequence, e.payload, e.is_last) for e in events if isinstance(e, JobAnswer)]


def lost(events: Sequence[JobEvent]) -> list[str]:
    return [event.reason for event in events if isinstance(event, LostJob)]


def begun_by(worker: WorkerProcess) -> int:
    return sum(line.startswith("begins") for line in worker.lines())


def echoed(one: SiteJob, worker: WorkerProcess) -> tuple[str, int, bytes, bool]:
    return one.nonce, 0, f"{one.site} {one.devices[0]} {worker.process.pid}".encode(), True


def run(bed: Bed, *jobs: SiteJob) -> list[JobEvent]:
    with bed.coordinator() as fleet:
        return list(fleet.run(jobs))


def test_a_worker_that_is_killed_is_replaced_by_another(fleet_bed: Bed, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = fleet_bed.worker("tokyo", "first", "slow", GATE=str(gate))
    one = job()
    with fleet_bed.coordinator() as fleet:
        events = fleet.run([one])
        assert next(events) == JobProgress(_sent(fleet, one), _name(first), "")
        second = fleet_bed.worker("tokyo", "second", "slow", GATE=str(gate))
        first.kill()
        eventually(lambda: begun_by(second))
        gate.touch()
        found = list(events)
    assert results(found) == [
        (one.nonce, 0, f"first of {second.process.pid}".encode(), False),
        (one.nonce, 1, f"tokyo leaf01 {second.process.pid}".encode(), True),
    ]
    assert lost(found) == []


def _sent(fleet: Coordinator, one: SiteJob) -> SiteJob:
    return next(pending.job for nonce, pending in fleet._pending.items() if nonce == one.nonce)  # noqa: SLF001


def _name(worker: WorkerProcess) -> str:
    return f"{os.uname().nodename[:40]}:{worker.process.pid}"


def test_a_worker_that_is_killed_begins_again_when_it_is_back(fleet_bed: Bed, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = fleet_bed.worker("tokyo", "same", "slow", GATE=str(gate))
    one = job()
    with fleet_bed.coordinator() as fleet:
        events = fleet.run([one])
        next(events)
        first.kill()
        gate.touch()
        again = fleet_bed.worker("tokyo", "same", "slow", GATE=str(gate))
        found = list(events)
    assert [payload for _, _, payload, _ in results(found)] == [
        f"first of {again.process.pid}".encode(),
        f"tokyo leaf01 {again.process.pid}".encode(),
    ]


def test_the_process_of_a_job_ends_with_its_worker(fleet_bed: Bed, tmp_path: Path) -> None:
    worker = fleet_bed.worker("tokyo", "parent", "slow", GATE=str(tmp_path / "gate"))
    with fleet_bed.coordinator() as fleet:
        next(fleet.run([job()]))
        (child,) = eventually(lambda: _children(worker.process.pid))
        worker.kill()
        eventually(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(child))


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def test_a_worker_that_is_asked_to_end_leaves_its_job_to_another(fleet_bed: Bed, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = fleet_bed.worker("tokyo", "leaving", "slow", GATE=str(gate))
    one = job()
    with fleet_bed.coordinator() as fleet:
        events = fleet.run([one])
        next(events)
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(PATIENCE_S) == 0
        gate.touch()
        second = fleet_bed.worker("tokyo", "staying", "slow", GATE=str(gate))
        found = list(events)
    assert [payload for _, _, payload, _ in results(found)] == [
        f"first of {second.process.pid}".encode(),
        f"tokyo leaf01 {second.process.pid}".encode(),
    ]


def test_the_broker_is_killed_while_jobs_wait_and_run(fleet_bed: Bed, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    worker = fleet_bed.worker("tokyo", "survivor", "slow", GATE=str(gate))
    jobs = [job(device=f"leaf{number:02}") for number in range(3)]
    with fleet_bed.coordinator() as fleet:
        events = fleet.run(jobs)
        next(events)
        fleet_bed.server.kill()
        fleet_bed.server.start()
        gate.touch()
        found = list(events)
    assert lost(found) == []
    assert sorted(results(found)) == sorted(
        line
        for one in jobs
        for line in [
            (one.nonce, 0, f"first of {worker.process.pid}".encode(), False),
            (one.nonce, 1, f"tokyo {one.devices[0]} {worker.process.pid}".encode(), True),
        ]
    )


def test_jobs_are_given_while_the_broker_is_down(fleet_bed: Bed) -> None:
    worker = fleet_bed.worker("tokyo", "patient")
    one = job()
    fleet_bed.server.kill()
    with fleet_bed.coordinator() as fleet:
        for _ in range(3):
            assert list(fleet._step(0.1)) == []  # noqa: SLF001
        events = fleet.run(_when_started(fleet_bed, one))
        assert results(list(events)) == [echoed(one, worker)]


def _when_started(bed: Bed, one: SiteJob) -> Iterator[SiteJob]:
    yield one
    bed.server.start()


def test_a_process_that_dies_is_named(fleet_bed: Bed) -> None:
    worker = fleet_bed.worker("tokyo", "crashing", "crash")
    (reason,) = lost(run(fleet_bed, job()))
    assert reason == f"failed by {_name(worker)}: its process ended with -9; is the machine short of memory?"
    worker = fleet_bed.worker("osaka", "defective", "defect")
    (reason,) = lost(run(fleet_bed, job("osaka")))
    assert reason == f"failed by {_name(worker)}: a defect of netkit: ZeroDivisionError: leaf01"


def test_a_job_that_does_not_end_is_ended_at_its_deadline(fleet_bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinating, "GRACE_S", 20.0)
    worker = fleet_bed.worker("tokyo", "endless", "forever")
    (reason,) = lost(run(fleet_bed, job(within_s=WITHIN_S)))
    assert reason == f"failed by {_name(worker)}: it did not end by its deadline"
    eventually(lambda: not _children(worker.process.pid))


def test_a_job_that_nobody_begins_is_lost_at_its_deadline(fleet_bed: Bed) -> None:
    assert lost(run(fleet_bed, job(within_s=2))) == ["no worker of the site tokyo began it by its deadline"]
    worker = fleet_bed.worker("tokyo", "late")
    time.sleep(1)
    assert begun_by(worker) == 0


def test_a_job_whose_worker_is_gone_names_it(fleet_bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = fleet_bed.worker("tokyo", "gone", "forever")
    one, real = job(), time.time
    with fleet_bed.coordinator() as fleet:
        events = fleet.run([one])
        next(events)
        worker.kill()
        monkeypatch.setattr(time, "time", lambda: real() + one.deadline_s - one.issued_s + 2)
        assert lost(list(events)) == [f"no answer by its deadline; {_name(worker)} began it"]


def published(bed: Bed, site: str, *messages: bytes) -> None:
    """Put messages into the queue of a site, as somebody who has taken over the broker could."""
    vhost = f"netkit.{site}"
    with BrokerLink(bed.settings.broker, vhost, "netkit.coordinator", bed.credentials()) as link:
        for message in messages:
            link.publish(DISPATCH, JOBS, message)


def dropped(worker: WorkerProcess) -> list[str]:
    prefixes = ("refused a message: ", "dropped ")
    return [line for line in worker.lines() if line.startswith(prefixes)]


def test_a_message_that_is_delivered_twice_is_answered_once(fleet_bed: Bed) -> None:
    worker = fleet_bed.worker("tokyo", "once")
    with fleet_bed.coordinator() as fleet:
        jobs = [one.model_copy(update={"reply": fleet._run}) for one in (job(), job(device="leaf02"))]  # noqa: SLF001
        events = fleet.run(jobs)
        found = [next(events)]
        while {one.job.nonce for one in found} != {one.nonce for one in jobs}:  # none comes before its original
            found.append(next(events))
        copies = [sign_job(one, fleet_bed.credentials().signing) for one in jobs]
        published(fleet_bed, "tokyo", *copies, *copies)
        found += events
        assert len(results(found)) == 2
        eventually(lambda: len(dropped(worker)) == 4)
        assert begun_by(worker) == 2
        # A later run of the same worker has not forgotten.
        worker.kill()
        worker = fleet_bed.worker("tokyo", "once")
        published(fleet_bed, "tokyo", *copies)
        eventually(lambda: len(dropped(worker)) == 2)
    assert begun_by(worker) == 0
    assert {line.partition("(")[2] for line in dropped(worker)} == {
        f"{nonce[:8]}): answered before" for nonce, *_ in results(found)
    }


def test_messages_that_are_no_jobs_of_this_site_change_nothing(fleet_bed: Bed) -> None:
    worker = fleet_bed.worker("tokyo", "wary")
    key, now_s = fleet_bed.credentials().signing, int(time.time())
    good = job()
    whole = sign_job(good, key)
    values = good.model_dump(mode="json")
    forged: dict[str, bytes] = {
        "no coordinator of fleet.yaml signed it": sign_job(good, fleet_bed.credentials("osaka").signing),
        "no coordinator of fleet.yaml signed it ": whole[:-1],
        "no coordinator of fleet.yaml signed it  ": whole[:100],
        "no coordinator of fleet.yaml signed it   ": b"",
        "no coordinator of fleet.yaml signed it    ": b"\x80\x04\x95" + whole,
        f"it has {MOST_BYTES + 1:,} bytes; a job has at most {MOST_BYTES:,}": bytes(MOST_BYTES + 1),
        "it is for the site osaka": sign_job(job("osaka"), key),
        "its deadline passed": sign_job(job(issued_s=now_s - 3600, deadline_s=now_s - 100), key),
        "it was issued 3": sign_job(job(issued_s=now_s + 3600, deadline_s=now_s + 3700), key),
        "its text is not canonical": signed(canonical(values) + b" ", "job", key),
        f"it is not a job of netkit {__version__}: work": signed(
            canonical({**values, "work": {"verb": "exec", "command": "reboot"}}), "job", key
        ),
        f"it is not a job of netkit {__version__}: template": signed(
            canonical({**values, "template": "{{ 7 * 7 }}"}), "job", key
        ),
        f"it is not a job of netkit {__version__}: ": signed(b"[" * 200_000, "job", key),
    }
    published(fleet_bed, "tokyo", *forged.values())
    eventually(lambda: len(dropped(worker)) == len(forged))
    for line, reason in zip(dropped(worker), forged, strict=True):
        assert line.startswith(f"refused a message: {reason.rstrip() if reason.endswith('  ') else reason.strip(' ')}")
    assert begun_by(worker) == 0
    assert results(run(fleet_bed, good)) == [echoed(good, worker)]


def test_a_coordinator_whose_clock_is_off_is_told_at_once(fleet_bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = fleet_bed.worker("tokyo", "punctual")
    real = time.time
    for off_s, reason in ((3600, "it was issued 3"), (-3600, "its deadline passed 3")):
        monkeypatch.setattr(time, "time", lambda off_s=off_s: real() + off_s)
        (found,) = lost(run(fleet_bed, job()))
        assert found.startswith(f"refused by {_name(worker)}: {reason}")
        assert found.endswith("by this machine's clock")
        monkeypatch.setattr(time, "time", real)


def test_answers_that_nobody_waits_for_end_their_job(fleet_bed: Bed, tmp_path: Path) -> None:
    worker = fleet_bed.worker("tokyo", "unheard", "slow", GATE=str(tmp_path / "gate"))

    def leave() -> None:  # once both are sent
        if begun_by(worker):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), fleet_bed.coordinator() as fleet:
        list(fleet.run([job(), job(device="leaf02")], leave))
    (tmp_path / "gate").touch()
    eventually(lambda: sum("no coordinator waits for it" in line for line in worker.lines()) == 2)
    assert results(run(fleet_bed, one := job())) == [
        (one.nonce, 0, f"first of {worker.process.pid}".encode(), False),
        (one.nonce, 1, f"tokyo leaf01 {worker.process.pid}".encode(), True),
    ]


def test_a_silent_job_that_nobody_waits_for_is_ended(fleet_bed: Bed) -> None:
    worker = fleet_bed.worker("tokyo", "silent", "forever", PULSE_S="1")
    with fleet_bed.coordinator() as fleet:
        next(fleet.run([job()]))
        assert eventually(lambda: _children(worker.process.pid))
    eventually(lambda: any("gave up, since no coordinator waits for it" in line for line in worker.lines()))
    assert _children(worker.process.pid) == []


@contextmanager
def slow_link(target: int, pause_s: float) -> Iterator[int]:
    """Yield a port of a link to another one that carries 16 kB at a time in each direction, with pauses between."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def carry(source: socket.socket, sink: socket.socket) -> None:
            with suppress(OSError):
                while data := source.recv(16_384):
                    time.sleep(pause_s)
                    sink.sendall(data)
            for one in (source, sink):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    near, _ = server.accept()
                    far = socket.create_connection(("127.0.0.1", target))
                    for pair in ((near, far), (far, near)):
                        threading.Thread(target=carry, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(server.getsockname()[1])


def test_a_slow_link_only_takes_longer(fleet_bed: Bed) -> None:
    with slow_link(fleet_bed.server.port, 0.05) as port:
        worker = fleet_bed.worker("tokyo", "slowly", "large", port)
        began_s = time.monotonic()
        found = run(fleet_bed, job(within_s=120))
    assert [(number, len(payload), is_last) for _, number, payload, is_last in results(found)] == [
        (number, 400_000, number == 4) for number in range(5)
    ], worker.lines()
    assert time.monotonic() - began_s > 2


def test_a_broker_that_hangs_is_left(fleet_bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "CONFIRM_S", 2)
    worker = fleet_bed.worker("tokyo", "waiting", "slow", CONFIRM_S="2", HEARTBEAT_S="2", GATE="/nowhere")
    with fleet_bed.coordinator() as fleet:
        next(fleet.run([job()]))
        fleet_bed.server.freeze(is_frozen=True)
        try:
            # On a busy machine it may have been too slow before, and have come back.
            eventually(lambda: worker.lines()[-1].startswith("no connection") and not _children(worker.process.pid))
            fleet.__exit__()
        finally:
            fleet_bed.server.freeze(is_frozen=False)
    worker.kill()
    worker = fleet_bed.worker("tokyo", "after")
    assert results(run(fleet_bed, one := job())) == [echoed(one, worker)]


@needs_root
def test_a_worker_whose_disk_is_full_leaves_its_job_to_another(fleet_bed: Bed) -> None:
    place = fleet_bed.folder / "full"
    mount = f'mkdir {place} && mount -t tmpfs -o size=128k none {place} && exec "$@"'
    first = fleet_bed.worker("tokyo", "full", prefix=("unshare", "--mount", "sh", "-c", mount, "sh"))
    inside = ["nsenter", f"--mount=/proc/{first.process.pid}/ns/mnt", "sh", "-c"]
    subprocess.run([*inside, f"cat /dev/zero >{place}/fill"], check=False, capture_output=True, timeout=20)
    one = job()
    with fleet_bed.coordinator() as fleet:
        second: list[WorkerProcess] = []

        def replaced() -> Iterator[SiteJob]:
            yield one
            assert first.process.wait(PATIENCE_S) != 0
            second.append(fleet_bed.worker("tokyo", "roomy"))

        assert results(list(fleet.run(replaced()))) == [echoed(one, second[0])]
    assert "jobs.sqlite: cannot be used: database or disk is full; make room or check permissions" in first.lines()[-1]


def test_answers_of_another_site_or_run_are_dropped(fleet_bed: Bed) -> None:
    """A stolen worker of osaka has its own exchange only; even behind it, its answers count for nothing at tokyo."""
    worker = fleet_bed.worker("tokyo", "true")
    reports: list[str] = []
    with fleet_bed.coordinator(reports.append) as fleet:
        events = fleet.run([one := job()])
        first = next(events)
        assert isinstance(first, JobProgress)
        run_key = first.job.reply
        with BrokerLink(
            fleet_bed.settings.broker, "netkit.tokyo", "netkit.tokyo", fleet_bed.credentials("tokyo")
        ) as link:
            for body in (b"", b"x" * 200, signed(b"{}\n", "answer", fleet_bed.credentials("osaka").signing)):
                link.publish("answers", run_key, body)
        found = list(events)
    assert results(found) == [echoed(one, worker)]


def test_two_coordinators_do_not_take_each_others_answers(fleet_bed: Bed) -> None:
    worker = fleet_bed.worker("tokyo", "shared")
    with fleet_bed.coordinator() as first, fleet_bed.coordinator() as second:
        jobs = [[job(device=f"leaf{side}{number}") for number in range(4)] for side in (1, 2)]
        runs = [fleet.run(some) for fleet, some in zip((first, second), jobs, strict=True)]
        begun = [next(events) for events in runs]
        found = [[first, *events] for first, events in zip(begun, runs, strict=True)]
    assert [sorted(results(heard)) for heard in found] == [sorted(echoed(one, worker) for one in some) for some in jobs]


def test_a_verb_with_options_arrives(fleet_bed: Bed) -> None:
    worker = fleet_bed.worker("tokyo", "options")
    one = job(work=CheckWork(names=("links.*",), window_s=0).model_dump())
    assert results(run(fleet_bed, one)) == [echoed(one, worker)]


def test_the_status_shows_workers_and_what_they_do(fleet_bed: Bed, tmp_path: Path) -> None:
    worker = fleet_bed.worker("tokyo", "seen", "slow", GATE=str(tmp_path / "gate"))
    with fleet_bed.coordinator() as fleet:
        events = fleet.run([job()])
        next(events)
        published(fleet_bed, "tokyo", *(sign_job(job(), fleet_bed.credentials().signing) for _ in range(2)))

        def seen() -> Any:
            statuses = coordinating.site_statuses(fleet_bed.settings, fleet_bed.credentials())
            osaka, tokyo = sorted(statuses, key=lambda one: one.name)
            assert (osaka.waiting, osaka.receivers) == (0, 0)
            is_begun = any(one.verb for one in tokyo.workers if one.worker == _name(worker))
            return tokyo if is_begun else None

        status = eventually(seen)
        again = eventually(seen)
        mine = [[one for one in found.workers if one.worker == _name(worker)] for found in (status, again)]
        assert mine[0] == mine[1], "reading the status leaves it there"
        assert (status.failure, status.waiting, status.receivers) == ("", 2, 1)
        (running,) = [one for one in status.workers if one.worker == _name(worker)]
        assert (running.verb, running.fabric, running.shard) == ("backup", "inventory/tokyo", "leaf01")
        (tmp_path / "gate").touch()
        list(events)


def test_a_status_that_the_site_did_not_sign_is_left_out(fleet_bed: Bed) -> None:
    def seen() -> set[str]:
        statuses = coordinating.site_statuses(fleet_bed.settings, fleet_bed.credentials())
        return {one.worker for site in statuses if site.name == "osaka" for one in site.workers}

    before = seen()
    with BrokerLink(fleet_bed.settings.broker, "netkit.osaka", "netkit.osaka", fleet_bed.credentials("osaka")) as link:
        link.publish("answers", STATUS, b"forged")
    assert seen() - before == set()


def test_a_broker_that_is_unreachable_is_named(fleet_bed: Bed) -> None:
    unreachable = fleet_bed.settings.model_copy(
        update={"broker": fleet_bed.settings.broker.model_copy(update={"port": 1})}
    )
    found = list(coordinating.site_statuses(unreachable, fleet_bed.credentials()))
    assert {one.failure for one in found} == {"Connection refused"}
    with Coordinator(unreachable, fleet_bed.credentials()) as fleet:
        assert lost(list(fleet.run([job(within_s=1)]))) == [
            "no answer by its deadline: no connection to the broker: Connection refused"
        ]


def test_a_queue_that_is_missing_is_named(fleet_bed: Bed) -> None:
    connection = BrokerLink(fleet_bed.settings.broker, "netkit.osaka", "netkit.coordinator", fleet_bed.credentials())
    with connection:
        fleet_bed.server.control("delete_queue", "-p", "netkit.osaka", JOBS)
        (reason,) = lost(run(fleet_bed, job("osaka")))
    assert reason == "the broker has no queue for the site osaka; import its definitions"
    fleet_bed.server.control("import_definitions", str(fleet_bed.home / "broker" / "definitions.json"))
