"""`show` of ports: state, counters, transceivers and the physical layer; and of PFC, its watchdog, queues and ECN."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from netkit.lab.netlink import PEER_INTERFACE
from netkit.lab.personalities.eos.machine import Captured, ShowContext, table
from netkit.lab.personalities.eos.reply import EosReply
from netkit.lab.personalities.eos.switch_state import (
    class_of_dscp,
    is_dynamic,
    is_routed,
    is_vlan,
    members,
    mlag,
    of_class,
    port_qos,
    profile_of,
    watchdog_times,
)
from netkit.lab.reading import LaneReading, ModuleThresholds, SwitchPortReading, TransceiverReading
from netkit.lab.state import CODE_POINTS, PRIORITIES

GIGABIT = 10**9
VIRTUAL_MTU = {"Loopback": 65535, "Management": 1500, "Vlan": 1500}
VIRTUAL_KIND = {"Loopback": "loopback", "Management": "ethernet", "Vlan": "vlan"}


def link_status(reading: SwitchPortReading) -> str:
    if not reading.is_enabled:
        return "disabled"
    return "connected" if reading.is_up else "notconnect"


def protocol(reading: SwitchPortReading) -> str:
    return "up" if reading.is_up else "down"


def interfaces(context: ShowContext, captured: Captured) -> EosReply:
    shown = {port: _interface(context, port, reading) for port, reading in context.ports(captured)}
    if "ports" not in captured:
        shown |= dict(_virtual(context))
    text = "".join(
        f"{name} is {'up' if one['interfaceStatus'] == 'connected' else 'down'}, "
        f"line protocol is {one['lineProtocolStatus']} ({one['interfaceStatus']})\n"
        f"  Description: {one['description']}\n  MTU {one['mtu']} bytes, BW {one['bandwidth'] // 1000} kbit\n"
        for name, one in shown.items()
    )
    return EosReply({"interfaces": shown}, text)


def _interface(context: ShowContext, port: str, reading: SwitchPortReading) -> dict[str, Any]:
    addresses = [rest[0] for rest in context.section(port).find("ip", "address")]
    return {
        "name": port,
        "description": context.section(port).word("description"),
        "hardware": "ethernet",
        "mtu": reading.mtu_bytes,
        "bandwidth": reading.speed_gbps * GIGABIT,
        "duplex": "duplexFull",
        "interfaceStatus": link_status(reading),
        "lineProtocolStatus": protocol(reading),
        "lastStatusChangeTimestamp": context.now_s - reading.link_up_s,
        "physicalAddress": reading.mac,
        "burnedInAddress": reading.mac,
        "lanes": len(reading.module.lanes) if reading.module else 0,
        "forwardingModel": "routed" if is_routed(context.section(port)) else "bridged",
        "interfaceAddress": [_address(text) for text in addresses if is_routed(context.section(port))],
        "interfaceStatistics": {"inBitsRate": 0.0, "outBitsRate": 0.0, "inPktsRate": 0.0, "outPktsRate": 0.0},
        "interfaceCounters": {
            **_counters(reading),
            "linkStatusChanges": reading.carrier_changes,
            "totalInErrors": reading.traffic.rx_errors,
            "totalOutErrors": reading.traffic.tx_errors,
            "inputErrorsDetail": {
                "runtFrames": 0,
                "giantFrames": 0,
                "fcsErrors": reading.fec.uncorrectable_codewords,
                "alignmentErrors": 0,
                "symbolErrors": reading.fec.uncorrectable_codewords,
                "rxPause": 0,
            },
            "outputErrorsDetail": {"collisions": 0, "lateCollisions": 0, "deferredTransmissions": 0, "txPause": 0},
            "counterRefreshTime": context.now_s,
        },
    }


def _address(text: str) -> dict[str, Any]:
    address, _, length = text.partition("/")
    return {"primaryIp": {"address": address, "maskLen": int(length)}, "broadcastAddress": "255.255.255.255"}


def _virtual(context: ShowContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield loopbacks, VLAN interfaces and the management port; the latter exists only as configuration."""
    for (name,), section in context.config.sections("interface"):
        kind = name.rstrip("0123456789/")
        if kind not in VIRTUAL_MTU:
            continue
        is_up = not section.has("shutdown") and (kind != "Vlan" or is_vlan(context.config, name.removeprefix("Vlan")))
        yield (
            name,
            {
                "name": name,
                "description": section.word("description"),
                "hardware": VIRTUAL_KIND[kind],
                "mtu": int(section.word("mtu") or VIRTUAL_MTU[kind]),
                "bandwidth": GIGABIT if kind == "Management" else 0,
                "interfaceStatus": "connected" if is_up else "disabled",
                "lineProtocolStatus": "up" if is_up else "down",
                "interfaceAddress": [_address(rest[0]) for rest in section.find("ip", "address")],
                "vrf": section.word("vrf") or "default",
            },
        )


def _counters(reading: SwitchPortReading) -> dict[str, int]:
    """The counters of a port. The kernel does not distinguish multicast from unicast."""
    traffic = reading.traffic
    return {
        "inOctets": traffic.rx_bytes,
        "inUcastPkts": traffic.rx_packets,
        "inMulticastPkts": 0,
        "inBroadcastPkts": 0,
        "inDiscards": traffic.rx_dropped,
        "outOctets": traffic.tx_bytes,
        "outUcastPkts": traffic.tx_packets,
        "outMulticastPkts": 0,
        "outBroadcastPkts": 0,
        "outDiscards": traffic.tx_dropped + sum(queue.dropped_packets for queue in reading.queues),
    }


def flow_control(context: ShowContext, captured: Captured) -> EosReply:
    """Show 802.3x pause, which is off where PFC is used."""
    off = {"txAdminState": "off", "txOperState": "off", "rxAdminState": "off", "rxOperState": "off"}
    shown = {port: {**off, "txPause": 0, "rxPause": 0} for port, _ in context.ports(captured)}
    rows = [(port, "off", "off", 0, 0) for port in shown]
    return EosReply({"interfaceFlowControls": shown}, table(("Port", "Send", "Receive", "RxPause", "TxPause"), rows))


def port_channels(context: ShowContext, _: Captured) -> EosReply:
    """Show the port channels. LACP is not emulated: a member carries where its link is up."""
    up = {port for port, reading in context.ports({}) if reading.is_up}
    shown: dict[str, Any] = {}
    for (name,), section in context.config.sections("interface"):
        if not name.startswith("Port-Channel"):
            continue
        ports = members(context.config, name)
        active = [port for port in ports if port in up and not section.has("shutdown")]
        mode = {port: context.section(port).one("channel-group") or ("", "", "") for port in ports}
        shown[name] = {
            "recircFeature": [],
            "fallbackState": "unconfigured",
            "minSpeed": "0 gbps",
            "minLinks": 0,
            "currWeight": len(active),
            "maxWeight": 16,
            "activePorts": {
                port: {
                    "protocol": "static" if mode[port][2] == "on" else "lacp",
                    "lacpMode": mode[port][2],
                    "weight": 1,
                    "timeBecameActive": context.now_s,
                }
                for port in active
            },
            "inactivePorts": {
                port: {"reasonUnconfigured": "link down", "timeBecameInactive": 0.0}
                for port in ports
                if port not in active
            },
            "inactiveLag": not active,
        }
    rows = [(name, " ".join(one["activePorts"]), " ".join(one["inactivePorts"])) for name, one in shown.items()]
    return EosReply({"portChannels": shown}, table(("Port-Channel", "Active", "Inactive"), rows))


def mlag_state(context: ShowContext, _: Captured) -> EosReply:
    """Show the pair. The peer is there if both switches have MLAG, and a link between them is up."""
    found = mlag(context.config)
    counts = {"Disabled": 0, "Configured": 0, "Inactive": 0, "Active-partial": 0, "Active-full": 0}
    if found is None:
        detail: dict[str, Any] = {"mlagState": "disabled", "peerMlagState": "unknown", "udpHeartbeatAlive": False}
        return EosReply({"state": "disabled", "mlagPorts": counts, "detail": detail}, "MLAG is disabled\n")
    up = {port for port, reading in context.ports({}) if reading.is_up}
    is_link_up = not up.isdisjoint(members(context.config, found.link))
    is_alive = is_link_up and _has_carrier(context, PEER_INTERFACE)
    for (name,), section in context.config.sections("interface"):
        if section.word("mlag"):
            counts["Active-full" if not up.isdisjoint(members(context.config, name)) else "Inactive"] += 1
    roles = ("primary", "secondary") if found.is_first else ("secondary", "primary")
    data = {
        "state": "active" if is_alive else "inactive",
        "negStatus": "connected" if is_alive else "connecting",
        "peerLinkStatus": "up" if is_link_up else "down",
        "localIntfStatus": "up" if is_link_up else "down",
        "configSanity": "consistent" if is_alive else "",
        "domainId": found.domain,
        "localInterface": found.interface,
        "peerAddress": found.peer,
        "peerLink": found.link,
        "portsErrdisabled": False,
        "dualPrimaryDetectionState": "configured" if found.backup else "disabled",
        "mlagPorts": counts,
        "detail": {
            "mlagState": roles[0],
            "peerMlagState": roles[1] if is_alive else "unknown",
            "udpHeartbeatAlive": is_alive,
        },
    }
    return EosReply(data, table(("state", "negotiation"), [(data["state"], data["negStatus"])]))


def _has_carrier(context: ShowContext, name: str) -> bool:
    found = json.loads(context.machine.node.run("ip", "-j", "link", "show", name).stdout or "[]")
    return any("LOWER_UP" in one["flags"] for one in found)


INTERFACE_VIEWS = (
    ("show port-channel", port_channels),
    ("show mlag", mlag_state),
    ("show mlag detail", mlag_state),
    ("show interfaces", interfaces),
    ("show interfaces flow-control", flow_control),
)


DARK_DBM = -30.0
"""What EOS prints for a lane without a signal."""
FEC_WORDS = {"rs": "reedSolomon544", "fc": "fireCode", "none": "disabled", "": "disabled"}
CODEWORD_SIZE = {"rs": 544, "fc": 2112}
FEC_LANES = 16
NO_CHANNEL = "-"
"""The channel of values that belong to the whole module."""


def transceivers(context: ShowContext, captured: Captured) -> EosReply:
    """Show the first lane of each port; empty cages are omitted."""
    shown = {port: _summary(context, reading) for port, reading in context.ports(captured) if reading.module}
    rows = [
        (port, one.get("temperature", "N/A"), one.get("voltage", "N/A"), one.get("txBias", "N/A"),
         one.get("txPower", "N/A"), one.get("rxPower", "N/A"))
        for port, one in shown.items()
    ]  # fmt: skip
    return EosReply({"interfaces": shown}, table(("Port", "Temp", "Voltage", "Bias", "TxPower", "RxPower"), rows))


def _summary(context: ShowContext, reading: SwitchPortReading) -> dict[str, Any]:
    module = reading.module
    if module is None or not module.lanes:
        kind = {"mediaType": module.media, "vendorSn": module.serial} if module else {}
        return {**kind, "details": {}}
    lane = module.lanes[0]
    details: dict[str, Any] = {}
    for name, limits in _limits(module):
        details[name] = {**_threshold(limits), "highAlarmOverridden": False, "lowAlarmOverridden": False}
    return {
        "slot": reading.name.removeprefix("Ethernet").partition("/")[0],
        "channel": str(module.first_lane),
        "vendorSn": module.serial,
        "mediaType": module.media,
        "narrowBand": False,
        "updateTime": context.now_s,
        "temperature": module.temperature_c,
        "voltage": module.voltage_v,
        "txBias": lane.bias_ma,
        "txPower": _light(lane.tx_dbm),
        "rxPower": _light(lane.rx_dbm),
        "details": details,
    }


def thresholds(context: ShowContext, captured: Captured) -> EosReply:
    """Show every lane with the module's thresholds."""
    shown = {port: _lanes(port, reading) for port, reading in context.ports(captured) if reading.module}
    rows = [
        (port, name, channel, value)
        for port, one in shown.items()
        for name, parameter in one.get("parameters", {}).items()
        for channel, value in parameter["channels"].items()
    ]
    return EosReply({"interfaces": shown}, table(("Port", "Parameter", "Channel", "Value"), rows))


def _lanes(port: str, reading: SwitchPortReading) -> dict[str, Any]:
    module = reading.module
    if module is None:
        return {}
    shown: dict[str, Any] = {"displayName": port, "vendorSn": module.serial, "mediaType": module.media}
    if not module.lanes:
        return shown
    lane_values: dict[str, tuple[str, Callable[[LaneReading], float]]] = {
        "rxPower": ("dBm", lambda lane: _light(lane.rx_dbm)),
        "txPower": ("dBm", lambda lane: _light(lane.tx_dbm)),
        "txBias": ("mA", lambda lane: lane.bias_ma),
    }
    limits = dict(_limits(module))
    parameters: dict[str, Any] = {}
    for name, (unit, value_of) in lane_values.items():
        channels = {str(module.first_lane + index): value_of(lane) for index, lane in enumerate(module.lanes)}
        parameters[name] = {"unit": unit, "channels": channels, "threshold": _threshold(limits[name])}
    for name, unit, value in (("temperature", "C", module.temperature_c), ("voltage", "V", module.voltage_v)):
        parameters[name] = {"unit": unit, "channels": {NO_CHANNEL: value}, "threshold": _threshold(limits[name])}
    return {**shown, "parameters": parameters}


def _limits(module: TransceiverReading) -> Iterator[tuple[str, ModuleThresholds | None]]:
    yield "rxPower", module.rx_limits
    yield "txPower", module.tx_limits
    yield "txBias", module.bias_limits
    yield "temperature", module.temperature_limits
    yield "voltage", module.voltage_limits


def _threshold(limits: ModuleThresholds | None) -> dict[str, float]:
    """Thresholds as EOS prints them; 0 where the module has none."""
    if limits is None:
        return {"lowAlarm": 0.0, "lowWarn": 0.0, "highWarn": 0.0, "highAlarm": 0.0}
    return {
        "lowAlarm": limits.alarm_low,
        "lowWarn": limits.warning_low,
        "highWarn": limits.warning_high,
        "highAlarm": limits.alarm_high,
    }


def _light(dbm: float) -> float:
    return max(dbm, DARK_DBM)


def hardware(context: ShowContext, captured: Captured) -> EosReply:
    """Show the modules. That EOS prints the firmware here, in this format, is unverified."""
    rows = [
        f"Name: {port}\nMedia type: {reading.module.media}\nModule presence: detected\n"
        f"Maximum slot power (W): N/A\nFirmware version: {reading.module.firmware or 'N/A'}\n"
        if reading.module
        else f"Name: {port}\nModule presence: not detected\nMaximum slot power (W): N/A\n"
        for port, reading in context.ports(captured)
    ]
    return EosReply(None, "\n".join(rows))


def phy(context: ShowContext, captured: Captured) -> EosReply:
    """Show the line side of each PHY."""
    shown = {port: _phy(context, reading) for port, reading in context.ports(captured)}
    rows = [
        (port, one["phyStatuses"][0]["phyState"]["value"], one["phyStatuses"][0]["fec"]["encoding"])
        for port, one in shown.items()
    ]
    return EosReply({"interfacePhyStatuses": shown}, table(("Port", "PHY state", "FEC"), rows))


def _phy(context: ShowContext, reading: SwitchPortReading) -> dict[str, Any]:
    changed = {"changes": reading.carrier_changes, "lastChange": context.now_s - reading.link_up_s}
    fec: dict[str, Any] = {"encoding": FEC_WORDS.get(reading.fec.mode, reading.fec.mode)}
    if reading.fec.mode in CODEWORD_SIZE:
        fec |= {
            "codewordSize": CODEWORD_SIZE[reading.fec.mode],
            "alignmentLock": {"value": reading.is_up, **changed},
            "correctedCodewords": {"value": reading.fec.corrected_codewords, **changed},
            "uncorrectedCodewords": {"value": reading.fec.uncorrectable_codewords, **changed},
            "correctedSymbols": {str(lane): {"value": count} for lane, count in enumerate(_symbols(reading))},
        }
    line = {
        "description": {"phyChipName": "lab", "location": "line"},
        "operSpeed": f"{reading.speed_gbps}Gbps",
        "phyState": {"value": "linkUp" if reading.is_up else "linkDown", **changed},
        "pcs": {
            "linkStatus": {"value": "up" if reading.is_up else "down"},
            "blockLock": {"value": reading.is_up},
            "highBer": {"value": False},
        },
        "fec": fec,
        "preFecBer": {"value": reading.fec.pre_fec_ber},
    }
    module = reading.module
    return {
        "phyStatuses": [line],
        "interfaceState": {"value": "up" if reading.is_up else "down", **changed},
        "transceiver": {"mediaType": module.media, "vendorSn": module.serial.ljust(16)} if module else {},
        "macFaults": {"localFault": {"value": not reading.is_up}, "remoteFault": {"value": False}},
    }


def _symbols(reading: SwitchPortReading) -> list[int]:
    """Spread the corrected symbols over the FEC lanes; EOS has no histogram."""
    whole, rest = divmod(sum(wrong * count for wrong, count in enumerate(reading.fec.histogram)), FEC_LANES)
    return [whole + (lane < rest) for lane in range(FEC_LANES)]


def error_correction(context: ShowContext, captured: Captured) -> EosReply:
    shown = {
        port: {"errCorrEncodingStatus": FEC_WORDS.get(reading.fec.mode, reading.fec.mode)}
        for port, reading in context.ports(captured)
    }
    rows = [(port, one["errCorrEncodingStatus"]) for port, one in shown.items()]
    return EosReply({"interfaceErrCorrStatuses": shown}, table(("Port", "Encoding"), rows))


OPTIC_VIEWS = (
    ("show interfaces transceiver", transceivers),
    ("show interfaces transceiver dom thresholds", thresholds),
    ("show interfaces transceiver hardware", hardware),
    ("show interfaces phy detail", phy),
    ("show interfaces error-correction", error_correction),
)


def detail(context: ShowContext, captured: Captured) -> EosReply:
    """Show PFC frames per priority."""
    shown = {
        port: {
            "priorities": {
                str(number): {"rxFrames": one.rx_pause, "txFrames": one.tx_pause}
                for number, one in enumerate(reading.priorities)
            }
        }
        for port, reading in context.ports(captured)
    }
    rows = [
        (port, number, frames["rxFrames"], frames["txFrames"])
        for port, one in shown.items()
        for number, frames in one["priorities"].items()
    ]
    return EosReply({"interfaces": shown}, table(("Port", "Priority", "RxPfc", "TxPfc"), rows))


def watchdog(context: ShowContext, captured: Captured) -> EosReply:
    """Show PFC watchdog events; a port is listed from its first storm. A storm persists while stuck > recovered."""
    shown: dict[str, Any] = {}
    for port, reading in context.ports(captured):
        queues = {
            str(number): {"stuckCount": one.storms_detected, "recoveryCount": one.storms_restored}
            for number, one in enumerate(reading.watchdogs)
            if one.storms_detected
        }
        if queues:
            shown[port] = {"txQueues": queues}
    rows = [
        (port, number, counts["stuckCount"], counts["recoveryCount"])
        for port, one in shown.items()
        for number, counts in one["txQueues"].items()
    ]
    return EosReply({"interfaces": shown}, table(("Port", "TxQ", "Total times stuck", "Total times recovered"), rows))


def status(context: ShowContext, captured: Captured) -> EosReply:
    """Show the PFC state. Text only: the JSON form is not known from a switch."""
    times = watchdog_times(context.config)
    head = (
        f"The hardware supports PFC on priorities 0 1 2 3 4 5 6 7\n"
        f"The PFC watchdog timeout is {times.timeout_s:g} second(s)\n"
        f"The PFC watchdog recovery-time is {times.recovery_s:g} second(s)\n"
        f"The PFC watchdog polling-interval is {times.polling_s:g} second(s)\n"
        f"The PFC watchdog action is {times.action}\n"
        f"The PFC watchdog override action drop is {'true' if times.override else 'false'}\n\n"
    )
    rows = [_pfc_row(context, port, reading) for port, reading in context.ports(captured)]
    return EosReply(None, head + table(("Port", "Enabled", "Priorities", "Active", "Watchdog", "Note"), rows))


def _pfc_row(context: ShowContext, port: str, reading: SwitchPortReading) -> tuple[str, ...]:
    section = context.section(port)
    qos = port_qos(context.config, section, is_routed=is_routed(section))
    profile = profile_of(context.config, section)
    is_on = profile.has_pfc and not context.config.has("priority-flow-control", "all", "off")
    return (
        port,
        "Yes" if is_on else "No",
        " ".join(map(str, sorted(profile.no_drop))),
        "Yes" if qos.pfc_priorities and reading.is_up else "No",
        "On" if qos.watchdog else "Off",
        "DCBX disabled",
    )


PFC_VIEWS = (
    ("show priority-flow-control", status),
    ("show priority-flow-control counters detail", detail),
    ("show priority-flow-control counters watchdog", watchdog),
)


NOT_COUNTED = "-"
DISTRIBUTION = ("hash", "dynamic")


def ecn_counters(context: ShowContext, captured: Captured) -> EosReply:
    """Show ECN-marked packets per queue as strings; a dash, not zero, where counting is not configured."""
    shown = {}
    for port, reading in context.ports(captured):
        profile = profile_of(context.config, context.section(port))
        shown[port] = {
            "queueCounters": {
                str(number): str(queue.ecn_marked_packets)
                if profile.queue(number).is_ecn_counted and profile.queue(number).ecn
                else NOT_COUNTED
                for number, queue in enumerate(reading.queues)
            }
        }
    rows = [(port, number, count) for port, one in shown.items() for number, count in one["queueCounters"].items()]
    return EosReply({"intfQueueCounters": shown}, table(("Port", "TxQ", "Marked Packets"), rows))


def queue_detail(context: ShowContext, captured: Captured) -> EosReply:
    shown: dict[str, Any] = {}
    for port, reading in context.ports(captured):
        classes = {
            f"TC{number}": {
                "dropPrecedences": {
                    "DP0": {
                        "enqueuedPackets": queue.tx_packets,
                        "enqueuedBytes": queue.tx_bytes,
                        "droppedPackets": queue.dropped_packets,
                        "droppedBytes": 0,
                    }
                }
            }
            for number, queue in enumerate(reading.queues)
        }
        shown[port] = {"ucastQueues": {"trafficClasses": classes}, "mcastQueues": {"trafficClasses": {}}}
    rows = [
        (port, f"UC{number}", queue.tx_packets, queue.tx_bytes, queue.dropped_packets, 0)
        for port, reading in context.ports(captured)
        for number, queue in enumerate(reading.queues)
    ]
    text = table(("Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"), rows)
    return EosReply({"egressQueueCounters": {"interfaces": shown}}, text)


def queue_drops(context: ShowContext, captured: Captured) -> EosReply:
    rows = []
    for port, reading in context.ports(captured):
        dropped_in = sum(group.dropped_packets for group in reading.buffers)
        rows.append((port, dropped_in, sum(queue.dropped_packets for queue in reading.queues), 0))
    return EosReply(None, table(("Port", "InDropped", "OutUcDropped", "OutMcDropped"), rows))


def maps(context: ShowContext, _: Captured) -> EosReply:
    classes = class_of_dscp(context.config)
    groups, queues = (
        of_class(context.config, "priority-group"),
        of_class(context.config, "tx-queue", "uc-tx-queue"),
    )
    return EosReply(
        None,
        table(("DSCP", "TC"), [(dscp, classes[dscp]) for dscp in range(CODE_POINTS)])
        + table(("TC", "PG", "TxQ"), [(number, groups[number], queues[number]) for number in range(PRIORITIES)]),
    )


def buffer(context: ShowContext, _: Captured) -> EosReply:
    profile = ("platform", "trident", "mmu", "queue", "profile")
    name = next((rest[0] for rest in context.config.find(*profile) if rest[1:] == ("apply",)), "")
    limit = context.config.one("platform", "trident", "mmu", "headroom-pool", "limit")
    lines = [
        f"Queue profile: {name or 'default'}",
        *(f"  {line}" for line in context.config.section(*profile, name).lines(1)),
        f"Headroom pool limit: {' '.join(reversed(limit)) if limit else 'default'}",
    ]
    return EosReply(None, "".join(f"{line}\n" for line in lines))


def load_balance(context: ShowContext, _: Captured) -> EosReply:
    """Show the load-balancing mode as configured and per port."""
    rows = [(port, DISTRIBUTION[reading.adaptive_routing]) for port, reading in context.ports({})]
    configured = DISTRIBUTION[is_dynamic(context.config)]
    return EosReply(None, f"Load balance distribution: {configured}\n\n{table(('Port', 'Mode'), rows)}")


QUEUE_VIEWS = (
    ("show qos interfaces ecn counters queue", ecn_counters),
    ("show qos maps", maps),
    ("show platform trident mmu queue status", buffer),
    ("show ip hardware fib load-balance distribution", load_balance),
    ("show interfaces counters queue", queue_drops),
    ("show interfaces counters queue detail", queue_detail),
)
