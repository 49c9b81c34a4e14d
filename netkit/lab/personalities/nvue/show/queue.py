"""What ports count of queues, buffers, pauses and the PFC watchdog."""

from collections.abc import Sequence

from netkit.lab.personalities.nvue.show.look import Look, Shown
from netkit.lab.reading import BufferReading, PriorityReading, QueueReading


def queues(look: Look) -> Shown:
    """Return the egress queues of a port."""
    return {
        str(at): {
            "tx-frames": queue.tx_packets,
            "tx-bytes": queue.tx_bytes,
            "tx-uc-buffer-discards": queue.dropped_packets,
            "wred-discards": 0,
            "ecn-marked-frames": queue.ecn_marked_packets,
        }
        for at, queue in enumerate(look.port.queues)
    }


def ingress(look: Look) -> Shown:
    """Return what the priority groups of a port dropped."""
    return {
        str(at): {"rx-buffer-discards": group.dropped_packets, "rx-shared-buffer-discards": 0}
        for at, group in enumerate(look.port.buffers)
    }


def pauses(look: Look) -> Shown:
    """Return the pause frames of a port by priority."""
    return {
        str(at): {
            "rx-pause-frames": priority.rx_pause,
            "rx-pause-duration": priority.rx_pause_us,
            "tx-pause-frames": priority.tx_pause,
            "tx-pause-duration": priority.tx_pause_us,
        }
        for at, priority in enumerate(look.port.priorities)
    }


def port_totals(look: Look) -> Shown:
    """Return the totals of a port."""
    marked = sum(queue.ecn_marked_packets for queue in look.port.queues)
    return {
        "ecn-marked-packets": {"receive": "n/a", "transmit": marked},
        "mc-buffer-discards": {"receive": "n/a", "transmit": 0},
        "pause-frames": {"receive": 0, "transmit": 0},
    }


def qos_counters(look: Look) -> Shown:
    """Return all that a port counts per queue and priority."""
    return {
        "egress-queue-stats": queues(look),
        "ingress-buffer-stats": ingress(look),
        "pfc-stats": pauses(look),
        "port-stats": port_totals(look),
    }


def roce_counters(look: Look) -> Shown:
    """Return what a port counts of RoCE and its congestion notifications."""
    port, qos = look.port, look.port_state.qos
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


def watchdog(look: Look) -> Shown:
    """Return the PFC watchdog of a port."""
    qos = look.port_state.qos
    if qos.watchdog is None:
        return {"state": "disabled"}
    return {"state": "enabled", "status": watchdog_status(look)}


def watchdog_status(look: Look) -> Shown:
    """Return the watchdog of each lossless traffic class."""
    port, qos = look.port, look.port_state.qos
    classes = sorted({qos.class_of_priority[priority] for priority in qos.pfc_priorities}) if qos.watchdog else []
    return {
        str(at): {
            "status": "DEADLOCK" if port.watchdogs[at].is_stormed else "OK",
            "deadlock-count": port.watchdogs[at].storms_detected,
        }
        for at in classes
        if at < len(port.watchdogs)
    }


def priority_groups(look: Look) -> Shown:
    """Return the ingress buffers of a port."""
    qos = look.port_state.qos
    return {
        str(at): {
            "mode": "lossless" if at in qos.pfc_priorities else "lossy",
            "current-usage": group.occupancy_bytes,
            "max-usage": group.peak_bytes,
            "headroom-current-usage": group.headroom_bytes,
            "headroom-max-usage": group.headroom_peak_bytes,
        }
        for at, group in enumerate(look.port.buffers)
    }


def traffic_classes(look: Look) -> Shown:
    """Return the egress buffers of a port."""
    return {
        str(at): {"current-usage": queue.occupancy_bytes, "max-usage": queue.peak_bytes}
        for at, queue in enumerate(look.port.queues)
    }


def buffers(look: Look) -> Shown:
    """Return both."""
    return {"ingress-priority-group": priority_groups(look), "egress-traffic-class": traffic_classes(look)}
