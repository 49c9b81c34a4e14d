"""Interfaces: their state, their counters, what they are set to."""

from collections.abc import Iterator
from typing import Any

from netkit.lab.personalities.eos.commands import Captured
from netkit.lab.personalities.eos.reply import EosReply
from netkit.lab.personalities.eos.switch_state import is_routed, is_vlan
from netkit.lab.personalities.eos.views.lens import Lens, table
from netkit.lab.reading import PortReading

GIGABIT = 10**9
VIRTUAL_MTU = {"Loopback": 65535, "Management": 1500, "Vlan": 1500}
VIRTUAL_KIND = {"Loopback": "loopback", "Management": "ethernet", "Vlan": "vlan"}


def link_status(reading: PortReading) -> str:
    """Return the word for a port's link."""
    if not reading.is_enabled:
        return "disabled"
    return "connected" if reading.is_up else "notconnect"


def protocol(reading: PortReading) -> str:
    """Return the word for a port's line protocol."""
    return "up" if reading.is_up else "down"


def description(lens: Lens, port: str) -> str:
    """Return what is said of an interface."""
    return lens.section(port).word("description")


def interfaces(lens: Lens, captured: Captured) -> EosReply:
    """Show everything of every interface."""
    shown = {port: _interface(lens, port, reading) for port, reading in lens.ports(captured)}
    if "ports" not in captured:
        shown |= dict(_virtual(lens))
    text = "".join(
        f"{name} is {'up' if one['interfaceStatus'] == 'connected' else 'down'}, "
        f"line protocol is {one['lineProtocolStatus']} ({one['interfaceStatus']})\n"
        f"  Description: {one['description']}\n  MTU {one['mtu']} bytes, BW {one['bandwidth'] // 1000} kbit\n"
        for name, one in shown.items()
    )
    return EosReply({"interfaces": shown}, text)


def _interface(lens: Lens, port: str, reading: PortReading) -> dict[str, Any]:
    addresses = [rest[0] for rest in lens.section(port).find("ip", "address")]
    return {
        "name": port,
        "description": description(lens, port),
        "hardware": "ethernet",
        "mtu": reading.mtu_bytes,
        "bandwidth": reading.speed_gbps * GIGABIT,
        "duplex": "duplexFull",
        "interfaceStatus": link_status(reading),
        "lineProtocolStatus": protocol(reading),
        "lastStatusChangeTimestamp": lens.now_s - reading.link_up_s,
        "physicalAddress": reading.mac,
        "burnedInAddress": reading.mac,
        "lanes": len(reading.module.lanes) if reading.module else 0,
        "forwardingModel": "routed" if is_routed(lens.section(port)) else "bridged",
        "interfaceAddress": [_address(text) for text in addresses if is_routed(lens.section(port))],
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
            "counterRefreshTime": lens.now_s,
        },
    }


def _address(text: str) -> dict[str, Any]:
    address, _, length = text.partition("/")
    return {"primaryIp": {"address": address, "maskLen": int(length)}, "broadcastAddress": "255.255.255.255"}


def _virtual(lens: Lens) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield loopbacks, VLAN interfaces and the management port, which is never more than its configuration here."""
    for (name,), section in lens.config.sections("interface"):
        kind = name.rstrip("0123456789/")
        if kind not in VIRTUAL_MTU:
            continue
        is_up = not section.has("shutdown") and (kind != "Vlan" or is_vlan(lens.config, name.removeprefix("Vlan")))
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


def _counters(reading: PortReading) -> dict[str, int]:
    """Return the counters of a port. The kernel of the lab does not tell multicast from unicast."""
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


def counters(lens: Lens, captured: Captured) -> EosReply:
    """Show octets and packets."""
    shown = {port: {**_counters(reading), "lastUpdateTimestamp": lens.now_s} for port, reading in lens.ports(captured)}
    rows = [(port, one["inOctets"], one["inUcastPkts"], one["outOctets"], one["outUcastPkts"])
            for port, one in shown.items()]  # fmt: skip
    return EosReply(
        {"interfaces": shown}, table(("Port", "InOctets", "InUcastPkts", "OutOctets", "OutUcastPkts"), rows)
    )


def flow_control(lens: Lens, captured: Captured) -> EosReply:
    """Show global pause, which is off where priorities are paused one by one."""
    off = {"txAdminState": "off", "txOperState": "off", "rxAdminState": "off", "rxOperState": "off"}
    shown = {port: {**off, "txPause": 0, "rxPause": 0} for port, _ in lens.ports(captured)}
    rows = [(port, "off", "off", 0, 0) for port in shown]
    return EosReply({"interfaceFlowControls": shown}, table(("Port", "Send", "Receive", "RxPause", "TxPause"), rows))


VIEWS = (
    ("show interfaces", interfaces),
    ("show interfaces counters", counters),
    ("show interfaces flow-control", flow_control),
)
