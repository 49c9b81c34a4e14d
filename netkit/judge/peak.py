"""Peaks of queues within the window, from watermarks that only the operator clears."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from netkit.facts import Absent
from netkit.facts.counter import place
from netkit.facts.qos import Buffer
from netkit.judge.context import DeviceContext

Watermark = Literal["peak_bytes", "headroom_peak_bytes"]


@dataclass(frozen=True, slots=True)
class Peak:
    """How full a queue ever was since its watermark was cleared."""

    bytes: int
    is_new: bool
    """Whether it was reached within the window: the watermark rose, or was cleared and has risen again. An unchanged
    watermark may be older; within the window the queue was no longer than that."""
    most_at_looks: int | None
    """The larger level at both ends of the window; None if the device does not report it."""

    @property
    def within_bytes(self) -> int | None:
        """The peak within the window; None if the watermark may be older. Zero is never old."""
        return self.bytes if self.is_new or not self.bytes else None


def peak(device: DeviceContext, at: str, watermark: Watermark) -> Peak | None:
    """The peak of a queue; None if the device does not report it."""
    samples = device.observation.samples
    first = samples[0].buffers.get(at) if len(samples) > 1 and samples[0].boot == samples[-1].boot else None
    return between(first, _level(device, at), watermark)


def between(first: Buffer | None, last: Buffer, watermark: Watermark) -> Peak | None:
    """The peak of a queue that was read at both ends of a window, or only at its end."""
    value: int | None = getattr(last, watermark)
    if value is None:
        return None
    before: int | None = None if first is None else getattr(first, watermark)
    held = [one.used_bytes for one in (first, last) if one is not None and one.used_bytes is not None]
    return Peak(value, before is not None and before != value, max(held, default=None))


def peaks(device: DeviceContext, port: str, lossless: tuple[int, ...], watermark: Watermark) -> Mapping[int, int]:
    """The peaks of lossless queues, or of their headroom, that were reached within the window, in bytes."""
    found = {number: peak(device, place(port, number), watermark) for number in lossless}
    known = {number: None if one is None else one.within_bytes for number, one in found.items()}
    return {number: value for number, value in known.items() if value is not None}


def _level(device: DeviceContext, at: str) -> Buffer:
    """A queue's level at the end of the window, else whenever it was read."""
    samples, facts = device.observation.samples, device.facts.buffers
    if samples and at in samples[-1].buffers:
        return samples[-1].buffers[at]
    return Buffer() if isinstance(facts, Absent) else facts.get(at, Buffer())
