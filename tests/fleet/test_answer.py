"""Answers of a site: verified, taken once, in order, and only from an attempt that is complete."""

import hashlib
import random
import tracemalloc
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.fleet import answer
from netkit.fleet.answer import (
    MOST_ATTEMPTS,
    MOST_BYTES,
    MOST_MESSAGES,
    MOST_PART_BYTES,
    Envelope,
    JobAnswer,
    JobEvent,
    JobProgress,
    LostJob,
    PendingJob,
    open_answer,
    sign_answer,
    unpacked,
)
from netkit.fleet.job import MessageError, canonical
from netkit.fleet.signing import public_text, signed
from netkit.fleet.status import SiteStatus, WorkerStatus, metrics, open_status, sign_status
from tests.conftest import Golden
from tests.fleet.jobs import COORDINATOR, OSAKA, TOKYO, a_job

KEYS = (public_text(TOKYO),)
JOB = a_job()
Message = tuple[Envelope, bytes]


def envelope(sequence: int, kind: str = "part", attempt: str = "a", size: int = 0, **changes: Any) -> Envelope:
    head = {"nonce": JOB.nonce, "site": "tokyo", "worker": "w1", "attempt": attempt * 16, **changes}
    return Envelope.model_validate({**head, "sequence": sequence, "kind": kind, "size": size})


def message(sequence: int, kind: str, payload: bytes, attempt: str = "a") -> Message:
    return open_answer(sign_answer(envelope(sequence, kind, attempt), payload, TOKYO), KEYS, "tokyo")


def attempt(payloads: Sequence[bytes], name: str = "a") -> list[Message]:
    parts = [message(number + 1, "part", payload, name) for number, payload in enumerate(payloads)]
    return [message(0, "begun", b"", name), *parts, message(len(parts) + 1, "end", b"", name)]


def taken(messages: Sequence[Message], pending: PendingJob | None = None) -> list[JobEvent]:
    pending = pending or PendingJob(JOB)
    return [event for one in messages for event in pending.take(*one)]


def results(events: Sequence[JobEvent]) -> list[JobAnswer]:
    return [event for event in events if isinstance(event, JobAnswer)]


def answers(payloads: Sequence[bytes]) -> list[JobAnswer]:
    last = len(payloads) - 1
    return [JobAnswer(JOB, number, payload, is_last=number == last) for number, payload in enumerate(payloads)]


def test_an_answer_arrives_as_it_was_sent() -> None:
    found, packed = message(3, "part", b"[1,2]" * 1000)
    assert found == envelope(3, size=5000)
    assert len(packed) < 100
    assert unpacked(packed, 5000) == b"[1,2]" * 1000


def test_parts_come_in_order_when_the_attempt_is_complete() -> None:
    events = taken(attempt([b"one", b"two"]))
    assert events == [JobProgress(JOB, "w1", ""), *answers([b"one", b"two"])]


def test_an_empty_result_has_one_empty_part() -> None:
    assert results(taken(attempt([]))) == [JobAnswer(JOB, 0, b"", is_last=True)]


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(payloads: list[bytes], order: random.Random) -> None:
    messages = attempt(payloads) * 2
    order.shuffle(messages)
    pending = PendingJob(JOB)
    found: list[JobEvent] = []
    for one in messages:
        found += pending.take(*one)
    assert results(found) == answers(payloads or [b""])
    assert len(found) == len(results(found)) + 1


@given(st.integers(0, 3), st.randoms(use_true_random=False))
def test_parts_of_two_attempts_are_never_mixed(cut: int, order: random.Random) -> None:
    dead = attempt([b"old1", b"old2"], "a")[:cut]
    messages = [*dead, *attempt([b"new1", b"new2", b"new3"], "b")]
    order.shuffle(messages)
    assert results(taken(messages)) == answers([b"new1", b"new2", b"new3"])


def test_an_incomplete_attempt_gives_no_result() -> None:
    whole = attempt([b"one", b"two"])
    for missing in range(len(whole)):
        assert results(taken(whole[:missing] + whole[missing + 1 :])) == []


@pytest.mark.parametrize("kind", ["failed", "refused"])
def test_a_failure_is_reported_at_once(kind: str) -> None:
    assert taken([message(2, kind, b"no access.yaml")]) == [LostJob(JOB, f"{kind} by w1: no access.yaml")]


def refused(forged: bytes, site: str = "tokyo") -> str:
    with pytest.raises(MessageError) as caught:
        open_answer(forged, KEYS, site)
    return str(caught.value)


@given(st.data())
def test_no_other_byte_is_accepted(data: st.DataObject) -> None:
    forged = bytearray(sign_answer(envelope(0), b"payload", TOKYO))
    forged[data.draw(st.integers(0, len(forged) - 1))] ^= data.draw(st.integers(1, 255))
    assert refused(bytes(forged)) == "the site tokyo did not sign it"


@given(st.binary(max_size=1000))
def test_nothing_unsigned_is_accepted(forged: bytes) -> None:
    assert refused(forged) == "the site tokyo did not sign it"


@pytest.mark.parametrize("key", [OSAKA, COORDINATOR])
def test_an_answer_of_another_key_is_refused(key: Any) -> None:
    assert refused(sign_answer(envelope(0), b"", key)) == "the site tokyo did not sign it"


def test_an_answer_of_another_site_is_refused() -> None:
    assert refused(sign_answer(envelope(0, site="osaka"), b"", TOKYO)) == "it is of the site osaka"


def head(**changes: Any) -> bytes:
    return canonical({**envelope(0).model_dump(mode="json"), **changes})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it has no header"),
        (b"{}", "it has no header"),
        (b"x" * 2000 + b"\n", "it has no header"),
        (b"{}\n", "its header is not known to this version"),
        (b"[" * 1000 + b"\n", "its header is not known to this version"),
        (head(command="x") + b"\n", "its header is not known to this version"),
        (head(kind="reboot") + b"\n", "its header is not known to this version"),
        (head(sequence=-1) + b"\n", "its header is not known to this version"),
        (head(sequence=MOST_MESSAGES) + b"\n", "its header is not known to this version"),
        (head(size=MOST_PART_BYTES + 1) + b"\n", "its header is not known to this version"),
        (head() + b" \n", "its header is not canonical"),
    ],
)
def test_what_is_signed_but_not_an_answer_is_refused(body: bytes, reason: str) -> None:
    assert refused(signed(body, "answer", TOKYO)) == reason


def test_an_oversized_message_is_refused_unread() -> None:
    forged = signed(b" " * MOST_BYTES, "answer", TOKYO)
    assert refused(forged) == f"it has {MOST_BYTES + 89:,} bytes; an answer has at most {MOST_BYTES:,}"


def test_an_oversized_part_is_not_sent() -> None:
    with pytest.raises(MessageError, match="a part of its answer has 16,777,217 bytes; at most"):
        sign_answer(envelope(0), bytes(MOST_PART_BYTES + 1), TOKYO)
    noise = b"".join(hashlib.sha512(str(number).encode()).digest() for number in range(MOST_BYTES // 64))
    with pytest.raises(MessageError, match="bytes compressed; at most 1,048,576 are sent"):
        sign_answer(envelope(0), noise, TOKYO)


@pytest.mark.parametrize(
    ("packed", "size"),
    [
        (b"no zlib", 7),
        (zlib.compress(bytes(1000)), 999),
        (zlib.compress(bytes(1000)), 1001),
        (zlib.compress(bytes(1000))[:-1], 1000),
        (zlib.compress(bytes(1000)) + b"x", 1000),
        (zlib.compress(bytes(10**7)), 10),
    ],
)
def test_a_payload_of_another_size_is_refused(packed: bytes, size: int) -> None:
    with pytest.raises(MessageError, match="its payload is"):
        unpacked(packed, size)
    pending = PendingJob(JOB)
    with pytest.raises(MessageError, match="its payload is"):
        list(pending.take(envelope(1, size=size), packed))
    assert pending.bytes_held == 0


def test_an_attempt_ends_once() -> None:
    pending = PendingJob(JOB)
    taken([message(1, "end", b"")], pending)
    for late in (message(2, "part", b"more"), message(2, "end", b""), message(0, "end", b"")):
        with pytest.raises(MessageError, match="end"):
            taken([late], pending)
    assert results(taken([message(0, "begun", b"")], pending)) == [JobAnswer(JOB, 0, b"", is_last=True)]


def test_attempts_are_bounded() -> None:
    pending = PendingJob(JOB)
    taken([message(0, "begun", b"", f"{number:x}") for number in range(MOST_ATTEMPTS)], pending)
    first = next(iter(pending.attempts))
    taken([message(0, "begun", b"", "f")], pending)
    assert (len(pending.attempts), first in pending.attempts) == (MOST_ATTEMPTS, False)
    found = taken([message(1, "part", b"x", "f"), message(2, "end", b"", "f")], pending)
    assert found == [JobAnswer(JOB, 0, b"x", is_last=True)]


def test_an_end_before_a_part_is_refused() -> None:
    pending = PendingJob(JOB)
    taken([message(5, "part", b"five")], pending)
    with pytest.raises(MessageError, match="its attempt has already ended with another result"):
        taken([message(3, "end", b"")], pending)


def test_what_an_attempt_may_hold_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MOST_BUFFERED_BYTES", 20)
    pending = PendingJob(JOB)
    taken([message(1, "part", b"one")], pending)
    held = pending.bytes_held
    assert 0 < held <= 20
    with pytest.raises(MessageError, match="its attempt has more than 20 bytes"):
        taken([message(2, "part", b"another one")], pending)
    assert pending.bytes_held == held


def test_a_payload_that_would_unpack_to_much_is_not_unpacked() -> None:
    packed = zlib.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(MessageError, match="its payload is not of the size"):
            unpacked(packed, 1000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def a_status(**changes: Any) -> WorkerStatus:
    head = {"site": "tokyo", "worker": "w1", "version": "1", "at_s": 1, "since_s": 1, "done": 0, "refused": 0}
    return WorkerStatus.model_validate({**head, **changes})


def test_a_status_is_of_its_site() -> None:
    assert open_status(sign_status(a_status(), TOKYO), KEYS, "tokyo") == a_status()
    forged = {
        sign_status(a_status(), OSAKA): "the site tokyo did not sign it",
        sign_status(a_status(site="osaka"), TOKYO): "it is of the site osaka",
        signed(b"{}", "status", TOKYO): "it is not a status of a known version",
        signed(b" " * 5000, "status", TOKYO): "the site tokyo did not sign it",
        sign_answer(envelope(0), b"", TOKYO): "the site tokyo did not sign it",
    }
    for one, reason in forged.items():
        with pytest.raises(MessageError, match=reason):
            open_status(one, KEYS, "tokyo")


def test_the_state_of_sites_as_metrics(golden: Golden) -> None:
    busy = a_status(worker='w"2', verb="backup", fabric="inventory/tokyo", done=3, refused=1, at_s=1_795_748_906)
    sites = [SiteStatus("tokyo", waiting=2, receivers=2, workers=(a_status(), busy)), SiteStatus("osaka", "refused")]
    golden("fleet/status.prom", metrics(sites))
