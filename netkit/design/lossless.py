"""The lossless profile: one set of numbers behind every switch and every host, and the PFC headroom in it.

Headroom is room for everything that still arrives after a pause has been sent. A user's own figure comes first, then
the vendor's table, then the sum of what is on its way, counted in the chip's buffer cells: two cable lengths, frames
already being sent, the peer's time to react (802.3 Annex 31B.3.7), and what the PHYs and pipelines hold.
`hardware/data/pfc.yaml` has the figures and their sources.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Cable
from netkit.design.traffic import EcnThresholds, Headroom, LosslessProfile, TrafficClass, WatchdogTimers
from netkit.errors import Problem
from netkit.hardware import HeadroomRow, Split, SwitchModel, catalog
from netkit.intent.model import Intent, Lossless

ECN_MIN_US = 3
ECN_MAX_US = 30
QUANTUM_BYTES = 64
KIB = 1024


def profile(intent: Intent) -> LosslessProfile:
    """The profile of an intent that has passed `problems`."""
    lossless = intent.lossless
    mapping = dscp_to_priority(lossless)
    priorities = {lossless.roce.priority, lossless.cnp.priority}

    def dscps(priority: int) -> tuple[int, ...]:
        if priority in priorities:
            return tuple(dscp for dscp, mapped in enumerate(mapping) if mapped == priority)
        return tuple(dscp for dscp, mapped in enumerate(mapping) if mapped not in priorities)

    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    return LosslessProfile(
        roce=TrafficClass("roce", roce.priority, dscps(roce.priority), True, False, roce.weight, None),
        cnp=TrafficClass("cnp", cnp.priority, dscps(cnp.priority), False, True, 0, cnp.shape_percent),
        best_effort=TrafficClass("best-effort", rest.priority, dscps(rest.priority), False, False, rest.weight, None),
        data_dscp=roce.dscp[0],
        cnp_dscp=cnp.dscp,
        dscp_to_priority=mapping,
        watchdog=WatchdogTimers(
            lossless.watchdog.poll_ms,
            lossless.watchdog.detection_polls,
            lossless.watchdog.restoration_polls,
            lossless.watchdog.action,
        ),
        pool_percent=lossless.pool_percent,
    )


def dscp_to_priority(lossless: Lossless) -> tuple[int, ...]:
    """The priority of each DSCP: blocks of eight, then the DSCPs the intent names."""
    mapping = [dscp // 8 for dscp in range(64)]
    for dscp in lossless.roce.dscp:
        mapping[dscp] = lossless.roce.priority
    mapping[lossless.cnp.dscp] = lossless.cnp.priority
    return tuple(mapping)


def ecn(lossless: Lossless, speed_gbps: int) -> EcnThresholds:
    """The ECN thresholds of a port speed: from the intent, else 3 µs and 30 µs at line rate."""
    given = lossless.ecn.get(speed_gbps)
    if given:
        return EcnThresholds(**given.model_dump())
    bytes_per_us = speed_gbps * 125
    return EcnThresholds(ECN_MIN_US * bytes_per_us, ECN_MAX_US * bytes_per_us, 100)


def of_ports(
    intent: Intent, model: SwitchModel, split: Split, cable: Cable, mtu_bytes: int
) -> tuple[EcnThresholds, Headroom | None]:
    """The ECN thresholds and the headroom of ports of one kind."""
    given = intent.lossless.headroom.get(split.speed_gbps)
    room = choose(model, split, cable, mtu_bytes, given.xoff_bytes if given else None)
    return ecn(intent.lossless, split.speed_gbps), room


def problems(intent: Intent) -> Iterator[Problem]:
    """Yield every number that would not be lossless, or would differ between switch and host."""
    for speed, thresholds in intent.lossless.ecn.items():
        if thresholds.min_bytes >= thresholds.max_bytes:
            yield Problem(
                f"ECN min_bytes {thresholds.min_bytes} is not below max_bytes {thresholds.max_bytes}",
                "marking must start before it is certain: lower min_bytes or raise max_bytes",
                ("lossless", "ecn", speed, "min_bytes"),
            )
    yield from _classes(intent.lossless)
    yield from _nic(intent)


def _classes(lossless: Lossless) -> Iterator[Problem]:
    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    total = roce.weight + rest.weight
    if total != 100:
        yield Problem(
            f"ETS weights sum to {total}, not 100 (roce {roce.weight}, best_effort {rest.weight})",
            "make the two add up to 100; CNP is strict and has no weight",
            ("lossless", "roce" if "weight" in roce.model_fields_set else "best_effort", "weight"),
        )
    if cnp.priority == roce.priority:
        yield Problem(
            f"the strict CNP queue shares priority {cnp.priority} with the PFC class",
            "give CNP its own priority: a paused CNP cannot end the congestion it reports",
            ("lossless", "cnp", "priority"),
        )
    if rest.priority in {roce.priority, cnp.priority}:
        other = "RoCE" if rest.priority == roce.priority else "CNP"
        yield Problem(
            f"best_effort shares priority {rest.priority} with the {other} class",
            "choose a free priority",
            ("lossless", "best_effort", "priority"),
        )
    if cnp.dscp in roce.dscp:
        yield Problem(
            f"DSCP {cnp.dscp} is both RoCE data and CNP", "give CNP its own DSCP", ("lossless", "cnp", "dscp")
        )


def _nic(intent: Intent) -> Iterator[Problem]:
    nic, lossless = intent.hosts.nic, intent.lossless
    mapping = dscp_to_priority(lossless)
    pairs = (
        ("data_dscp", nic.data_dscp, lossless.roce.dscp[0], "lossless.roce.dscp"),
        ("cnp_dscp", nic.cnp_dscp, lossless.cnp.dscp, "lossless.cnp.dscp"),
        ("cnp_priority", nic.cnp_priority, lossless.cnp.priority, "lossless.cnp.priority"),
    )
    for key, host, switch, name in pairs:
        if host is not None and host != switch:
            yield Problem(
                f"the NICs use {host}, the switches {switch} ({name})",
                "make both sides agree, or drop the key",
                ("hosts", "nic", key),
            )
    for dscp, priority in nic.dscp_to_priority.items():
        if mapping[dscp] != priority:
            yield Problem(
                f"the NICs map DSCP {dscp} to priority {priority}, the switches to {mapping[dscp]}",
                "one map must hold on every hop",
                ("hosts", "nic", "dscp_to_priority", dscp),
            )


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
    """The vendor's row for the shortest listed cable that is long enough."""
    rows = [row for row in model.headroom_rows if row.speed_gbps == speed_gbps and row.cable_m >= cable_m]
    return min(rows, key=lambda row: row.cable_m, default=None)


def compute(model: SwitchModel, split: Split, cable_m: float, mtu_bytes: int) -> Computation | None:
    """The headroom by formula; None if the chip's cell size or the peer's response time is unknown."""
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
    """The bytes that arrive after a pause with any chip: two cable lengths, and a frame being sent."""
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
    """The headroom to use: from the intent, else the vendor, else the formula; None if there is none."""
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
