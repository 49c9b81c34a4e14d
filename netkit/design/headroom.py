"""PFC headroom: room for everything that still arrives after a pause has been sent.

A user's own figure comes first, then the vendor's table, then the sum of what is on its way, counted in the
chip's buffer cells: two cable lengths, frames already being sent, the peer's time to react (802.3 Annex
31B.3.7), and what the PHYs and pipelines hold. `hardware/data/pfc.yaml` has the figures and their sources.
"""

import math
from dataclasses import dataclass

from netkit.design.fabric import Cable
from netkit.design.traffic import Headroom
from netkit.hardware import HeadroomRow, Split, SwitchModel, catalog

QUANTUM_BYTES = 64
KIB = 1024


@dataclass(frozen=True, slots=True)
class Term:
    """One summand of the formula."""

    name: str
    value_bytes: float
    formula: str


@dataclass(frozen=True, slots=True)
class Computation:
    """A headroom by formula, term by term."""

    method: catalog.Method
    terms: tuple[Term, ...]
    occupancy: float
    extra_bytes: int
    xoff_bytes: int
    xon_bytes: int
    size_bytes: int

    @property
    def is_pooled(self) -> bool:
        """Whether xoff comes from a shared pool, so that a port's reservation does not follow from it."""
        return self.method.response_ns is not None


def vendor_row(model: SwitchModel, speed_gbps: int, cable_m: float) -> HeadroomRow | None:
    """Return the vendor's row for the shortest listed cable that is long enough."""
    rows = [row for row in model.headroom_rows if row.speed_gbps == speed_gbps and row.cable_m >= cable_m]
    return min(rows, key=lambda row: row.cable_m, default=None)


def compute(model: SwitchModel, split: Split, cable_m: float, mtu_bytes: int) -> Computation | None:
    """Return the headroom by formula; None if the chip's cell size or the peer's response time is unknown."""
    method = catalog.method(model.asic)
    terms = _terms(model, method, split.speed_gbps, cable_m, mtu_bytes)
    if not model.cell_bytes or terms is None:
        return None
    per_frame = model.cell_bytes / method.frame_in_cells
    occupancy = math.ceil(per_frame) if method.is_whole_cells else per_frame
    extra = 0 if method.own_frames > 1 else catalog.lossless_frame_bytes()
    total = extra + occupancy * sum(term.value_bytes for term in terms)
    unit = KIB if method.own_frames == 1 else model.cell_bytes
    xoff = math.ceil(total / unit) * unit
    has_extra = method.has_eight_lane_extra and split.lanes_per_port == 8
    pipeline = _delay(model, "pipeline", method.pipeline_bytes)
    xon = math.ceil(pipeline * (2 if has_extra else 1) / KIB) * KIB
    size = math.ceil((xoff + xon + (mtu_bytes if has_extra else 0)) / unit) * unit
    return Computation(method, terms, occupancy, extra, xoff, xon, size)


def least_bytes(model: SwitchModel, speed_gbps: int, cable_m: float, mtu_bytes: int) -> int:
    """Return what arrives after a pause with any chip: two cable lengths, and a frame already begun."""
    return math.ceil(2 * cable_m * catalog.method(model.asic).ns_per_m * speed_gbps / 8) + mtu_bytes


def _terms(
    model: SwitchModel, method: catalog.Method, speed_gbps: int, cable_m: float, mtu_bytes: int
) -> tuple[Term, ...] | None:
    peer = _peer(model, method, speed_gbps)
    if peer is None:
        return None
    cable = 2 * cable_m * method.ns_per_m * speed_gbps / 8
    phy = _delay(model, "mac_phy", method.mac_phy_bytes)
    return (
        Term("cable", cable, f"2 × {cable_m:g} m × {method.ns_per_m:g} ns/m × {speed_gbps} Gb/s ÷ 8"),
        Term("frames", method.own_frames * mtu_bytes, f"{method.own_frames} × {mtu_bytes} B already being sent"),
        peer,
        Term("mac-phy", phy, "what the MAC and PHY hold"),
        Term("on-chip", method.on_tile_bytes_per_gbps * speed_gbps, f"{method.on_tile_bytes_per_gbps:g} B per Gb/s"),
    )


def _peer(model: SwitchModel, method: catalog.Method, speed_gbps: int) -> Term | None:
    if method.response_ns is not None:
        value = method.response_ns * speed_gbps / 8
        return Term("peer", value, f"{method.response_ns} ns × {speed_gbps} Gb/s ÷ 8, pipelines included")
    response = catalog.pause_response(speed_gbps)
    if method.uses_quanta:
        return (
            Term("peer", response.quanta * QUANTUM_BYTES, f"{response.quanta} pause quanta × 64 B")
            if response
            else None
        )
    fixed = model.delays.get("peer_response_bytes")
    return Term("peer", fixed, "the vendor's figure") if fixed is not None else None


def _delay(model: SwitchModel, name: str, of_method: float | None) -> float:
    own = model.delays.get(f"{name}_bytes")
    return own if own is not None else of_method or 0


def choose(model: SwitchModel, split: Split, cable: Cable, mtu_bytes: int, given_bytes: int | None) -> Headroom | None:
    """Return the headroom to use: from the intent, else the vendor, else the formula; None if there is none."""
    row = vendor_row(model, split.speed_gbps, cable.length_m)
    if given_bytes is None and row:
        return Headroom(row.size_bytes, row.xoff_bytes, row.xon_bytes, row.xon_offset_bytes, "vendor", row.cable_m)
    computed = compute(model, split, cable.length_m, mtu_bytes)
    longest = max(model.headroom_rows, key=lambda row: row.cable_m, default=None)
    reserve = row or (longest if computed and computed.is_pooled else None)
    if given_bytes is not None:
        if reserve and reserve.size_bytes < reserve.xoff_bytes:  # xoff lives in a pool, size is only what is reserved
            offset = reserve.xon_offset_bytes
            return Headroom(reserve.size_bytes, given_bytes, reserve.xon_bytes, offset, "intent", None)
        base = row or computed
        beside_xoff = base.size_bytes - base.xoff_bytes if base else 0
        return Headroom(given_bytes + beside_xoff, given_bytes, base.xon_bytes if base else 0, None, "intent", None)
    if computed is None:
        return None
    if reserve:
        offset = reserve.xon_offset_bytes
        return Headroom(reserve.size_bytes, computed.xoff_bytes, reserve.xon_bytes, offset, "formula", None)
    return Headroom(computed.size_bytes, computed.xoff_bytes, computed.xon_bytes, None, "formula", None)
