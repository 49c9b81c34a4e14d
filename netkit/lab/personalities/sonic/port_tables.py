"""Counters, rates and transceiver tables of a port, with the field names of the databases."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from netkit.lab.reading import SwitchPortReading, TransceiverReading

Counts = Mapping[str, int]
PORT, QUEUE, GROUP = "SAI_PORT_STAT_", "SAI_QUEUE_STAT_", "SAI_INGRESS_PRIORITY_GROUP_STAT_"
FEC_BINS = 16
"""COUNTERS_DB counts codewords with 0 to 15 symbol errors."""
PAUSE_FREE: Mapping[str, int] = {f"{PORT}PAUSE_RX_PKTS": 0, f"{PORT}PAUSE_TX_PKTS": 0}


def port_counts(reading: SwitchPortReading) -> Counts:
    traffic, fec = reading.traffic, reading.fec
    found = {
        "IF_IN_OCTETS": traffic.rx_bytes,
        "IF_IN_UCAST_PKTS": traffic.rx_packets,
        "IF_IN_DISCARDS": traffic.rx_dropped,
        "IF_IN_ERRORS": traffic.rx_errors,
        "IF_OUT_OCTETS": traffic.tx_bytes,
        "IF_OUT_UCAST_PKTS": traffic.tx_packets,
        "IF_OUT_DISCARDS": traffic.tx_dropped,
        "IF_OUT_ERRORS": traffic.tx_errors,
        "IF_IN_FEC_CORRECTABLE_FRAMES": fec.corrected_codewords,
        "IF_IN_FEC_NOT_CORRECTABLE_FRAMES": fec.uncorrectable_codewords,
        "IF_IN_FEC_SYMBOL_ERRORS": sum(index * count for index, count in enumerate(fec.histogram)),
    }
    found |= {f"IF_IN_FEC_CODEWORD_ERRORS_S{index}": count for index, count in enumerate(fec.histogram[:FEC_BINS])}
    for number, priority in enumerate(reading.priorities):
        found |= {f"PFC_{number}_RX_PKTS": priority.rx_pause, f"PFC_{number}_TX_PKTS": priority.tx_pause}
    return {**{f"{PORT}{name}": count for name, count in found.items()}, **PAUSE_FREE}


def queue_counts(reading: SwitchPortReading, queue: int, *, has_ecn: bool) -> Counts:
    """The counters of an egress queue; dropped bytes are not modelled."""
    found = reading.queues[queue]
    counts = {
        f"{QUEUE}PACKETS": found.tx_packets,
        f"{QUEUE}BYTES": found.tx_bytes,
        f"{QUEUE}DROPPED_PACKETS": found.dropped_packets,
    }
    return {**counts, f"{QUEUE}WRED_ECN_MARKED_PACKETS": found.ecn_marked_packets} if has_ecn else counts


def group_counts(reading: SwitchPortReading, group: int) -> Counts:
    return {f"{GROUP}DROPPED_PACKETS": reading.buffers[group].dropped_packets}


def queue_watermarks(reading: SwitchPortReading, queue: int) -> Counts:
    return {f"{QUEUE}SHARED_WATERMARK_BYTES": reading.queues[queue].peak_bytes}


def group_watermarks(reading: SwitchPortReading, group: int) -> Counts:
    found = reading.buffers[group]
    return {
        f"{GROUP}SHARED_WATERMARK_BYTES": found.peak_bytes,
        f"{GROUP}XOFF_ROOM_WATERMARK_BYTES": found.headroom_peak_bytes,
    }


MIN_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class SonicPortRate:
    """The traffic rate of a port."""

    rx_bytes_per_s: float = 0.0
    tx_bytes_per_s: float = 0.0


class Rates:
    """Computes rates from successive readings."""

    def __init__(self) -> None:
        self._previous: dict[str, tuple[float, int, int]] = {}
        self._rates: dict[str, SonicPortRate] = {}

    def of(self, reading: SwitchPortReading) -> SonicPortRate:
        """The rate since the previous reading at least one second ago."""
        now_s, traffic = time.monotonic(), reading.traffic
        then_s, rx_bytes, tx_bytes = self._previous.get(reading.name, (0.0, 0, 0))
        passed_s = now_s - then_s
        if reading.name not in self._previous or passed_s >= MIN_INTERVAL_S:
            self._previous[reading.name] = (now_s, traffic.rx_bytes, traffic.tx_bytes)
            if then_s and traffic.rx_bytes >= rx_bytes and traffic.tx_bytes >= tx_bytes:
                rx, tx = (traffic.rx_bytes - rx_bytes) / passed_s, (traffic.tx_bytes - tx_bytes) / passed_s
                self._rates[reading.name] = SonicPortRate(rx, tx)
        return self._rates.get(reading.name, SonicPortRate())


LANES = 8
NOT_AVAILABLE = "N/A"
TYPES = {"OSFP": "OSFP 8X Pluggable Transceiver", "QSFP-DD": "QSFP-DD Double Density 8X Pluggable Transceiver"}
MEDIA = {
    "optic": "sm_media_interface",
    "active": "active_cable_media_interface",
    "copper": "passive_copper_media_interface",
}
Fields = Mapping[str, str]


def info(module: TransceiverReading) -> Fields:
    return {
        "type": TYPES.get(module.identifier, module.identifier),
        "manufacturer": module.vendor,
        "model": module.part,
        "serial": module.serial,
        "vendor_rev": module.revision,
        "vendor_oui": NOT_AVAILABLE,
        "vendor_date": NOT_AVAILABLE,
        "active_firmware": module.firmware or NOT_AVAILABLE,
        "inactive_firmware": NOT_AVAILABLE,
        "cable_length": f"{module.length_m:g}",
        "cable_type": "Length Cable Assembly(m)",
        "connector": "No separable connector" if module.kind != "optic" else "MPO 1x12",
        "specification_compliance": MEDIA[module.kind],
        "media_interface_technology": "Copper cable unequalized" if module.kind == "copper" else NOT_AVAILABLE,
        "is_replaceable": "True",
        "dom_capability": NOT_AVAILABLE,
    }


def sensors(module: TransceiverReading) -> Fields:
    """TRANSCEIVER_DOM_SENSOR; a module without diagnostics has no values."""
    is_powered = module.temperature_limits is not None
    found = {
        "temperature": str(module.temperature_c) if is_powered else NOT_AVAILABLE,
        "voltage": str(module.voltage_v) if is_powered else NOT_AVAILABLE,
    }
    lanes = dict(enumerate(module.lanes, module.first_lane))
    for number in range(1, LANES + 1):
        lane = lanes.get(number)
        found |= {
            f"rx{number}power": str(lane.rx_dbm) if lane else NOT_AVAILABLE,
            f"tx{number}power": str(lane.tx_dbm) if lane else NOT_AVAILABLE,
            f"tx{number}bias": str(lane.bias_ma) if lane else NOT_AVAILABLE,
        }
    return found


def thresholds(module: TransceiverReading) -> Fields:
    found: dict[str, str] = {}
    for name, limits in (
        ("rxpower", module.rx_limits),
        ("txbias", module.bias_limits),
        ("txpower", module.tx_limits),
        ("temp", module.temperature_limits),
        ("vcc", module.voltage_limits),
    ):
        found |= {
            f"{name}highalarm": str(limits.alarm_high) if limits else NOT_AVAILABLE,
            f"{name}highwarning": str(limits.warning_high) if limits else NOT_AVAILABLE,
            f"{name}lowalarm": str(limits.alarm_low) if limits else NOT_AVAILABLE,
            f"{name}lowwarning": str(limits.warning_low) if limits else NOT_AVAILABLE,
        }
    return found


def status(module: TransceiverReading) -> Fields:
    """TRANSCEIVER_STATUS: the module state, and which lanes have lost the signal."""
    lanes = dict(enumerate(module.lanes, module.first_lane))
    dark = {
        f"rxlos{number}": str(lane.rx_dbm <= module.rx_limits.alarm_low) if module.rx_limits else NOT_AVAILABLE
        for number, lane in lanes.items()
    }
    faults = {f"txfault{number}": "False" for number in lanes}
    return {"cmis_state": "READY", "module_state": "ModuleReady", **dark, **faults}


def split_status(module: TransceiverReading) -> Mapping[str, Fields]:
    """The status as later branches split it: software state, module state and flags."""
    found = status(module)
    flags = {name: value for name, value in found.items() if name.startswith(("rxlos", "txfault"))}
    return {
        "STATUS_SW": {"status": "1", "cmis_state": found["cmis_state"]},
        "STATUS": {"module_state": found["module_state"]},
        "STATUS_FLAG": flags,
    }
