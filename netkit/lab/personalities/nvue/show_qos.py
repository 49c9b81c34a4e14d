"""`nv show` of QoS: effective settings, and counters of queues, buffers, PFC and its watchdog."""

from collections.abc import Iterable, Sequence

from netkit.lab.personalities.nvue.state import POLL_MS, ROBUSTNESS, port_qos
from netkit.lab.personalities.nvue.system import NvueShowContext, Shown
from netkit.lab.personalities.nvue.tree import child, is_on, number, text
from netkit.lab.reading import BufferReading, PriorityReading, QueueReading
from netkit.lab.state import QosState, SchedulerState


def qos_counters(context: NvueShowContext) -> Shown:
    """The counters of a port per queue and priority."""
    port = context.port
    return {
        "egress-queue-stats": {
            str(at): {
                "tx-frames": queue.tx_packets,
                "tx-bytes": queue.tx_bytes,
                "tx-uc-buffer-discards": queue.dropped_packets,
                "wred-discards": 0,
                "ecn-marked-frames": queue.ecn_marked_packets,
            }
            for at, queue in enumerate(port.queues)
        },
        "ingress-buffer-stats": {
            str(at): {"rx-buffer-discards": group.dropped_packets, "rx-shared-buffer-discards": 0}
            for at, group in enumerate(port.buffers)
        },
        "pfc-stats": {
            str(at): {
                "rx-pause-frames": priority.rx_pause,
                "rx-pause-duration": priority.rx_pause_us,
                "tx-pause-frames": priority.tx_pause,
                "tx-pause-duration": priority.tx_pause_us,
            }
            for at, priority in enumerate(port.priorities)
        },
        "port-stats": {
            "ecn-marked-packets": {
                "receive": "n/a",
                "transmit": sum(queue.ecn_marked_packets for queue in port.queues),
            },
            "mc-buffer-discards": {"receive": "n/a", "transmit": 0},
            "pause-frames": {"receive": 0, "transmit": 0},
        },
    }


def roce_counters(context: NvueShowContext) -> Shown:
    """The RoCE and CNP counters of a port."""
    port, qos = context.port, context.port_state.qos
    lossless = sorted(qos.pfc_priorities)
    classes = sorted({qos.class_of_priority[priority] for priority in lossless})
    data = [port.queues[at] for at in classes if at < len(port.queues)]
    paused = [port.priorities[at] for at in lossless]
    groups = [port.buffers[at] for at in lossless if at < len(port.buffers)]
    return {
        "rx-stats": _roce_received(paused, groups),
        "tx-stats": _roce_sent(paused, data, port.queues[qos.class_of_priority[6]]),
    }


def _roce_received(paused: Sequence[PriorityReading], groups: Sequence[BufferReading]) -> Shown:
    return {
        "rx-pfc-stats": {
            "pause-duration": sum(one.rx_pause_us for one in paused),
            "pause-packets": sum(one.rx_pause for one in paused),
        },
        "rx-roce-stats": {
            "no-buffer-discard": sum(one.dropped_packets for one in groups),
            "pg-usage": sum(one.occupancy_bytes for one in groups),
            "pg-max-usage": max((one.peak_bytes for one in groups), default=0),
        },
    }


def _roce_sent(paused: Sequence[PriorityReading], data: Sequence[QueueReading], cnp: QueueReading) -> Shown:
    return {
        "tx-cnp-stats": {
            "cnp-bytes": cnp.tx_bytes,
            "cnp-packets": cnp.tx_packets,
            "tc-usage": cnp.occupancy_bytes,
            "unicast-no-buffer-discard": cnp.dropped_packets,
        },
        "tx-ecn-stats": {"ecn-marked-packets": sum(one.ecn_marked_packets for one in data)},
        "tx-pfc-stats": {
            "pause-duration": sum(one.tx_pause_us for one in paused),
            "pause-packets": sum(one.tx_pause for one in paused),
        },
        "tx-roce-stats": {
            "roce-bytes": sum(one.tx_bytes for one in data),
            "roce-packets": sum(one.tx_packets for one in data),
            "tc-usage": sum(one.occupancy_bytes for one in data),
            "tc-max-usage": max((one.peak_bytes for one in data), default=0),
            "unicast-no-buffer-discard": sum(one.dropped_packets for one in data),
        },
    }


def watchdog(context: NvueShowContext) -> Shown:
    """The PFC watchdog of a port and the state of each lossless traffic class."""
    port, qos = context.port, context.port_state.qos
    if qos.watchdog is None:
        return {"state": "disabled"}
    classes = sorted({qos.class_of_priority[priority] for priority in qos.pfc_priorities})
    status = {
        str(at): {
            "status": "DEADLOCK" if port.watchdogs[at].is_stormed else "OK",
            "deadlock-count": port.watchdogs[at].storms_detected,
        }
        for at in classes
        if at < len(port.watchdogs)
    }
    return {"state": "enabled", "status": status}


def _comma_list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def roce(context: NvueShowContext) -> Shown:
    """The RoCE mode and the settings it implies."""
    qos = port_qos(context.tree, {})
    configured = child(context.tree, "qos", "roce")
    toggle = "state" if context.is_since(5, 15) else "enable"
    shown: dict[str, object] = {toggle: context.word(is_on=is_on(configured))}
    if not is_on(configured):
        return shown
    shown |= {"mode": text(configured, "mode") or "lossless", "pfc": _pfc(qos), "congestion-control": _ecn(qos)}
    shown["cable-length"] = number(configured, "cable-length", default=100)
    shown["trust"] = {"trust-mode": "pcp,dscp" if qos.priority_of_dscp else "pcp"}
    shown["lldp-app-tlv"] = {"priority": 3, "protocol-id": 4791, "selector": "UDP"}
    prio_map, sp_map = {}, {}
    for priority, traffic_class in enumerate(qos.class_of_priority):
        if traffic_class not in {3, 6}:
            continue
        number_ = str(priority)
        dscps = _comma_list(dscp for dscp, owner in enumerate(qos.priority_of_dscp) if owner == priority)
        prio_map[number_] = {"pcp": number_, "dscp": dscps, "switch-priority": number_}
        served = qos.schedulers.get(traffic_class, SchedulerState("weighted", 0))
        weight = "strict-priority" if served.mode == "strict" else f"DWRR-{served.weight_percent}%"
        sp_map[number_] = {
            "switch-priority": number_,
            "traffic-class": str(traffic_class),
            "scheduler-weight": weight,
        }
    shown |= {"prio-map": prio_map, "sp-map": sp_map, "pool-map": _pools(context)}
    return shown


def _pfc(qos: QosState) -> Shown:
    enabled = "enabled" if qos.pfc_priorities else "disabled"
    return {
        "pfc-priority": _comma_list(qos.pfc_priorities) or "-",
        "rx-enabled": enabled,
        "tx-enabled": enabled,
        "cable-length": qos.cable_length_m,
    }


def _ecn(qos: QosState) -> Shown:
    if not qos.ecn:
        return {"congestion-mode": "-", "enabled-tc": "-"}
    first = qos.ecn[max(qos.ecn)]
    return {
        "congestion-mode": "ECN",
        "enabled-tc": _comma_list(qos.ecn),
        "min-threshold": first.min_bytes,
        "max-threshold": first.max_bytes,
        "probability": first.probability_percent,
    }


def _pools(context: NvueShowContext) -> Shown:
    pools = child(context.tree, "qos", "traffic-pool")
    lossy = number(pools, "default-lossy", "memory-percent", default=50)
    lossless = number(pools, "roce-lossless", "memory-percent", default=100 - lossy)
    rows = (
        ("lossy-default-ingress", f"{lossy}%"),
        ("roce-reserved-ingress", f"{lossless}%"),
        ("lossy-default-egress", f"{lossy}%"),
        ("roce-reserved-egress", "inf"),
    )
    return {str(at): {"name": name, "mode": "Dynamic", "size": size} for at, (name, size) in enumerate(rows)}


def port_roce(context: NvueShowContext) -> Shown:
    qos = context.port_state.qos
    ecn = dict(_ecn(qos))
    ecn["congestion-mode"] = "ecn, absolute" if qos.ecn else "-"
    shown: dict[str, object] = {"pfc": dict(_pfc(qos)), "congestion-control": ecn}
    shown["trust"] = {"trust-mode": "pcp,dscp" if qos.priority_of_dscp else "pcp"}
    shown["mode"] = text(context.tree, "qos", "roce", "mode") or "lossless"
    return shown


def port_ecn(context: NvueShowContext) -> Shown:
    on, off = ("enabled", "disabled") if context.is_since(5, 17) else ("enable", "disable")
    rows = {
        str(traffic_class): {
            "ecn": on,
            "red": off,
            "min-threshold": ecn.min_bytes,
            "max-threshold": ecn.max_bytes,
            "probability": ecn.probability_percent,
        }
        for traffic_class, ecn in context.port_state.qos.ecn.items()
    }
    return {"traffic-class": rows}


def scheduler(context: NvueShowContext) -> Shown:
    """The scheduler of ports without a profile."""
    qos = port_qos(context.tree, {})
    rows: dict[str, object] = {}
    for traffic_class, served in qos.schedulers.items():
        is_strict = served.mode == "strict"
        rows[str(traffic_class)] = (
            {"mode": "strict"} if is_strict else {"mode": "dwrr", "bw-percent": served.weight_percent}
        )
    return {"traffic-class": rows}


def mapping(context: NvueShowContext) -> Shown:
    """The DSCP mapping of ports without a profile."""
    qos = port_qos(context.tree, {})
    priorities = qos.priority_of_dscp
    trust = "l2"
    if priorities:
        trust = "both" if is_on(context.tree, "qos", "roce") else "l3"
    return {"trust": trust, "dscp": {str(dscp): {"switch-priority": owner} for dscp, owner in enumerate(priorities)}}


def queue_mapping(context: NvueShowContext) -> Shown:
    classes = port_qos(context.tree, {}).class_of_priority
    return {"switch-priority": {str(priority): {"traffic-class": one} for priority, one in enumerate(classes)}}


def whole(context: NvueShowContext) -> Shown:
    """All of QoS: the configuration, and the effective settings of ports without profiles."""
    configured = child(context.tree, "qos")
    watchdog_times = {"polling-interval": POLL_MS, "robustness": ROBUSTNESS, **child(configured, "pfc-watchdog")}
    effective = {"egress-queue-mapping": queue_mapping, "egress-scheduler": scheduler, "mapping": mapping}
    profiles = {name: {**child(configured, name), "default-global": view(context)} for name, view in effective.items()}
    return {**configured, **profiles, "pfc-watchdog": watchdog_times, "roce": roce(context)}
