"""Collecting from devices that answer from memory: which commands run, when, and what is kept after a failure."""

import threading
import time
from collections.abc import Mapping, Sequence

import pytest

from netkit.errors import AccessError, Problem
from netkit.facts import Absent, Facts, Observation
from netkit.facts.device import Interface, System
from netkit.observe import CollectOptions, Target, collect, collector
from netkit.observe.assemble import Readings, facts, instead, sample
from netkit.observe.collector import _Collection
from netkit.platforms.view import Reply, View


def counters(text: str) -> Facts:
    return Facts(counters={"rx_bytes": {"p": int(text)}}) if text else Facts(counters=Absent("no counters"))


def two(first: str, second: str) -> Facts:
    interfaces = {word: Interface() for word in f"{first} {second}".split()}
    return Facts(system=System(first) if first else Absent("no name"), interfaces=interfaces)


def cracked(_text: str) -> Facts:
    raise ValueError("no parser may do this")


COUNTING = View(("count",), frozenset({"counters"}), counters)
NAMING = View(("name", "ports"), frozenset({"system", "interfaces"}), two)


def test_views_are_merged_and_failures_are_absent() -> None:
    replies = {"name": Reply("", "timed out"), "ports": Reply("a b", at_s=2.0), "count": Reply("5", at_s=3.0)}
    found = facts([COUNTING, NAMING, View(("ports",), frozenset({"sessions"}), cracked)], replies)
    assert found.counters == {"rx_bytes": {"p": 5}}
    assert found.system == Absent("no name")
    assert found.interfaces == {"a": Interface(), "b": Interface()}
    assert found.sessions == Absent("ports: cannot be read (ValueError('no parser may do this'))")
    assert found.routes == Absent("not requested")
    assert sample([COUNTING, NAMING], replies) is not None
    assert facts([COUNTING], {}).counters == Absent("count: was not asked in time")


@pytest.mark.parametrize(
    ("reason", "failed", "why"),
    [
        ("the database cannot be read: it is no dump", ["name"], "name: does not end"),
        ("the database cannot be read: it is no dump", ["ports"], "the database cannot be read: it is no dump"),
        ("ports: answers with nothing", ["ports"], "ports: does not end"),
        ("ports: answers with nothing", ["name"], "ports: answers with nothing"),
        ("Linux has no such thing", ["name"], "Linux has no such thing"),
    ],
)
def test_unanswered_commands_make_facts_absent_with_that_reason(reason: str, failed: list[str], why: str) -> None:
    view = View(("name", "ports"), frozenset({"qos"}), lambda *_: Facts(qos=Absent(reason)))
    replies = {name: Reply("", "does not end" if name in failed else "") for name in ("name", "ports")}
    assert facts([view], replies).qos == Absent(why)


def test_of_a_failed_script_only_the_beginning_is_shown() -> None:
    view = View((f"grep -s . {'/sys ' * 900}",), frozenset({"qos"}), lambda _: Facts())
    found = facts([view], {view.commands[0]: Reply("", "does not end")}).qos
    assert isinstance(found, Absent)
    assert len(found.reason) < 130
    assert (found.reason[:15], found.reason[-15:]) == ("grep -s . /sys ", "…: does not end")


EACH = View(("each",), frozenset({"counters"}), counters)
AT_ONCE = View(("at once",), frozenset({"counters"}), counters, fallback=EACH)


@pytest.mark.parametrize("window_s", [0.0, 0.01])
def test_bulk_commands_without_facts_are_replaced_by_single_ones(window_s: float) -> None:
    device = Answering("a", {"at once": "", "each": "7", "name": "a"})
    target = Target("a", "frr", (AT_ONCE, NAMING))
    found = collect("f", [target], lambda _: device, CollectOptions(window_s=window_s)).snapshot.devices["a"]
    assert found.facts.counters == {"rx_bytes": {"p": 7}}
    assert [one.counters for one in found.samples] == [{"rx_bytes": {"p": 7}}] * (2 if window_s else 1)
    assert device.asked == (
        [("at once", "name", "ports"), ("each",)]
        if not window_s
        else [("at once",), ("each",), ("each",), ("name", "ports")]
    )


@pytest.mark.parametrize(
    ("reply", "asked"),
    [
        (Reply("3"), AT_ONCE),
        (Reply(""), EACH),
        (Reply("", "exit code 2: invalid choice"), EACH),
        (Reply("", "does not end"), EACH),
        (Reply("", "not answered: the connection is lost"), AT_ONCE),
        (None, AT_ONCE),
    ],
)
def test_unanswered_commands_are_not_retried_one_by_one(reply: Reply | None, asked: View) -> None:
    assert instead((AT_ONCE,), {"at once": reply} if reply else {}, Readings()) == (asked,)


def test_of_two_views_the_first_wins_and_the_other_fills_gaps() -> None:
    more = View(
        ("more",), frozenset({"counters", "system"}), lambda text: Facts(counters={"rx_bytes": {"q": int(text)}})
    )
    found = facts([COUNTING, more], {"count": Reply("1"), "more": Reply("2")})
    assert found.counters == {"rx_bytes": {"q": 2, "p": 1}}


def test_equal_replies_are_parsed_once() -> None:
    parsed = []

    def parse(text: str) -> Facts:
        parsed.append(text)
        return counters(text)

    view, readings = View(("count",), frozenset({"counters"}), parse), Readings()
    replies = (Reply("5", at_s=1.0), Reply("5", at_s=2.0), Reply("6", at_s=3.0), Reply("6", "exit code 1", at_s=4.0))
    found = [sample([view], {"count": reply}, readings) for reply in replies]
    assert [one and (one.at_s, one.counters["rx_bytes"]["p"]) for one in found] == [(1.0, 5), (2.0, 5), (3.0, 6), None]
    assert parsed == ["5", "6"]


def test_an_unanswered_command_does_not_move_the_time_of_a_sample() -> None:
    late = View(("late",), frozenset({"counters"}), counters)
    for failed in (Reply("", "does not end"), Reply("", "exit code 1: no", at_s=1_700_000_009.0)):
        found = sample([COUNTING, late], {"count": Reply("5", at_s=1_700_000_000.0), "late": failed})
        assert found is not None
        assert found.at_s == 1_700_000_000.0


class Answering:
    """A device that answers from memory."""

    def __init__(self, name: str, answers: Mapping[str, str], *, hangs: bool = False) -> None:
        self.name, self.answers, self.hangs = name, answers, hangs
        self.asked: list[tuple[str, ...]] = []
        self.opened = 0
        self.gone = threading.Event()

    def open(self) -> None:
        self.opened += 1

    def close(self) -> None:
        self.gone.set()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        self.asked.append(tuple(commands))
        if self.hangs and len(self.asked) > 1:
            assert self.gone.wait(30)
            raise AccessError(Problem(f"{self.name}: the connection is lost"))
        return tuple(Reply(self.answers.get(command, ""), at_s=time.time()) for command in commands)

    def running_files(self) -> Mapping[str, str | None]:
        return {"frr.conf": "secret"}

    def os_version(self) -> str:
        return "8.4"


def test_each_device_has_one_connection_with_counters_first_and_failures_stay_isolated() -> None:
    answers = {"count": "7", "name": "leaf", "ports": "p"}
    devices = {
        "leaf01": Answering("leaf01", answers),
        "leaf02": Answering("leaf02", answers, hangs=True),
    }

    def connect(name: str) -> Answering:
        if name not in devices:
            raise AccessError(Problem(f"{name}: connection refused"))
        return devices[name]

    targets = [Target(name, "frr", (COUNTING, NAMING)) for name in ("leaf01", "leaf02", "spine01")]
    found = collect("ai1", targets, connect, CollectOptions(window_s=0.01, deadline_s=0.5, has_config=True))
    seen = found.snapshot.devices
    assert devices["leaf01"].opened == devices["leaf02"].opened == 1
    assert devices["leaf01"].asked == [("count",), ("count",), ("name", "ports")]
    assert len(seen["leaf01"].samples) == 2
    assert seen["leaf01"].samples[1].at_s - seen["leaf01"].samples[0].at_s >= 0.01
    assert (seen["leaf01"].failure, seen["leaf01"].facts.system) == ("", System("leaf"))
    assert (seen["leaf02"].failure, len(seen["leaf02"].samples)) == ("no answer within 0.5 s", 1)
    assert seen["spine01"] == Observation("spine01", "frr", failure="connection refused")
    assert list(found.configs) == ["leaf01"]
    assert "secret" not in str(found.snapshot)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_setting_the_clock_within_the_window_changes_no_rate(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    began_s, real, sleep, moved_s = time.monotonic(), time.time, time.sleep, [0.0]

    def slept(seconds: float) -> None:
        sleep(seconds)
        moved_s[0] = step_s

    monkeypatch.setattr(time, "time", lambda: real() + moved_s[0])
    monkeypatch.setattr(time, "sleep", slept)
    device = Answering("leaf01", {"count": "7"})
    found = collect("ai1", [Target("leaf01", "frr", (COUNTING,))], lambda _: device, CollectOptions(window_s=0.05))
    first, last = found.snapshot.devices["leaf01"].samples
    assert 0.05 <= last.at_s - first.at_s <= time.monotonic() - began_s
    assert last.at_s <= found.snapshot.taken_s


def test_answers_before_a_disconnect_are_kept_and_the_device_counts_as_unreached() -> None:
    class Patient(Answering):
        """Returns its answers so far when it is closed."""

        def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
            assert self.gone.wait(30)
            return tuple(Reply(self.answers.get(command, "")) for command in commands)

    device = Patient("leaf01", {"name": "leaf", "ports": "p"})
    found = collect("ai1", [Target("leaf01", "frr", (NAMING,))], lambda _: device, CollectOptions(deadline_s=0.5))
    seen = found.snapshot.devices["leaf01"]
    assert (seen.failure, seen.facts.system) == ("no answer within 0.5 s", System("leaf"))


def test_a_device_that_cannot_be_closed_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "HANG_UP_S", 0.1)
    other_is_through, waits = threading.Event(), []

    class Sticking(Answering):
        """The first does not return until the other was closed."""

        def close(self) -> None:
            if self.name == "leaf02":
                other_is_through.set()
            waits.append(other_is_through.wait(10))
            super().close()

    devices = {name: Sticking(name, {"count": "7"}, hangs=True) for name in ("leaf01", "leaf02")}
    targets = [Target(name, "frr", (COUNTING, NAMING)) for name in devices]
    found = collect("ai1", targets, devices.__getitem__, CollectOptions(window_s=0.01, deadline_s=0.3)).snapshot.devices
    assert {name: one.failure for name, one in found.items()} == dict.fromkeys(devices, "no answer within 0.3 s")
    assert all(waits)


def test_a_device_that_never_returns_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "HANG_UP_S", 0.1)
    seen = threading.Event()

    class Clinging(Answering):
        """Does not return before its facts were read."""

        def close(self) -> None:
            assert seen.wait(30)
            super().close()

    device = Clinging("leaf01", {"count": "7"})
    found = collect("ai1", [Target("leaf01", "frr", (COUNTING,))], lambda _: device, CollectOptions()).snapshot
    assert (found.devices["leaf01"].failure, device.gone.is_set()) == ("", False)
    seen.set()


def test_a_source_without_configurations_is_not_asked_for_them() -> None:
    device = Answering("leaf01", {"name": "leaf", "ports": "p"})
    where = Target("leaf01", "frr", (NAMING,), has_config=False)
    found = collect("ai1", [where], lambda _: device, CollectOptions(has_config=True))
    assert (found.configs, found.snapshot.devices["leaf01"].failure) == ({}, "")


def test_after_an_interrupt_no_device_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    began, opened, workers = threading.Event(), [], []
    devices = {name: Answering(name, {}) for name in ("leaf01", "leaf02", "leaf03")}

    def hung(device: Answering) -> None:
        opened.append(device.name)
        workers.append(threading.current_thread())
        began.set()
        assert device.gone.wait(30)

    def interrupted(_collection: object, now_s: float) -> None:
        if now_s != float("inf"):
            assert began.wait(30)
            raise KeyboardInterrupt
        devices["leaf01"].close()

    monkeypatch.setattr(Answering, "open", hung)
    monkeypatch.setattr(_Collection, "_hang_up_late", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect(
            "f", [Target(name, "frr", (COUNTING,)) for name in devices], devices.__getitem__, CollectOptions(parallel=1)
        )
    workers[0].join(30)
    assert opened == ["leaf01"]
