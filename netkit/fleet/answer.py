"""Answers: messages of a worker about a job, signed with the key of its site, numbered and compressed.

A job may be delivered more than once, so several attempts may answer it. Parts of an attempt are passed on when it is
complete, and only those of the first attempt that completes: parts of two attempts are never mixed.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from netkit.fleet import signing
from netkit.fleet.job import Hex128, MessageError, SiteJob, canonical
from netkit.fleet.settings import PublicKeys, SiteName, verifiers

MOST_BYTES = 1024 * 1024
"""Of a message, compressed."""
MOST_PART_BYTES = 16 * 1024 * 1024
MOST_HEADER_BYTES = 1024
MOST_MESSAGES = 20_000
MOST_ATTEMPTS = 8
MOST_BUFFERED_BYTES = 64 * 1024 * 1024
"""Of all parts of an attempt, compressed."""
PURPOSE = "answer"
Kind = Literal["begun", "progress", "part", "end", "failed", "refused"]
ENDS: frozenset[str] = frozenset({"end", "failed", "refused"})


class Envelope(BaseModel):
    """What a worker signs about a payload."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal[1] = 1
    nonce: Hex128
    site: SiteName
    worker: Annotated[str, Field(min_length=1, max_length=64)]
    attempt: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    sequence: int = Field(ge=0, lt=MOST_MESSAGES)
    kind: Kind
    size: int = Field(ge=0, le=MOST_PART_BYTES)


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """A part of the result of a job; parts come in order, and only from a completed attempt."""

    job: SiteJob
    sequence: int
    payload: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What a worker reports while it works; not part of the result."""

    job: SiteJob
    worker: str
    text: str


@dataclass(frozen=True, slots=True)
class LostJob:
    """A job without a result, and why."""

    job: SiteJob
    reason: str


JobEvent = JobAnswer | JobProgress | LostJob


def sign_answer(envelope: Envelope, payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """A message; MessageError if the payload is too large for one."""
    if len(payload) > MOST_PART_BYTES:
        raise MessageError(f"a part of its answer has {len(payload):,} bytes; at most {MOST_PART_BYTES:,} are sent")
    head = canonical(envelope.model_copy(update={"size": len(payload)}).model_dump(mode="json"))
    message = signing.signed(head + b"\n" + zlib.compress(payload), PURPOSE, key)
    if len(message) > MOST_BYTES:
        raise MessageError(
            f"a part of its answer has {len(message):,} bytes compressed; at most {MOST_BYTES:,} are sent"
        )
    return message


def open_answer(message: bytes, keys: PublicKeys, site: str) -> tuple[Envelope, bytes]:
    """What is in a message, still compressed; MessageError unless the site signed it."""
    if len(message) > MOST_BYTES:
        raise MessageError(f"it has {len(message):,} bytes; an answer has at most {MOST_BYTES:,}")
    body = signing.opened(message, PURPOSE, verifiers(keys))
    if body is None:
        raise MessageError(f"the site {site} did not sign it")
    head, separator, _ = body[: MOST_HEADER_BYTES + 1].partition(b"\n")
    if not separator:
        raise MessageError("it has no header")
    try:
        envelope = Envelope.model_validate_json(head)
    except ValidationError:
        raise MessageError("its header is not known to this version") from None
    if canonical(envelope.model_dump(mode="json")) != head:
        raise MessageError("its header is not canonical")
    if envelope.site != site:
        raise MessageError(f"it is of the site {envelope.site}")
    return envelope, body[len(head) + 1 :]


def unpacked(packed: bytes, size: int) -> bytes:
    """Decompress a payload of a known size; MessageError if it is not of that size."""
    stream = zlib.decompressobj()
    try:
        payload = stream.decompress(packed, size + 1)
    except zlib.error:
        raise MessageError("its payload is damaged") from None
    if len(payload) != size or not stream.eof or stream.unused_data:
        raise MessageError("its payload is not of the size that its header gives")
    return payload


@dataclass(slots=True)
class _Attempt:
    parts: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    """Sequence → payload, compressed, and its size; of messages without a result the payload is empty."""
    bytes_held: int = 0
    end: int | None = None


@dataclass(slots=True)
class PendingJob:
    """A job that waits for its answers."""

    job: SiteJob
    attempts: dict[str, _Attempt] = field(default_factory=dict)
    began_by: str = ""
    """The worker that began it last."""

    def take(self, envelope: Envelope, packed: bytes) -> Iterator[JobEvent]:
        """Take a message about this job, once; yield what it makes known. MessageError if it must be dropped."""
        attempt = self.attempts.get(envelope.attempt)
        if attempt is None:
            if len(self.attempts) >= MOST_ATTEMPTS:  # the oldest has long died
                del self.attempts[next(iter(self.attempts))]
            attempt = self.attempts[envelope.attempt] = _Attempt()
        if envelope.sequence in attempt.parts:
            return
        if attempt.end is not None and envelope.sequence > attempt.end:
            raise MessageError("its number is after the end of its attempt")
        payload = unpacked(packed, envelope.size)  # before anything is kept, so that a completed attempt is whole
        if envelope.kind in ENDS:
            if attempt.end is not None or max(attempt.parts, default=-1) > envelope.sequence:
                raise MessageError("its attempt has already ended with another result")
            attempt.end = envelope.sequence
        held = packed if envelope.kind == "part" else b""
        if attempt.bytes_held + len(held) > MOST_BUFFERED_BYTES:
            raise MessageError(f"its attempt has more than {MOST_BUFFERED_BYTES:,} bytes")
        attempt.bytes_held += len(held)
        attempt.parts[envelope.sequence] = held, envelope.size
        if envelope.kind in {"failed", "refused"}:
            yield LostJob(self.job, f"{envelope.kind} by {envelope.worker}: {payload.decode(errors='replace')}")
            return
        if envelope.kind in {"begun", "progress"}:
            self.began_by = envelope.worker
            yield JobProgress(self.job, envelope.worker, payload.decode(errors="replace"))
        if attempt.end is not None and len(attempt.parts) == attempt.end + 1:
            yield from self._result(attempt)

    @property
    def bytes_held(self) -> int:
        return sum(attempt.bytes_held for attempt in self.attempts.values())

    def _result(self, attempt: _Attempt) -> Iterator[JobAnswer]:
        held = [attempt.parts[number] for number in sorted(attempt.parts) if attempt.parts[number][0]]
        if not held:
            yield JobAnswer(self.job, 0, b"", is_last=True)
        for number, (packed, size) in enumerate(held):
            yield JobAnswer(self.job, number, unpacked(packed, size), is_last=number == len(held) - 1)
