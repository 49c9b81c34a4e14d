"""Facts and judgements as Prometheus metrics: base units, totals, and no sample for what was not reported.

RDMA counters have the names that other exporters use; all other names are netkit's own.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

from netkit.design import Switch
from netkit.facts import Absent
from netkit.facts.counter import COUNTERS, parts
from netkit.facts.optic import Lane, Limits
from netkit.judge.context import CheckContext, DeviceContext
from netkit.judge.finding import Verdict
from netkit.judge.peak import Watermark, peaks
from netkit.judge.run import FABRIC, Judgement
from netkit.judge.silence import REACHED
from netkit.report.judgement_view import Judged

Labels = tuple[tuple[str, str], ...]
Kind = Literal["counter", "gauge"]
STATUS = {Verdict.PASS: 0, Verdict.WARN: 1, Verdict.FAIL: 2, Verdict.ERROR: 3}
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
MICRO, MILLI = 1e-6, 1e-3


@dataclass(frozen=True, slots=True)
class Counted:
    """The metric of a counter: family, factor, and labels besides its place."""

    family: str
    scale: float = 1
    labels: Labels = ()


def _of_port(stem: str, *, scale: float = 1, **labels: str) -> Counted:
    return Counted(f"netkit_port_{stem}_total", scale, tuple(labels.items()))


OF_RDMA = {
    "cnp_sent": "np_cnp_sent",
    "cnp_handled": "rp_cnp_handled",
    "cnp_ignored": "rp_cnp_ignored",
    "ecn_received": "np_ecn_marked_roce_packets",
    "out_of_sequence": "out_of_sequence",
    "packet_seq_err": "packet_seq_err",
    "local_ack_timeout": "local_ack_timeout_err",
    "retries_exceeded": "req_transport_retries_exceeded",
    "rnr_retries_exceeded": "rnr_nak_retry_err",
    "out_of_buffer": "out_of_buffer",
    "adaptive_retransmits": "roce_adp_retrans",
    "duplicate_requests": "duplicate_request",
    "slow_restart_cnps": "roce_slow_restart_cnps",
    "icrc_errors": "rx_icrc_encapsulated",
}
"""Counters of a NIC → their names in its driver."""
COUNTED: Mapping[str, Counted] = {
    "rx_bytes": _of_port("receive_bytes"),
    "tx_bytes": _of_port("transmit_bytes"),
    "rx_packets": _of_port("receive_packets"),
    "tx_packets": _of_port("transmit_packets"),
    "rx_errors": _of_port("receive_errors"),
    "tx_errors": _of_port("transmit_errors"),
    "rx_drops": _of_port("receive_drops"),
    "tx_drops": _of_port("transmit_drops"),
    "carrier_changes": _of_port("carrier_changes"),
    "link_downs": _of_port("link_downs"),
    "rx_pause": _of_port("pfc_pause_frames", direction="receive"),
    "tx_pause": _of_port("pfc_pause_frames", direction="transmit"),
    "port_rx_pause": _of_port("pause_frames", direction="receive"),
    "port_tx_pause": _of_port("pause_frames", direction="transmit"),
    "priority_rx_packets": _of_port("priority_receive_packets"),
    "priority_tx_packets": _of_port("priority_transmit_packets"),
    "rx_pause_us": _of_port("pfc_pause_seconds", scale=MICRO, direction="receive"),
    "tx_pause_us": _of_port("pfc_pause_seconds", scale=MICRO, direction="transmit"),
    "buffer_drops": _of_port("priority_buffer_drops"),
    "port_buffer_drops": _of_port("buffer_drops"),
    "queue_tx_packets": _of_port("queue_transmit_packets"),
    "queue_tx_bytes": _of_port("queue_transmit_bytes"),
    "queue_drops": _of_port("queue_drops"),
    "queue_ecn_marked": _of_port("queue_ecn_marked_packets"),
    "ecn_marked": _of_port("ecn_marked_packets"),
    "watchdog_detected": _of_port("pfc_watchdog_storms"),
    "watchdog_restored": _of_port("pfc_watchdog_restored"),
    "watchdog_drops": _of_port("pfc_watchdog_drops"),
    "fec_corrected": _of_port("fec_corrected_codewords"),
    "fec_uncorrectable": _of_port("fec_uncorrectable_codewords"),
    "fec_symbol_errors": _of_port("fec_symbol_errors"),
    "fec_bin": _of_port("fec_codewords"),
    "corrected_bits": _of_port("pre_fec_errors"),
    "received_bits": _of_port("phy_receive_bytes", scale=1 / 8),
    "rdma_rx_bytes": _of_port("rdma_receive_bytes"),
    "rdma_tx_bytes": _of_port("rdma_transmit_bytes"),
    "pause_storm_warnings": _of_port("pause_storm_warnings"),
    "pause_storm_errors": _of_port("pause_storm_errors"),
    "pci_stalls": _of_port("pci_stalls"),
    **{name: Counted(f"rdma_{stem}_total") for name, stem in OF_RDMA.items()},
}
GAUGES: Mapping[str, str] = {
    "netkit_collector_up": "Whether the device could be read",
    "netkit_run_timestamp_seconds": "When the facts were complete",
    "netkit_run_window_seconds": "Time between the two samples of the counters",
    "netkit_run_examined": "Things that were judged",
    "netkit_findings": "Findings by verdict, without those that are silenced",
    "netkit_findings_silenced": "Findings by verdict that are silenced",
    "netkit_check_status": "Verdict of a check on a device, without silenced findings: 0 pass, 1 warn, 2 fail, 3 error",
    "netkit_finding_silenced": "Silenced findings at a place: 1 warn, 2 fail",
    "netkit_port_info": "A port of the design: its rail, and what it is cabled to",
    "netkit_port_up": "Whether the link is up",
    "netkit_port_queue_peak_bytes": "Peak of a lossless queue in the window; absent if its watermark may be older",
    "netkit_port_headroom_peak_bytes": "Peak use of headroom in the window; absent if its watermark may be older",
    "netkit_bgp_session_up": "Whether the session is established",
    "netkit_module_temperature_celsius": "Temperature of the module",
    "netkit_module_voltage_volts": "Supply voltage of the module",
    "netkit_module_bias_amperes": "Laser current of a lane",
    "netkit_module_rx_power_dbm": "Received optical power of a lane",
    "netkit_module_tx_power_dbm": "Transmitted optical power of a lane",
    "netkit_module_rx_margin_decibels": "Received optical power of a lane above the module's own low alarm",
}


@dataclass(slots=True)
class _Families:
    """Samples by family, in order; each has the label of the fabric."""

    fabric: str
    samples: dict[str, list[tuple[Labels, float]]] = field(default_factory=dict)

    def add(self, family: str, labels: Labels, value: float) -> None:
        self.samples.setdefault(family, []).append(((("fabric", self.fabric), *labels), value))


def metrics(context: CheckContext, judged: Judged) -> str:
    """All metrics in the text format of Prometheus."""
    families = _Families(judged.fabric)
    _run(families, judged)
    queues = {traffic.priority for traffic in (context.fabric.lossless.roce, context.fabric.lossless.cnp)}
    for seen in context.devices.values():
        families.add("netkit_collector_up", (("node", seen.name),), 0 if seen.observation.failure else 1)
        _ports(families, seen)
        _counters(families, seen, queues)
        _peaks(families, seen, context.fabric.lossless.lossless_priorities)
        _states(families, seen)
        _modules(families, seen)
    return "".join(f"{line}\n" for line in _lines(families))


def _run(families: _Families, judged: Judged) -> None:
    found = judged.judgement
    families.add("netkit_run_timestamp_seconds", (), judged.taken_s)
    families.add("netkit_run_window_seconds", (), judged.window_s)
    families.add("netkit_run_examined", (), found.examined)
    for verdict in Verdict:
        if verdict is not Verdict.PASS:
            families.add("netkit_findings", (("verdict", verdict.word),), found.count(verdict))
    for verdict in (Verdict.WARN, Verdict.FAIL):
        number = sum(one.verdict is verdict for one in found.silenced)
        families.add("netkit_findings_silenced", (("verdict", verdict.word),), number)
    for labels, verdict in _silenced(found).items():
        families.add("netkit_finding_silenced", labels, STATUS[verdict])
    for result in found.results:
        status = STATUS.get(result.open_verdict)
        if status is not None:
            node = "" if result.device == FABRIC else result.device
            families.add("netkit_check_status", (("check", result.check), ("node", node)), status)


def _silenced(found: Judgement) -> Mapping[Labels, Verdict]:
    """What is silenced, by check, device and port; `reached` for unreached devices."""
    worst: dict[Labels, Verdict] = {}
    for one in found.silenced:
        labels = ("check", one.check), ("node", one.device), ("port", one.place.partition("/")[0])
        worst[labels] = max(one.verdict, worst.get(labels, Verdict.PASS))
    return worst | {(("check", REACHED), ("node", name), ("port", "")): Verdict.FAIL for name, _ in found.excused}


def _ports(families: _Families, seen: DeviceContext) -> None:
    """Add a sample with the details of each port, so that others only need its name."""
    device = seen.device
    for port in seen.ports.values():
        rail = device.rail if isinstance(device, Switch) and device.role == "leaf" else None
        families.add("netkit_port_info", _info(seen.name, port.name, port.peer, port.peer_port, rail), 1)
    for nic in seen.nics.values():
        families.add("netkit_port_info", _info(seen.name, nic.interface, nic.leaf, nic.leaf_port, nic.rail), 1)


def _info(node: str, port: str, peer: str, peer_port: str, rail: int | None) -> Labels:
    known = ("node", node), ("port", port), ("peer", peer), ("peer_port", peer_port)
    return known if rail is None else (*known, ("rail", str(rail)))


def _counters(families: _Families, seen: DeviceContext, queues: AbstractSet[int]) -> None:
    """Add counters of ports in the design; of queues only those of RoCE and CNPs."""
    if not seen.observation.samples:
        return
    for name, places in seen.observation.samples[-1].counters.items():
        metric, kind = COUNTED.get(name), COUNTERS.get(name)
        if metric is None or kind is None:
            continue
        for place, count in places.items():
            port, number = place, Labels()
            if kind.scope != "port":
                port, index = parts(place)
                number = ((kind.scope, str(index)),)
                if kind.scope == "queue" and index not in queues:
                    continue
            labels = _nic(seen, port) if metric.family.startswith("rdma_") else _port(seen, port)
            if labels is not None:
                families.add(metric.family, (*labels, *metric.labels, *number), count * metric.scale)


def _peaks(families: _Families, seen: DeviceContext, lossless: tuple[int, ...]) -> None:
    watermarks: tuple[tuple[str, str, Watermark], ...] = (
        ("netkit_port_queue_peak_bytes", "queue", "peak_bytes"),
        ("netkit_port_headroom_peak_bytes", "priority", "headroom_peak_bytes"),
    )
    for family, label, watermark in watermarks:
        for port in seen.ports:
            for number, value in peaks(seen, port, lossless, watermark).items():
                families.add(family, (("node", seen.name), ("port", port), (label, str(number))), value)


def _port(seen: DeviceContext, port: str) -> Labels | None:
    """The labels of a port in the design; None for others."""
    is_known = port in seen.ports or port in seen.nics
    return (("node", seen.name), ("port", port)) if is_known else None


def _nic(seen: DeviceContext, port: str) -> Labels | None:
    """The labels of a NIC, beginning with those of other exporters of RDMA counters."""
    nic = seen.nics.get(port)
    if nic is None:
        return None
    own = ("host", seen.name), ("device", nic.rdma), ("port", "1"), ("netdev", port), ("pci_addr", nic.pci)
    return *own, ("rail", str(nic.rail)), ("leaf", nic.leaf), ("leaf_port", nic.leaf_port)


def _states(families: _Families, seen: DeviceContext) -> None:
    interfaces, sessions = seen.facts.interfaces, seen.facts.sessions
    for port, state in ({} if isinstance(interfaces, Absent) else interfaces).items():
        labels = _port(seen, port)
        if labels is not None and state.is_up is not None:
            families.add("netkit_port_up", labels, state.is_up)
    for port, session in ({} if isinstance(sessions, Absent) else sessions).items():
        labels = _port(seen, port)
        if labels is not None:
            families.add("netkit_bgp_session_up", labels, session.is_established)


def _modules(families: _Families, seen: DeviceContext) -> None:
    found = seen.facts.modules
    for port, module in ({} if isinstance(found, Absent) else found).items():
        labels = _port(seen, port)
        if labels is None:
            continue
        for name, value in (
            ("netkit_module_temperature_celsius", module.temperature_c),
            ("netkit_module_voltage_volts", module.voltage_v),
        ):
            if value is not None:
                families.add(name, labels, value)
        for number, lane in module.lanes.items():
            for name, power in _lane(lane, module.limits.get("rx_dbm", Limits())):
                families.add(name, (*labels, ("lane", str(number))), power)


def _lane(lane: Lane, limits: Limits) -> Iterator[tuple[str, float]]:
    if lane.bias_ma is not None:
        yield "netkit_module_bias_amperes", lane.bias_ma * MILLI
    if lane.tx_dbm is not None:
        yield "netkit_module_tx_power_dbm", lane.tx_dbm
    if lane.rx_dbm is not None:
        yield "netkit_module_rx_power_dbm", lane.rx_dbm
        if limits.low_alarm is not None:
            yield "netkit_module_rx_margin_decibels", lane.rx_dbm - limits.low_alarm


def _lines(families: _Families) -> Iterator[str]:
    for family, samples in families.samples.items():
        kind: Kind = "gauge" if family in GAUGES else "counter"
        yield f"# HELP {family} {GAUGES.get(family) or HELP[family]}"
        yield f"# TYPE {family} {kind}"
        for labels, value in samples:
            inside = ",".join(f'{name}="{text.translate(ESCAPES)}"' for name, text in labels)
            yield f"{family}{{{inside}}} {_number(value)}"


HELP = {metric.family: COUNTERS[name].text.capitalize() for name, metric in reversed(list(COUNTED.items()))}


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(round(value, 9))
