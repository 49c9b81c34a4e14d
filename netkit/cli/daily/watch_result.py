"""What a watch saw, for programs."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from netkit.watch.board import Board, Health, Row
from netkit.watch.feed import PortReading
from netkit.watch.port_severity import WORDS
from netkit.watch.view_state import ViewState, shown


def result(board: Board, now_s: float) -> Mapping[str, Any]:
    """Return devices and ports, what is wrong first; what is not known is null."""
    scene = board.view(now_s)
    return {
        "fabric": scene.outline.fabric,
        "lab": scene.outline.lab,
        "at_s": round(now_s, 3),
        "devices": [_device(one) for one in scene.health],
        "ports": [_port(row) for row in shown(scene, ViewState())],
    }


def _device(one: Health) -> Mapping[str, Any]:
    silent_s = None if one.silent_s is None else round(one.silent_s, 3)
    return {"device": one.device, **asdict(one.condition), "samples": one.samples, "silent_s": silent_s}


def _port(row: Row) -> Mapping[str, Any]:
    points = row.track.since(0)
    return {
        **row.wire._asdict(),
        "what": WORDS[row.severity.level],
        "level": row.severity.level.name.lower(),
        "last": row.reading._asdict(),
        "highest": {name: _highest(getattr(point.reading, name) for point in points) for name in PortReading._fields},
    }


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
