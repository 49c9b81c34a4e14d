"""The outbox: stored with its run, sent by one process at a time, and never under two names."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from netkit.judge import fail
from netkit.judge.run import CheckResult
from netkit.store import Source
from netkit.store.outbox import ClaimedMessage, Memory, NotifyDecision, QueuedNotification, WaitingMessages
from netkit.store.record import packed
from netkit.store.state import Key, SilenceEnd, States
from netkit.store.store import Store, open_store
from tests.store.runs import BEGAN_S, DAY_S, SOURCE, judgement, result, run, snapshot

DOWN = Key("links.up", "leaf01", "swp1")
LATER_S = 1e12


def tell(store: Store, at_s: float, *texts: str, receiver: str = "noc") -> None:
    """Save a run with a notification."""
    posts = [QueuedNotification(receiver, text) for text in texts]
    store.save(run(at_s), judgement(), snapshot(at_s), decide=lambda *_: NotifyDecision({}, posts))


def remember(store: Store, at_s: float, memory: Memory, *results: CheckResult) -> tuple[Memory, States]:
    """Save a run after which something is remembered; return what was remembered before, and what it judged."""
    asked: list[tuple[Memory, States]] = []

    def decide(before: Memory, states: States, ends: Sequence[SilenceEnd]) -> NotifyDecision:
        assert ends == ()
        asked.append((before, states))
        return NotifyDecision(memory, ())

    store.save(run(at_s), judgement(*results), snapshot(at_s), decide=decide)
    return asked[0]


def bodies(claimed: ClaimedMessage | None) -> Sequence[object]:
    assert claimed is not None
    return claimed.bodies


def test_unsent_notifications_go_into_one_message(store: Store) -> None:
    tell(store, BEGAN_S, "a")
    tell(store, BEGAN_S + 1, "b", "c")
    outbox = store.outbox_of(SOURCE)
    claimed = outbox.claim("noc", BEGAN_S, 60)
    assert claimed is not None
    assert claimed.bodies == ("a", "b", "c")
    outbox.sent(claimed, BEGAN_S)
    assert outbox.claim("noc", LATER_S, 60) is None
    assert outbox.waiting() == ()


def test_a_failed_message_keeps_its_name_and_content(store: Store) -> None:
    outbox = store.outbox_of(SOURCE)
    tell(store, BEGAN_S, "a")
    first = outbox.claim("noc", 100, 60)
    assert first is not None
    outbox.failed(first, 200)
    tell(store, BEGAN_S + 1, "b")
    tell(store, BEGAN_S + 2, "c")
    assert outbox.claim("noc", 199, 60) is None
    again = outbox.claim("noc", 200, 60)
    assert again is not None
    assert (again.name, again.bodies, again.attempts) == (first.name, ("a",), 1)
    outbox.sent(again, 201)
    rest = outbox.claim("noc", 201, 60)
    assert rest is not None
    assert (rest.name != first.name, rest.bodies) == (True, ("b", "c"))


def test_a_claim_of_everything_includes_failed_messages(store: Store) -> None:
    outbox = store.outbox_of(SOURCE)
    tell(store, BEGAN_S, "a")
    first = outbox.claim("noc", 100, 60, outdated=str.lower)
    assert first is not None
    outbox.failed(first, 100)
    tell(store, BEGAN_S + 1, "b")
    assert bodies(outbox.claim("noc", 100, 60, outdated=str.lower)) == ("a", "b")


def test_outdated_parts_of_notifications_are_removed(store: Store) -> None:
    outbox = store.outbox_of(SOURCE)
    for number in range(3):
        tell(store, BEGAN_S + number, "A" * 9 + "b")
    first = outbox.claim("noc", 100, 60, outdated=_without_a)
    assert bodies(first) == ("b", "b", "AAAAAAAAAb")
    assert first is not None
    outbox.failed(first, 100)
    tell(store, BEGAN_S + 3, "Ac")
    assert bodies(outbox.claim("noc", 160, 60)) == ("b", "b", "AAAAAAAAAb")
    assert bodies(outbox.claim("noc", 220, 60, outdated=_without_a)) == ("b", "b", "b", "Ac")


def _without_a(body: str) -> str:
    return body.replace("A", "")


def test_the_size_of_a_message_is_limited_and_the_rest_is_the_next_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox, data = store.outbox_of(SOURCE), len(packed("a"))
    monkeypatch.setattr("netkit.store.outbox.MOST_BYTES", 2 * data)
    large = "".join(map(chr, range(32, 120)))
    tell(store, BEGAN_S, "a", "b", "c", large, "d")
    sent = []
    while claimed := outbox.claim("noc", 100, 60):
        sent.append(claimed.bodies)
        outbox.sent(claimed, 100)
    assert sent == [("a", "b"), ("c",), (large,), ("d",)]


def test_the_claim_of_a_dead_process_expires(store: Store) -> None:
    outbox = store.outbox_of(SOURCE)
    tell(store, BEGAN_S, "a")
    first = outbox.claim("noc", 100, 60)
    tell(store, BEGAN_S + 1, "b")
    assert outbox.claim("noc", 159, 60) is None
    again = outbox.claim("noc", 160, 60)
    assert first is not None
    assert again is not None
    assert (again.name, again.bodies) == (first.name, ("a",))


def test_a_clock_that_was_ahead_delays_nothing(store: Store) -> None:
    outbox = store.outbox_of(SOURCE)
    tell(store, BEGAN_S, "a")
    ahead_s = 100 + DAY_S
    first = outbox.claim("noc", ahead_s, 60)
    assert first is not None
    again = outbox.claim("noc", 100, 60)  # who claimed it died
    assert again is not None
    outbox.failed(again, ahead_s)
    assert bodies(outbox.claim("noc", 100, 60)) == ("a",)


def test_receivers_and_fabrics_do_not_wait_for_each_other(store: Store) -> None:
    tell(store, BEGAN_S, "a")
    tell(store, BEGAN_S + 1, "b", receiver="mail")
    outbox = store.outbox_of(SOURCE)
    assert bodies(outbox.claim("noc", 100, 60)) == ("a",)
    assert bodies(outbox.claim("mail", 100, 60)) == ("b",)
    assert store.outbox_of(Source("small", "lab")).claim("noc", 100, 60) is None


def test_one_of_many_processes_may_send(where: str, store: Store) -> None:
    tell(store, BEGAN_S, "a")

    def claim(_: int) -> ClaimedMessage | None:
        with open_store(where) as mine:
            return mine.outbox_of(SOURCE).claim("noc", 100, 60)

    with ThreadPoolExecutor(6) as pool:
        found = [one for one in pool.map(claim, range(6)) if one is not None]
    assert [one.bodies for one in found] == [("a",)]


def test_a_run_that_is_not_stored_queues_nothing(store: Store) -> None:
    def broken(*_: object) -> NotifyDecision:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        store.save(run(), judgement(), snapshot(), decide=broken)
    assert store.runs(SOURCE) == ()
    tell(store, BEGAN_S + 1, "b")
    tell(store, BEGAN_S, "too late")
    assert bodies(store.outbox_of(SOURCE).claim("noc", 100, 60)) == ("b",)


def test_notifications_that_wait_too_long_or_have_no_receiver_are_dropped(store: Store) -> None:
    outbox = store.outbox_of(SOURCE)
    tell(store, BEGAN_S, "a")
    tell(store, BEGAN_S + 1, "b", receiver="gone")
    (gone, noc) = outbox.waiting()
    assert (gone.receiver, noc) == ("gone", WaitingMessages("noc", 1, noc.queued_s, 0))
    assert outbox.give_up(["noc"], 0, 100) == {"gone": 1}
    assert outbox.give_up(["noc"], LATER_S, 100) == {"noc": 1}
    assert outbox.waiting() == ()


def test_a_message_that_is_being_sent_is_not_dropped(store: Store) -> None:
    outbox = store.outbox_of(SOURCE)
    tell(store, BEGAN_S, "a")
    claimed = outbox.claim("noc", 100, 60)
    assert outbox.give_up([], LATER_S, 159) == {}
    assert claimed is not None
    outbox.failed(claimed, 160)
    assert outbox.give_up([], LATER_S, 160) == {"noc": 1}


def test_sent_notifications_are_remembered_until_they_are_forgotten(store: Store) -> None:
    down = result("leaf01", fail("swp1", "down"))
    before, states = remember(store, BEGAN_S, {DOWN: "reported"}, down)
    assert (before, set(states)) == ({}, {DOWN})
    assert remember(store, BEGAN_S + 1, {DOWN: "told again"}, down)[0] == {DOWN: "reported"}
    assert remember(store, BEGAN_S + 2, {DOWN: ""}, down)[0] == {DOWN: "told again"}
    assert remember(store, BEGAN_S + 3, {DOWN: "anew"}, down)[0] == {}
    assert remember(store, BEGAN_S + 200 * DAY_S, {})[0] == {}


def test_a_place_of_any_length_is_the_same_in_every_run(store: Store) -> None:
    down = result("leaf01", fail("x" * 10_000 + "\x00", "down"))
    assert len(store.save(run(BEGAN_S), judgement(down), snapshot(BEGAN_S)).changes) == 1
    assert store.save(run(BEGAN_S + 1), judgement(down), snapshot(BEGAN_S + 1)).changes == ()
