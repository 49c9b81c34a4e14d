"""Counters of a host NIC by the names of the real driver; those the model does not compute stay zero."""

from collections.abc import Mapping
from dataclasses import dataclass

from netkit.lab.model.counters import Totals
from netkit.lab.model.wiring import KernelPort, LinkSide, NicTraffic
from netkit.lab.reading import FecReading, TrafficReading
from netkit.lab.state import PRIORITIES

UNUSED_Q = (
    "rx_read_requests",
    "rx_atomic_requests",
    "rx_dct_connect",
    "out_of_buffer",
    "rnr_nak_retry_err",
    "implied_nak_seq_err",
    "resp_local_length_error",
    "resp_cqe_error",
    "req_cqe_error",
    "req_remote_invalid_request",
    "req_remote_access_errors",
    "resp_remote_access_errors",
    "resp_cqe_flush_error",
    "req_cqe_flush_error",
    "req_transport_retries_exceeded",
    "req_rnr_retries_exceeded",
    "roce_adp_retrans_to",
    "roce_slow_restart_trans",
    "rx_icrc_encapsulated",
)
UNUSED_PORT = (
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_error_recovery",
    "local_link_integrity_errors",
    "multicast_rcv_packets",
    "multicast_xmit_packets",
    "port_rcv_constraint_errors",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "symbol_error",
)
UNUSED_ETHTOOL = (
    "tx_discards_phy",
    "rx_crc_errors_phy",
    "rx_symbol_err_phy",
    "rx_out_of_range_len_phy",
    "rx_oversize_pkts_phy",
    "rx_pause_ctrl_phy",
    "tx_pause_ctrl_phy",
    "rx_global_pause",
    "tx_global_pause",
    "module_bus_stuck",
    "module_high_temp",
    "module_bad_shorted",
    "module_unplug",
    "rx_pci_signal_integrity",
    "tx_pci_signal_integrity",
    "outbound_pci_stalled_rd",
    "outbound_pci_stalled_rd_events",
    "outbound_pci_buffer_overflow",
    "dev_out_of_buffer",
    "rx_out_of_buffer",
    "rx_steer_missed_packets",
    "rx_buffer_passed_thres_phy",
    "tx_pause_storm_error_events",
)


DRIVER = "mlx5_core"
FIRMWARE = "28.43.1014"
PART = "MCX75310AAS-NEA"
Q_RANGE = 2**32
"""Queue counters have 32 bits and wrap; those of congestion have 64."""
OF_TRAFFIC = (
    *("rx_{}_bytes", "rx_{}_packets", "rx_{}_discards", "rx_{}_buf_discard", "rx_{}_cong_discard", "rx_{}_marked"),
    *("tx_{}_bytes", "tx_{}_packets"),
)
OF_PAUSES = (
    *("rx_{}_pause", "rx_{}_pause_duration", "rx_{}_pause_transition"),
    *("tx_{}_pause", "tx_{}_pause_duration"),
)
PAUSES = tuple(tuple(name.format(f"prio{priority}") for name in OF_PAUSES) for priority in range(PRIORITIES))
NAMES = tuple(
    (*(name.format(f"prio{priority}") for name in OF_TRAFFIC), *PAUSES[priority]) for priority in range(PRIORITIES)
)
"""The counters of each priority."""
WORD_BYTES = 4
MESSAGE_PACKETS = 256


@dataclass(frozen=True, slots=True)
class NicCounterInputs:
    """Everything the counters of a NIC are computed from."""

    kernel: KernelPort
    traffic: NicTraffic
    out: Totals
    in_: Totals
    side: LinkSide | None
    rx_priority: int
    tx_priority: int
    fec: FecReading
    lane_errors: tuple[int, ...]
    received_bits: int
    stalled_percent: int
    stalled_s: int
    is_storming: bool


def hw_counters(state: NicCounterInputs) -> dict[str, int]:
    traffic = state.traffic
    received, sent = state.in_, state.out
    refused = int(sent.drops)
    queue = {
        "rx_write_requests": int(received.packets / MESSAGE_PACKETS) + traffic.rx_roce_packets,
        "out_of_sequence": traffic.out_of_sequence + int(received.drops),
        "packet_seq_err": traffic.packet_seq_err + refused,
        "duplicate_request": traffic.duplicate_requests,
        "local_ack_timeout_err": refused // 1000,
        "roce_adp_retrans": refused // 10,
        "roce_slow_restart": traffic.cnp_handled // 64,
        "roce_slow_restart_cnps": traffic.cnp_handled // 64,
        **dict.fromkeys(UNUSED_Q, 0),
    }
    congestion = {
        "np_cnp_sent": traffic.cnp_sent,
        "np_ecn_marked_roce_packets": traffic.ecn_marked_packets,
        "rp_cnp_handled": traffic.cnp_handled,
        "rp_cnp_ignored": traffic.cnp_ignored,
    }
    return {**{name: count % Q_RANGE for name, count in queue.items()}, **congestion}


def port_counters(state: NicCounterInputs) -> dict[str, int]:
    """The files of `counters`; data is counted in words of four bytes."""
    kernel, traffic = state.kernel.traffic, state.traffic
    rx_packets = int(state.in_.packets) + kernel.rx_packets
    tx_packets = int(state.out.packets) + kernel.tx_packets
    return {
        "port_rcv_data": (int(state.in_.bytes) + kernel.rx_bytes) // WORD_BYTES,
        "port_xmit_data": (int(state.out.bytes) + kernel.tx_bytes) // WORD_BYTES,
        "port_rcv_packets": rx_packets,
        "port_xmit_packets": tx_packets,
        "unicast_rcv_packets": rx_packets,
        "unicast_xmit_packets": tx_packets,
        "port_xmit_wait": int(state.out.held_us) + traffic.cnp_handled,
        "port_xmit_discards": kernel.tx_dropped,
        "link_downed": state.kernel.carrier_changes // 2,
        **dict.fromkeys(UNUSED_PORT, 0),
    }


def ethtool(state: NicCounterInputs) -> dict[str, int]:
    """The output of `ethtool -S`, including the pauses of priorities without PFC, which a NIC omits."""
    kernel = state.kernel.traffic
    discards = int(state.in_.drops)
    lanes = {f"rx_err_lane_{lane}_phy": count for lane, count in enumerate(state.lane_errors[:4])}
    line = {
        "rx_bits_phy": state.received_bits,
        "rx_corrected_bits_phy": sum(state.lane_errors),
        "rx_pcs_symbol_err_phy": state.fec.uncorrectable_codewords,
        **lanes,
    }
    return {
        "rx_packets": kernel.rx_packets,
        "rx_bytes": kernel.rx_bytes,
        "tx_packets": kernel.tx_packets,
        "tx_bytes": kernel.tx_bytes,
        "rx_vport_rdma_unicast_packets": int(state.in_.packets) + state.traffic.rx_roce_packets,
        "rx_vport_rdma_unicast_bytes": int(state.in_.bytes) + state.traffic.rx_roce_bytes,
        "tx_vport_rdma_unicast_packets": int(state.out.packets) + state.traffic.tx_roce_packets,
        "tx_vport_rdma_unicast_bytes": int(state.out.bytes) + state.traffic.tx_roce_bytes,
        "rx_packets_phy": int(state.in_.packets) + kernel.rx_packets,
        "tx_packets_phy": int(state.out.packets) + kernel.tx_packets,
        "rx_bytes_phy": int(state.in_.bytes) + kernel.rx_bytes,
        "tx_bytes_phy": int(state.out.bytes) + kernel.tx_bytes,
        "rx_discards_phy": discards,
        "link_down_events_phy": state.kernel.carrier_changes // 2,
        **line,
        **{
            name: count
            for priority in range(PRIORITIES)
            for name, count in _priority(state, priority, discards).items()
        },
        "outbound_pci_stalled_wr": state.stalled_percent,
        "outbound_pci_stalled_wr_events": state.stalled_s,
        "tx_pause_storm_warning_events": int(state.is_storming),
        **dict.fromkeys(UNUSED_ETHTOOL, 0),
    }


def _priority(state: NicCounterInputs, priority: int, discards: int) -> dict[str, int]:
    is_data = priority == (state.side.data_priority if state.side else 0)
    received, sent = (state.in_, state.out) if is_data else (Totals(), Totals())
    other = state.kernel.traffic if priority == 0 else TrafficReading()
    dropped = discards if is_data else 0
    rx_real, tx_real = _real_packets(state, priority)
    paused = state.out if priority == state.rx_priority else Totals()
    pausing = state.in_ if priority == state.tx_priority else Totals()
    counts = (
        int(received.bytes) + other.rx_bytes,
        int(received.packets) + other.rx_packets + rx_real,
        dropped,
        dropped,
        0,
        state.traffic.ecn_marked_packets if is_data else 0,
        int(sent.bytes) + other.tx_bytes,
        int(sent.packets) + other.tx_packets + tx_real,
        int(paused.pauses),
        int(paused.held_us),
        int(paused.pauses),
        int(pausing.pauses),
        int(pausing.asked_us),
    )
    return dict(zip(NAMES[priority], counts, strict=True))


def _real_packets(state: NicCounterInputs, priority: int) -> tuple[int, int]:
    """The real RoCE packets and CNPs of a priority; CNPs have a separate priority."""
    traffic = state.traffic
    if traffic.rx_priority_packets and traffic.tx_priority_packets:
        return traffic.rx_priority_packets[priority], traffic.tx_priority_packets[priority]
    if state.side is not None and priority == state.side.cnp_priority:
        return traffic.rx_cnp_packets, traffic.cnp_sent
    return 0, 0


def without_idle_pauses(counters: Mapping[str, int], pfc_priorities: frozenset[int]) -> dict[str, int]:
    """Drop the pause counters of priorities without PFC, as the NIC does."""
    hidden = {name for priority in range(PRIORITIES) if priority not in pfc_priorities for name in PAUSES[priority]}
    return {name: count for name, count in counters.items() if name not in hidden}
