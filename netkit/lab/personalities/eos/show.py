"""`show` commands: the switch as a whole, its configuration and services; and the table of all forms."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from netkit.lab.personalities.eos import routing
from netkit.lab.personalities.eos.configuration import as_commands, body
from netkit.lab.personalities.eos.machine import (
    HIGHEST_OPEN,
    HIGHEST_SAVED,
    Captured,
    ConfigSession,
    ShowContext,
    closest,
    table,
)
from netkit.lab.personalities.eos.reply import Data, EosReply, InvalidCommandError, invalid
from netkit.lab.personalities.eos.show_ports import INTERFACE_VIEWS, OPTIC_VIEWS, PFC_VIEWS, QUEUE_VIEWS
from netkit.lab.personalities.eos.show_routing import BGP_VIEWS, NEIGHBOR_VIEWS, ROUTE_VIEWS
from netkit.lab.personalities.eos.switch_state import FACTORY_HOSTNAME, access_vlan, is_vlan, tagged_vlans
from netkit.lab.routing import link_changes

TIMER_AT_TOP = (4, 32)
"""From this release a timed session is `completed` at once and the timer is listed at the top level."""


def running(context: ShowContext, _: Captured) -> EosReply:
    switch = context.machine.switch
    head = f"! Command: show running-config\n! device: {switch.name} ({switch.model.name}, EOS-{switch.version})\n!\n"
    header = [line.removeprefix("! ") for line in head.splitlines()[:2]]
    return EosReply({"cmds": as_commands(context.config), "header": header}, head + body(context.config))


def startup(context: ShowContext, _: Captured) -> EosReply:
    text = context.machine.flash.startup
    data = {"cmds": as_commands(context.machine.parse(text)), "header": ["Command: show startup-config"]}
    return EosReply(data, f"! Command: show startup-config\n{text}")


def sessions(context: ShowContext, _: Captured) -> EosReply:
    machine, timer = context.machine, context.machine.timer
    is_at_top = machine.release >= TIMER_AT_TOP
    data: dict[str, object] = {
        "sessions": {
            name: _session(context, session, is_at_top=is_at_top) for name, session in machine.sessions.items()
        },
        "maxSavedSessions": HIGHEST_SAVED,
        "maxOpenSessions": HIGHEST_OPEN,
        "mergeOnCommit": False,
        "saveToStartupConfigOnCommit": False,
    }
    if timer and is_at_top:
        data |= {"commitTimerSessionName": timer.session, "commitTimerExpireTime": timer.ends_s}
    rows = [f"  {name:24} {session.state:20} {session.user}" for name, session in machine.sessions.items()]
    text = (
        f"Maximum number of completed sessions: {HIGHEST_SAVED}\nMaximum number of pending sessions: {HIGHEST_OPEN}\n"
    )
    return EosReply(data, text + "\n".join(("", "  Name                     State                User", *rows, "")))


def _session(context: ShowContext, session: ConfigSession, *, is_at_top: bool) -> Data:
    timer = context.machine.timer
    is_waiting = session.state == "pendingCommitTimer"
    return {
        "state": "completed" if is_waiting and is_at_top else session.state,
        "completedTime": session.completed_s,
        "commitBy": timer.ends_s if timer and is_waiting and not is_at_top else 0.0,
        "commitUser": session.user,
        "description": session.description,
        "instances": {},
    }


def checkpoints(context: ShowContext, _: Captured) -> EosReply:
    """Show the checkpoints. The JSON form is a guess: no switch output was available."""
    found = context.machine.flash.checkpoints()
    rows = [f"{name:32} {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(made_s))}" for name, made_s in found]
    data = {"checkpoints": {name: {"fileDate": made_s, "fileUser": ""} for name, made_s in found}}
    return EosReply(data, "\n".join((f"{'Filename':32} Date", *rows, "")))


CONFIG_VIEWS = (
    ("show running-config", running),
    ("show running-config all", running),
    ("show running-config sanitized", running),
    ("show startup-config", startup),
    ("show configuration sessions", sessions),
    ("show configuration sessions detail", sessions),
    ("show configuration checkpoints", checkpoints),
)


NO_MAC = "02:00:00:00:00:00"
NOT_PRESENT = "Not Present"
KB = 1024


def version(context: ShowContext, _: Captured) -> EosReply:
    switch, mac = context.machine.switch, context.machine.switch.system_mac or NO_MAC
    data = {
        "mfgName": switch.model.vendor,
        "modelName": switch.model.name,
        "hardwareRevision": "11.01",
        "serialNumber": serial(context),
        "systemMacAddress": mac,
        "hwMacAddress": mac,
        "configMacAddress": "00:00:00:00:00:00",
        "version": switch.version,
        "architecture": "x86_64",
        "internalVersion": f"{switch.version}-lab",
        "internalBuildId": "lab",
        "imageFormatVersion": "3.0",
        "imageOptimization": "Default",
        "bootupTimestamp": context.machine.booted_at_s,
        "uptime": context.machine.uptime_s,
        "memTotal": 32_000_000,
        "memFree": 24_000_000,
        "isIntlVersion": False,
    }
    text = (
        f"{switch.model.vendor} {switch.model.name}\nSerial number: {serial(context)}\nSystem MAC address: {mac}\n\n"
        f"Software image version: {switch.version}\nUptime: {context.machine.uptime_s:.0f} seconds\n"
    )
    return EosReply(data, text)


def serial(context: ShowContext) -> str:
    """A serial number that cannot be mistaken for a real one."""
    return f"LAB-{context.machine.node.name}"


def hostname(context: ShowContext, _: Captured) -> EosReply:
    name = context.config.word("hostname") or FACTORY_HOSTNAME
    domain = context.config.word("dns", "domain")
    fqdn = f"{name}.{domain}" if domain else name
    return EosReply({"hostname": name, "fqdn": fqdn}, f"Hostname: {name}\nFQDN:     {fqdn}\n")


def file_systems(context: ShowContext, _: Captured) -> EosReply:
    node = context.machine.node
    found = [
        _file_system("file:", node.file("/tmp"), "tmpfs", is_current=False),  # noqa: S108
        _file_system("flash:", node.saved, "ext4", is_current=True),
    ]
    rows = [(one["size"], one["free"], one["fsType"], one["permission"], one["prefix"]) for one in found]
    text = "File Systems:\n\n" + table(("Size (kb)", "Free (kb)", "Type", "Flags", "Prefixes"), rows)
    return EosReply({"fileSystems": found}, text)


def _file_system(prefix: str, folder: Path, kind: str, *, is_current: bool) -> dict[str, Any]:
    held = os.statvfs(folder)
    return {
        "prefix": prefix,
        "currentFs": is_current,
        "size": held.f_blocks * held.f_frsize // KB,
        "free": held.f_bavail * held.f_frsize // KB,
        "fsType": "flash",
        "linuxFs": kind,
        "permission": "ro" if held.f_flag & os.ST_RDONLY else "rw",
    }


def inventory(context: ShowContext, captured: Captured) -> EosReply:
    """Show the chassis and its transceivers; ports of one cage share the module."""
    switch = context.machine.switch
    empty = {"mfgName": NOT_PRESENT, "modelName": "", "serialNum": "", "hardwareRev": ""}
    slots: dict[str, dict[str, str]] = {str(number): dict(empty) for number in range(1, switch.model.cages + 1)}
    for port, reading in context.ports(captured):
        module = reading.module
        if module:
            slots[port.removeprefix("Ethernet").partition("/")[0]] = {
                "mfgName": module.vendor,
                "modelName": module.part,
                "serialNum": module.serial,
                "hardwareRev": module.revision,
            }
    data: dict[str, Any] = {
        "systemInformation": {
            "name": switch.model.name,
            "description": switch.model.name,
            "mfgDate": "",
            "hardwareRev": "11.01",
            "serialNum": serial(context),
        },
        "xcvrSlots": slots,
        "powerSupplySlots": {},
        "fanTraySlots": {},
        "cardSlots": {},
        "portCount": len(context.machine.ports),
    }
    rows = [(number, one["mfgName"], one["modelName"], one["serialNum"]) for number, one in slots.items()]
    return EosReply(data, table(("Port", "Manufacturer", "Model", "Serial Number"), rows))


def maintenance(context: ShowContext, _: Captured) -> EosReply:
    """Show maintenance units. The lab quiesces a unit at once."""
    units = {}
    rows = []
    for name, is_quiesced, groups in routing.units(context.config):
        state = "underMaintenance" if is_quiesced else "active"
        units[name] = {
            "state": state,
            "adminState": state,
            "stateChangeTime": 0.0,
            "onBootMaintenance": False,
            "intfsViolatingTrafficThreshold": False,
            "aggInBpsRate": 0,
            "aggOutBpsRate": 0,
        }
        rows.append((name, state, " ".join(groups)))
    drained = routing.drained_ports(context.config, context.machine.ports)
    interfaces = {port: {"status": "underMaintenance", "adminState": "underMaintenance"} for port in drained}
    data: dict[str, Any] = {"units": units, "interfaces": interfaces, "vrfs": {}}
    if not any(section.entries for _, section in context.config.sections("maintenance")):
        data["warnings"] = ["Maintenance Mode is disabled."]
    profiles = sorted({f"{drain.profile} {drain.route_map}".strip() for drain in drained.values()})
    text = table(("Unit", "State", "Groups"), rows) + "".join(f"BGP profile in use: {name}\n" for name in profiles)
    return EosReply(data, text)


SYSTEM_VIEWS = (
    ("show version", version),
    ("show hostname", hostname),
    ("show file systems", file_systems),
    ("show inventory", inventory),
    ("show maintenance", maintenance),
)


DEFAULT = "default"
UNITS_S = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}


def vrf_and(rest: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Split an optional `vrf NAME` off a line."""
    return (rest[1], rest[2:]) if rest[:1] == ("vrf",) else (DEFAULT, rest)


def clock(context: ShowContext, _: Captured) -> EosReply:
    zone = context.config.word("clock", "timezone") or "UTC"
    return EosReply(
        None, f"{local(context, context.now_s):%a %b %e %H:%M:%S %Y}\nTimezone: {zone}\nClock source: local\n"
    )


def local(context: ShowContext, at_s: float) -> datetime:
    """A time in the configured zone; UTC if this machine does not know the zone."""
    try:
        zone: tzinfo = ZoneInfo(context.config.word("clock", "timezone") or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = UTC
    return datetime.fromtimestamp(at_s, zone)


def ntp(context: ShowContext, _: Captured) -> EosReply:
    """Show the NTP servers; none is reachable from a lab."""
    source = next((vrf_and(rest) for rest in context.config.find("ntp", "local-interface")), (DEFAULT, (DEFAULT,)))
    rows = []
    for rest in context.config.find("ntp", "server"):
        vrf, (address, *options) = vrf_and(rest)
        sender = source[1][0] if source[0] == vrf else DEFAULT
        rows.append((address, vrf, sender, " ".join(options), "unsynchronised"))
    return EosReply(None, table(("remote", "vrf", "source", "options", "state"), rows))


def logged(context: ShowContext, captured: Captured) -> EosReply:
    """Show the log. It holds only the last down and up event of each link."""
    seconds = UNITS_S.get(captured["unit"])
    if seconds is None or not captured["count"].isdecimal():
        raise InvalidCommandError(f"Invalid input (at token 3: '{captured['count']} {captured['unit']}')")
    since_s = context.now_s - seconds * int(captured["count"])
    changes = []
    for port, last in link_changes(context.machine.node).items():
        description = " ".join(context.section(port).one("description") or ())
        interface = f"{port} ({description})" if description else port
        for order, (state, at_s) in enumerate((("down", last.went_s), ("up", last.came_s))):
            if at_s is not None and at_s >= since_s:
                changes.append((at_s, order, f"Line protocol on Interface {interface}, changed state to {state}"))
    name = context.config.word("hostname") or FACTORY_HOSTNAME
    lines = (f"{_stamp(context, at_s)} {name} Ebra: %LINEPROTO-5-UPDOWN: {text}\n" for at_s, _, text in sorted(changes))
    return EosReply(None, "".join(lines))


def _stamp(context: ShowContext, at_s: float) -> str:
    words = context.config.one("logging", "format", "timestamp") or ()
    moment = local(context, at_s)
    if "high-resolution" in words:
        return moment.isoformat(timespec="microseconds")
    return f"{moment:%b %e %H:%M:%S}"


def accounts(context: ShowContext, _: Captured) -> EosReply:
    users: dict[str, Any] = {}
    for name, *rest in context.config.find("username"):
        words = dict(zip(rest[::2], rest[1::2], strict=False))
        users[name] = {"username": name, "role": words.get("role", ""), "privLevel": int(words.get("privilege", 1)),
                       "sshAuthorizedKey": "", "hasSecret": "sha512" in rest}  # fmt: skip
    rows = [(one["username"], one["privLevel"], one["role"], one["hasSecret"]) for one in users.values()]
    return EosReply({"users": users}, table(("User", "Privilege", "Role", "Secret"), rows))


def vrfs(context: ShowContext, _: Captured) -> EosReply:
    names = [DEFAULT, *(rest[0] for rest in context.config.find("vrf", "instance"))]
    members: dict[str, list[str]] = {name: [] for name in names}
    for (name,), section in context.config.sections("interface"):
        members.setdefault(section.word("vrf") or DEFAULT, []).append(name)
    is_routed = {name: context.config.has("ip", "routing", "vrf", name) for name in names}
    is_routed[DEFAULT] |= context.config.one("ip", "routing") is not None
    data = {
        "vrfs": {
            name: {"routeDistinguisher": "", "vrfState": "up", "interfaces": members[name],
                   "protocols": {"ipv4": {"supported": True, "routingState": "up" if is_routed[name] else "down"}}}
            for name in names
        }
    }  # fmt: skip
    rows = [(name, is_routed[name], ", ".join(members[name])) for name in names]
    return EosReply(data, table(("VRF", "Routing", "Interfaces"), rows))


def vlans(context: ShowContext, _: Captured) -> EosReply:
    found = {}
    for (number,), section in context.config.sections("vlan"):
        ports = [
            name
            for (name,), port in context.config.sections("interface")
            if name.startswith(("Ethernet", "Port-Channel")) and not port.word("channel-group")
            if int(number) in {access_vlan(context.config, port), *tagged_vlans(context.config, port)}
        ]
        found[number] = {
            "name": section.word("name") or f"VLAN{int(number):04}",
            "status": "active" if is_vlan(context.config, number) else "suspended",
            "dynamic": False,
            "interfaces": {port: {"privatePromoted": False} for port in ports},
        }
    rows = [(number, one["name"], one["status"]) for number, one in found.items()]
    return EosReply({"sourceDetail": "", "vlans": found}, table(("VLAN", "Name", "Status"), rows))


SERVICE_VIEWS = (
    ("show clock", clock),
    ("show ntp associations", ntp),
    ("show logging last <count> <unit>", logged),
    ("show users accounts", accounts),
    ("show vrf", vrfs),
    ("show vlan", vlans),
)


Show = Callable[[ShowContext, Captured], EosReply]


SWITCH_VIEWS = (*CONFIG_VIEWS, *SYSTEM_VIEWS, *SERVICE_VIEWS)
PORT_VIEWS = (*INTERFACE_VIEWS, *OPTIC_VIEWS, *PFC_VIEWS, *QUEUE_VIEWS)
VIEWS: Mapping[str, Show] = dict((*SWITCH_VIEWS, *PORT_VIEWS, *BGP_VIEWS, *ROUTE_VIEWS, *NEIGHBOR_VIEWS))


def show(context: ShowContext, words: Sequence[str]) -> EosReply:
    found = closest(VIEWS, words)
    if isinstance(found, int):
        raise invalid(words, found)
    view, captured = found
    return view(context, captured)
