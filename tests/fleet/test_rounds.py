"""One round of a fabric at a time at each site, whoever begins it and whatever is killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from netkit.errors import Interrupted
from netkit.fleet import coordinator as coordinating
from netkit.fleet import link as linking
from netkit.fleet.answer import JobAnswer, LostJob
from netkit.fleet.coordinator import Coordinator, RoundBusyError
from netkit.fleet.link import BrokerLink, RoundEndingError
from netkit.fleet.rabbitmq import ended_round_queue, round_queue
from tests.command import NETKIT, ROOT, environment, run
from tests.fleet.bed import FABRIC, PATIENCE_S, Bed, eventually, job, password
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.repository import FabricRepository, fabric_repository
from tests.lanes import is_whole

pytestmark = needs_rabbitmq
CHECK = "check of inventory/tokyo"
BUSY = "another check of inventory/tokyo is running at the site tokyo, or was killed within the last minutes"


@pytest.fixture(autouse=True)
def _brief_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "ROUND_LIMITS", {"x-expires": 4000})
    monkeypatch.setattr(linking, "ENDED_LIMITS", {"x-expires": 3000})


@pytest.fixture(autouse=True)
def _empty_queues(fleet_bed: Bed) -> Iterator[None]:
    yield
    fleet_bed.end_workers()
    fleet_bed.purge()


def is_free(fleet_bed: Bed, name: str = CHECK, *sites: str) -> bool:
    with fleet_bed.coordinator() as other:
        try:
            other.hold(name, sites or ("tokyo",))
        except RoundBusyError:
            return False
    return True


def break_off(fleet: Coordinator) -> None:
    """Drop the connections without closing them, as a killed coordinator does."""
    for site in fleet._sites.values():  # noqa: SLF001
        assert site.link is not None
        site.link.detach()
        site.link = None
        site.has_round = False


def test_a_second_round_is_refused_until_the_first_has_ended(fleet_bed: Bed) -> None:
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        with fleet_bed.coordinator() as second, pytest.raises(RoundBusyError, match=f"{BUSY}; nothing was started"):
            second.hold(CHECK, ["tokyo"])
        assert is_free(fleet_bed, "backup of inventory/tokyo")
        assert is_free(fleet_bed, "check of inventory/other")
        assert is_free(fleet_bed, CHECK, "osaka")
        assert not is_free(fleet_bed, CHECK, "osaka", "tokyo")
        assert is_free(fleet_bed, CHECK, "osaka"), "what is refused at one site is held at none"
        time.sleep(4.5)
        assert not is_free(fleet_bed), "it does not expire while it is held"
    assert is_free(fleet_bed)


def test_a_killed_coordinator_keeps_its_round_while_workers_may_go_on(fleet_bed: Bed) -> None:
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        break_off(first)
    assert not is_free(fleet_bed)
    eventually(lambda: is_free(fleet_bed))


def test_a_round_waits_until_the_jobs_of_one_that_was_given_up_have_ended(fleet_bed: Bed, tmp_path: Path) -> None:
    fleet_bed.worker("tokyo", "unheard", "slow", GATE=str(tmp_path / "gate"))
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        next(first.run([job()]))
    began_s, lines = time.monotonic(), list[str]()
    with fleet_bed.coordinator(lines.append) as second:
        second.hold(CHECK, ["tokyo"])
    assert time.monotonic() - began_s > 1.5
    assert lines == ["tokyo: waits, since jobs of a round that was given up may still run"]
    assert is_free(fleet_bed)


def test_a_coordinator_that_connects_again_goes_on_with_its_round(fleet_bed: Bed, tmp_path: Path) -> None:
    worker = fleet_bed.worker("tokyo", "steady", "slow", GATE=str(tmp_path / "gate"))
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        events = first.run([job(within_s=120)])
        next(events)
        break_off(first)
        list(first._step(0.5))  # noqa: SLF001
        assert not is_free(fleet_bed)
        (tmp_path / "gate").touch()
        answers = [event for event in events if isinstance(event, JobAnswer)]
    assert [event.payload for event in answers] == [
        f"first of {worker.process.pid}".encode(),
        f"tokyo leaf01 {worker.process.pid}".encode(),
    ]
    assert is_free(fleet_bed)


def test_jobs_are_lost_if_another_round_has_begun_meanwhile(fleet_bed: Bed) -> None:
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        break_off(first)
        eventually(lambda: is_free(fleet_bed))
        with fleet_bed.coordinator() as second:
            second.hold(CHECK, ["tokyo"])
            one = job()
            lost = [event for event in first.run([one]) if isinstance(event, LostJob)]
            assert [(event.job.nonce, event.reason) for event in lost] == [(one.nonce, BUSY)]


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TRACED = (coordinating.__file__, linking.__file__)


@pytest.fixture
def _raising_signals() -> Iterator[None]:
    """Have signals raise, as the command line does with a fleet."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def steps(action: Callable[[], None], signalled: int = 0) -> int:
    """Return the number of calls, lines and returns in the coordinator and its link; signal at one of them."""
    seen = 0

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(TRACED):
            return None
        seen += 1
        if seen == signalled:
            signal.raise_signal(SIGNALS[signalled % len(SIGNALS)])
        return trace

    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(None)
    return seen


@pytest.mark.usefixtures("_raising_signals")
def test_a_signal_at_any_point_gives_the_round_up(fleet_bed: Bed) -> None:
    def held() -> None:
        with fleet_bed.coordinator() as fleet:
            fleet.hold(CHECK, ["tokyo"])

    count = steps(held)
    assert count > 200
    points = range(1, count + 1, 1 if is_whole() else 4)  # of each signal, some
    interrupted = 0
    with fleet_bed.link() as link:
        for point in points:
            try:
                steps(held, point)
            except Interrupted:
                interrupted += 1
            assert not link.exists(round_queue(CHECK)), f"signalled at step {point} of {count}"
    assert interrupted > len(points) / 4
    assert is_free(fleet_bed)


@pytest.mark.usefixtures("_raising_signals")
def test_a_round_whose_jobs_may_run_is_given_up_by_signals(fleet_bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    real = BrokerLink.release_round

    def signalled(*arguments: Any, **options: Any) -> None:
        for number in SIGNALS:  # whoever presses Ctrl-C does it more than once
            signal.raise_signal(number)
        real(*arguments, **options)

    monkeypatch.setattr(BrokerLink, "release_round", signalled)

    def run_until(name: str, seconds: float) -> None:
        with fleet_bed.coordinator() as fleet:
            fleet.hold(name, ["tokyo"])
            signal.setitimer(signal.ITIMER_REAL, seconds)
            list(fleet.run([job()]))

    given_up = 0
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        for number in range(15):
            with pytest.raises(Interrupted):
                run_until(f"round {number}", 0.0005 * 1.4**number)
            with fleet_bed.link() as link:
                assert not link.exists(round_queue(f"round {number}"))
                given_up += link.exists(ended_round_queue(f"round {number}"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert given_up > 5, "its jobs had been given"


def test_a_round_is_given_up_over_a_new_connection(fleet_bed: Bed) -> None:
    with fleet_bed.coordinator() as fleet:
        fleet.hold(CHECK, ["tokyo"])
        held = fleet._sites["tokyo"].link  # noqa: SLF001
        assert held is not None
        held.detach()
    assert is_free(fleet_bed)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> FabricRepository:
    return fabric_repository(tmp_path_factory.mktemp("rounds") / "origin", FABRIC["tokyo"])


@pytest.mark.parametrize("verb", ["check", "snapshot", "backup"])
def test_a_verb_is_refused_with_its_own_code(
    verb: str, origin: FabricRepository, fleet_bed: Bed, tmp_path: Path
) -> None:
    out = {
        "check": ("--store", tmp_path / "store.db"),
        "snapshot": ("-o", tmp_path / "out.json"),
        "backup": ("-o", tmp_path),
    }
    variables: dict[str, Any] = {
        "NETKIT_SECRET_BROKER": password(fleet_bed.home),
        "NETKIT_STORE": str(tmp_path / "store.db"),
    }
    with fleet_bed.coordinator() as first:
        first.hold(f"{verb} of {FABRIC['tokyo']}", ["tokyo"])
        done = run(
            *(verb, "--fabric", origin.folder / FABRIC["tokyo"], "--fleet", fleet_bed.home), *out[verb], **variables
        )
    assert (done.returncode, done.stdout) == (5, "")
    assert f"{BUSY.replace('check', verb)}; nothing was started; wait for it to finish" in done.stderr


def test_signals_give_a_round_up(origin: FabricRepository, fleet_bed: Bed, tmp_path: Path) -> None:
    words = ("backup", "--fabric", origin.folder / FABRIC["tokyo"], "--fleet", fleet_bed.home, "-o", tmp_path / "saved")
    variables = {"NETKIT_SECRET_BROKER": password(fleet_bed.home)}
    process = subprocess.Popen([*NETKIT, *map(str, words)], cwd=ROOT, env=environment(**variables))
    name = f"backup of {FABRIC['tokyo']}"
    eventually(lambda: round_queue(name) in fleet_bed.server.control("list_queues", "-p", "netkit.tokyo", "name"))
    for number in SIGNALS:
        process.send_signal(number)
    assert process.wait(PATIENCE_S) == 130
    vhost, credentials = fleet_bed.settings.virtual_host("tokyo"), fleet_bed.credentials()
    user = fleet_bed.settings.user("coordinator")
    with (
        BrokerLink(fleet_bed.settings.broker, vhost, user, credentials) as link,
        pytest.raises(RoundEndingError, match="jobs of a round that was given up may still run"),
    ):
        link.hold_round(name, "0" * 32)
