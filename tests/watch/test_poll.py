"""Polling over a persistent connection: lagging, silent, lost and garbled devices."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from netkit.errors import AccessError, Problem
from netkit.facts import Absent, Facts, Sample
from netkit.facts.qos import Buffer
from netkit.platforms.view import Reply, View, Viewer
from netkit.watch.feed import Condition, Poll, ReconnectingFeed
from netkit.watch.session import running
from tests.lab.running import until


def parse(text: str) -> Facts:
    if not text.isdigit():
        return Facts(counters=Absent("?"))
    return Facts(counters={"rx_bytes": {"swp1": int(text)}, "fec_bin": {"swp1/0": 1}})


VIEWS = (
    View(("count",), frozenset({"counters"}), parse),
    View(("dear",), frozenset({"counters"}), parse, is_costly=True),
    View(("other",), frozenset({"interfaces"}), lambda _: Facts()),
    View(("count",), frozenset({"buffers"}), lambda text: Facts(buffers={"swp1/3": Buffer(None, int(text))})),
    View(("levels",), frozenset({"buffers"}), lambda _: Facts(buffers={"swp1/4": Buffer(None, 1)})),
)


Start = Callable[[], ReconnectingFeed[Viewer]]


class Device:
    """A device whose connections behave as scripted."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []
        self.opened = self.closed = 0
        self.answer: Callable[[], str] = lambda: str(len(self.asked))
        self.hung_up = threading.Event()

    def open(self) -> None:
        self.opened += 1

    def close(self) -> None:
        self.closed += 1
        self.hung_up.set()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        self.asked.append(commands)
        text = self.answer()
        return tuple(Reply(text, at_s=time.time()) for _ in commands)

    def running_files(self) -> dict[str, str | None]:
        raise NotImplementedError

    def os_version(self) -> str:
        raise NotImplementedError


class Heard:
    """A listener that records."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.conditions: list[Condition] = []

    def deliver(self, device: str, sample: Sample) -> None:
        assert device == "leaf01"
        self.samples.append(sample)

    def report(self, device: str, condition: Condition) -> None:
        assert device == "leaf01"
        self.conditions.append(condition)

    def states(self) -> list[str]:
        return list(dict.fromkeys(one.state for one in self.conditions))


@pytest.fixture(name="device")
def device_of_test() -> Device:
    return Device()


@pytest.fixture(name="heard")
def heard_by_test() -> Heard:
    return Heard()


@pytest.fixture(name="watched")
def watched_device(device: Device, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr("netkit.watch.feed.FIRST_WAIT_S", 0.01)
    feeds: list[ReconnectingFeed[Viewer]] = []

    def start() -> ReconnectingFeed[Viewer]:
        feed = ReconnectingFeed(Poll("leaf01", VIEWS, 0.01), lambda: device)
        feed.start(heard)
        feeds.append(feed)
        return feed

    yield start
    for feed in feeds:
        feed.stop()
        feed.join()


def test_only_cheap_counter_views_are_polled_over_one_connection(device: Device, heard: Heard, watched: Start) -> None:
    watched()
    until(lambda: len(heard.samples) > 5, "samples")
    assert set(device.asked) == {("count",)}
    assert device.opened == 1
    assert [sample.counters for sample in heard.samples[:2]] == [{"rx_bytes": {"swp1": n}} for n in (1, 2)]
    assert [sample.buffers for sample in heard.samples[:2]] == [{"swp1/3": Buffer(None, n)} for n in (1, 2)]


def test_a_lagging_device_is_polled_less_often_and_reported(device: Device, heard: Heard, watched: Start) -> None:
    device.answer = lambda: time.sleep(0.1) or "1"  # type: ignore[func-returns-value]
    watched()
    until(lambda: len(heard.samples) > 1, "samples")
    device.answer = lambda: "1"
    assert heard.conditions[-1].state == "slow"
    assert heard.conditions[-1].every_s >= 0.2
    assert heard.samples[1].at_s - heard.samples[0].at_s >= 0.19
    until(lambda: heard.conditions[-1].state == "live", "the device recovers")


def test_a_lost_connection_is_reported_and_opened_again(device: Device, heard: Heard, watched: Start) -> None:
    def lost() -> str:
        device.answer = lambda: "7"
        raise AccessError(Problem("leaf01: the connection is lost", "try again"))

    device.answer = lost
    watched()
    until(lambda: bool(heard.samples), "samples")
    assert heard.states() == ["connecting", "gone", "live"]
    gone = next(one for one in heard.conditions if one.state == "gone")
    assert (gone.why, device.opened, device.closed) == ("the connection is lost", 2, 1)


@pytest.mark.parametrize("answer", ["garbage", ""])
def test_garbage_is_not_a_sample(device: Device, heard: Heard, watched: Start, answer: str) -> None:
    device.answer = lambda: answer
    watched()
    until(lambda: "gone" in heard.states(), "the garbage is noticed")
    assert (heard.samples, heard.conditions[1].why) == ([], "its answers cannot be parsed")


def test_a_netkit_defect_affects_one_device_alone(device: Device, heard: Heard, watched: Start) -> None:
    def broken() -> str:
        raise ZeroDivisionError("by zero")

    device.answer = broken
    watched()
    until(lambda: "gone" in heard.states(), "the fault is told")
    assert heard.conditions[1].why == "reading it failed: ZeroDivisionError: by zero"


def test_delays_grow_while_a_device_is_unreachable(device: Device, heard: Heard, watched: Start) -> None:
    device.answer = lambda: ""
    watched()
    until(lambda: sum(one.state == "gone" for one in heard.conditions) > 3, "tries")
    assert [one.again_s for one in heard.conditions if one.state == "gone"][:4] == [0.01, 0.02, 0.04, 0.08]


def test_closing_disconnects_a_device_that_never_answers(device: Device, heard: Heard) -> None:
    device.answer = lambda: str(device.hung_up.wait(60))
    feed = ReconnectingFeed(Poll("leaf01", VIEWS, 0.01), lambda: device)
    with running([feed], heard):
        until(lambda: bool(device.asked), "a question")
    feed.join()
    assert device.hung_up.is_set()
    assert (heard.samples, heard.states()) == ([], ["connecting"])
