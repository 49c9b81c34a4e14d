"""Parameters of the PFC headroom formula: pause response times by speed, and one method for each kind of chip."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "data" / "pfc.yaml"
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Method:
    """How to compute the headroom of one kind of chip; see the comments in pfc.yaml."""

    name: str
    frame_in_cells: int
    is_whole_cells: bool
    uses_quanta: bool
    ns_per_m: float
    mac_phy_bytes: float | None
    pipeline_bytes: int | None
    on_tile_bytes_per_gbps: float
    own_frames: int
    response_ns: int | None
    has_eight_lane_extra: bool
    source: str


@dataclass(frozen=True, slots=True)
class PauseResponse:
    """How long a peer may take to honour a pause, in quanta of 512 bit times."""

    quanta: int
    source: str


WORST_CASES = {"ceil(cell/64)": (64, True), "cell/64": (64, False), "cell/84": (84, False)}


@cache
def _data() -> dict[str, Any]:
    content: dict[str, Any] = yaml.load(FILE.read_bytes(), Loader)  # noqa: S506 (a safe loader, in C where there is one)
    return content


def pause_response(speed_gbps: int) -> PauseResponse | None:
    """Look up the pause response of a speed; None without a source."""
    for row in _data()["pause_quanta"]:
        if row["speed_gbps"] == speed_gbps:
            return PauseResponse(row["quanta"], _data()["sources"][row["source"]])
    return None


def lossless_frame_bytes() -> int:
    """Return the frame size that vendors' formulas assume for the lossless class."""
    return int(_data()["defaults"]["lossless_mtu"]["value"])


@cache
def method(asic: str) -> Method:
    """Look up the method of a chip; the default is the generic one."""
    data = _data()
    name = next((name for name, entry in data["methods"].items() if asic in entry["asics"]), GENERIC)
    entry = data["methods"][name]
    value: dict[str, Any] = {key: part.get("value") for key, part in entry.items() if isinstance(part, dict)}
    frame, is_whole = WORST_CASES[value["worst_case"]]
    return Method(
        name=name,
        frame_in_cells=frame,
        is_whole_cells=is_whole,
        uses_quanta=value["peer_response"] == "pause_quanta",
        ns_per_m=value["ns_per_m"],
        mac_phy_bytes=value["mac_phy_bytes"],
        pipeline_bytes=value["pipeline_bytes"],
        on_tile_bytes_per_gbps=value["on_tile_bytes_per_gbps"] or 0,
        own_frames=value["own_frames"],
        response_ns=value["response_ns"],
        has_eight_lane_extra=value["eight_lane_extra"],
        source=data["sources"].get(entry["reproduces"] or "", "IEEE 802.3 Annex 31B.3.7"),
    )
