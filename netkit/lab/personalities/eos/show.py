"""`show` commands: the switch as a whole, its configuration and services; and the table of all forms."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from netkit.lab.personalities.eos import routing
from netkit.lab.personalities.eos.configuration import EosSection, as_commands, body
from netkit.lab.personalities.eos.machine import HIGHEST_OPEN, HIGHEST_SAVED, ConfigSession
from netkit.lab.personalities.eos.reply import Data, EosReply, InvalidCommandError, invalid
from netkit.lab.personalities.eos.show_context import Captured, Lens, closest, table
from netkit.lab.personalities.eos.show_ports import INTERFACE_VIEWS, OPTIC_VIEWS
from netkit.lab.personalities.eos.show_queues import PFC_VIEWS, QUEUE_VIEWS
from netkit.lab.personalities.eos.show_routing import BGP_VIEWS, NEIGHBOR_VIEWS, ROUTE_VIEWS
from netkit.lab.personalities.eos.switch_state import FACTORY_HOSTNAME, is_vlan
from netkit.lab.routing import link_changes

TIMER_AT_TOP = (4, 32)
"""From this release a session reads completed at once, and the timer stands beside the sessions."""


def running(lens: Lens, _: Captured) -> EosReply:
    """Show the running configuration."""
    switch = lens.machine.switch
    head = f"! Command: show running-config\n! device: {switch.name} ({switch.model.name}, EOS-{switch.version})\n!\n"
    header = [line.removeprefix("! ") for line in head.splitlines()[:2]]
    return EosReply({"cmds": as_commands(lens.config), "header": header}, head + body(lens.config))


def startup(lens: Lens, _: Captured) -> EosReply:
    """Show the startup configuration."""
    text = lens.machine.flash.startup
    data = {"cmds": as_commands(lens.machine.parse(text)), "header": ["Command: show startup-config"]}
    return EosReply(data, f"! Command: show startup-config\n{text}")


def sessions(lens: Lens, _: Captured) -> EosReply:
    """Show the sessions, and the commit that waits for its confirmation."""
    machine, timer = lens.machine, lens.machine.timer
    is_at_top = machine.release >= TIMER_AT_TOP
    data: dict[str, object] = {
        "sessions": {name: _session(lens, session, is_at_top=is_at_top) for name, session in machine.sessions.items()},
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


def _session(lens: Lens, session: ConfigSession, *, is_at_top: bool) -> Data:
    timer = lens.machine.timer
    is_waiting = session.state == "pendingCommitTimer"
    return {
        "state": "completed" if is_waiting and is_at_top else session.state,
        "completedTime": session.completed_s,
        "commitBy": timer.ends_s if timer and is_waiting and not is_at_top else 0.0,
        "commitUser": session.user,
        "description": session.description,
        "instances": {},
    }


def checkpoints(lens: Lens, _: Captured) -> EosReply:
    """Show the checkpoints. Their JSON is not known from a switch; the text is."""
    found = lens.machine.flash.checkpoints()
    rows = [f"{name:32} {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(made_s))}" for name, made_s in found]
    data = {"checkpoints": {name: {"fileDate": made_s, "fileUser": ""} for name, made_s in found}}
    return EosReply(data, "\n".join((f"{'Filename':32} Date", *rows, "")))


CONFIG_VIEWS = (
    ("show running-config", running),
    ("show running-config all", running),
    ("show running-config sanitized", running),
    ("show running-config all sanitized", running),
    ("show startup-config", startup),
    ("show configuration sessions", sessions),
    ("show configuration sessions detail", sessions),
    ("show configuration checkpoints", checkpoints),
)


NO_MAC = "02:00:00:00:00:00"
NOT_PRESENT = "Not Present"
KB = 1024


def version(lens: Lens, _: Captured) -> EosReply:
    """Show model and release."""
    switch, mac = lens.machine.switch, lens.machine.switch.system_mac or NO_MAC
    data = {
        "mfgName": switch.model.vendor,
        "modelName": switch.model.name,
        "hardwareRevision": "11.01",
        "serialNumber": serial(lens),
        "systemMacAddress": mac,
        "hwMacAddress": mac,
        "configMacAddress": "00:00:00:00:00:00",
        "version": switch.version,
        "architecture": "x86_64",
        "internalVersion": f"{switch.version}-lab",
        "internalBuildId": "lab",
        "imageFormatVersion": "3.0",
        "imageOptimization": "Default",
        "bootupTimestamp": lens.machine.booted_at_s,
        "uptime": lens.machine.uptime_s,
        "memTotal": 32_000_000,
        "memFree": 24_000_000,
        "isIntlVersion": False,
    }
    text = (
        f"{switch.model.vendor} {switch.model.name}\nSerial number: {serial(lens)}\nSystem MAC address: {mac}\n\n"
        f"Software image version: {switch.version}\nUptime: {lens.machine.uptime_s:.0f} seconds\n"
    )
    return EosReply(data, text)


def serial(lens: Lens) -> str:
    """Return the serial number of a switch: one that cannot be mistaken for a real one."""
    return f"LAB-{lens.machine.node.name}"


def hostname(lens: Lens, _: Captured) -> EosReply:
    """Show the name."""
    name = lens.config.word("hostname") or FACTORY_HOSTNAME
    domain = lens.config.word("dns", "domain")
    fqdn = f"{name}.{domain}" if domain else name
    return EosReply({"hostname": name, "fqdn": fqdn}, f"Hostname: {name}\nFQDN:     {fqdn}\n")


def file_systems(lens: Lens, _: Captured) -> EosReply:
    """Show what there is to write to: what outlives a boot, and what EOS has in memory."""
    node = lens.machine.node
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


def inventory(lens: Lens, captured: Captured) -> EosReply:
    """Show the switch and what is in its cages; ports of one cage share the module."""
    switch = lens.machine.switch
    empty = {"mfgName": NOT_PRESENT, "modelName": "", "serialNum": "", "hardwareRev": ""}
    slots: dict[str, dict[str, str]] = {str(number): dict(empty) for number in range(1, switch.model.cages + 1)}
    for port, reading in lens.ports(captured):
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
            "serialNum": serial(lens),
        },
        "xcvrSlots": slots,
        "powerSupplySlots": {},
        "fanTraySlots": {},
        "cardSlots": {},
        "portCount": len(lens.machine.ports),
    }
    rows = [(number, one["mfgName"], one["modelName"], one["serialNum"]) for number, one in slots.items()]
    return EosReply(data, table(("Port", "Manufacturer", "Model", "Serial Number"), rows))


def maintenance(lens: Lens, _: Captured) -> EosReply:
    """Show what is out of traffic. The lab takes a unit out at once."""
    units = {}
    rows = []
    for name, is_quiesced, groups in routing.units(lens.config):
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
    drained = routing.drained_ports(lens.config, lens.machine.ports)
    interfaces = {port: {"status": "underMaintenance", "adminState": "underMaintenance"} for port in drained}
    data: dict[str, Any] = {"units": units, "interfaces": interfaces, "vrfs": {}}
    if not any(section.entries for _, section in lens.config.sections("maintenance")):
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
    """Return the VRF of a line that may name one, and what follows."""
    return (rest[1], rest[2:]) if rest[:1] == ("vrf",) else (DEFAULT, rest)


def clock(lens: Lens, _: Captured) -> EosReply:
    """Show the time and its zone."""
    zone = lens.config.word("clock", "timezone") or "UTC"
    return EosReply(None, f"{local(lens, lens.now_s):%a %b %e %H:%M:%S %Y}\nTimezone: {zone}\nClock source: local\n")


def local(lens: Lens, at_s: float) -> datetime:
    """Return a moment by the clock of the switch; a zone this machine does not know is UTC."""
    try:
        zone: tzinfo = ZoneInfo(lens.config.word("clock", "timezone") or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = UTC
    return datetime.fromtimestamp(at_s, zone)


def ntp(lens: Lens, _: Captured) -> EosReply:
    """Show the time servers; none can be reached from a lab."""
    source = next((vrf_and(rest) for rest in lens.config.find("ntp", "local-interface")), (DEFAULT, (DEFAULT,)))
    rows = []
    for rest in lens.config.find("ntp", "server"):
        vrf, (address, *options) = vrf_and(rest)
        sender = source[1][0] if source[0] == vrf else DEFAULT
        rows.append((address, vrf, sender, " ".join(options), "unsynchronised"))
    return EosReply(None, table(("remote", "vrf", "source", "options", "state"), rows))


def logged(lens: Lens, captured: Captured) -> EosReply:
    """Show what was logged lately. All that is logged here is that links went and came, the last time each."""
    seconds = UNITS_S.get(captured["unit"])
    if seconds is None or not captured["count"].isdecimal():
        raise InvalidCommandError(f"Invalid input (at token 3: '{captured['count']} {captured['unit']}')")
    since_s = lens.now_s - seconds * int(captured["count"])
    changes = [
        (at_s, order, f"Line protocol on Interface {port}{_named(lens, port)}, changed state to {way}")
        for port, last in link_changes(lens.machine.node).items()
        for order, (way, at_s) in enumerate((("down", last.went_s), ("up", last.came_s)))
        if at_s is not None and at_s >= since_s
    ]
    name = lens.config.word("hostname") or FACTORY_HOSTNAME
    lines = (f"{_stamp(lens, at_s)} {name} Ebra: %LINEPROTO-5-UPDOWN: {text}\n" for at_s, _, text in sorted(changes))
    return EosReply(None, "".join(lines))


def _named(lens: Lens, port: str) -> str:
    description = " ".join(lens.section(port).one("description") or ())
    return f" ({description})" if description else ""


def _stamp(lens: Lens, at_s: float) -> str:
    """Return a moment as lines of the log begin."""
    words = lens.config.one("logging", "format", "timestamp") or ()
    moment = local(lens, at_s)
    if "high-resolution" in words:
        return moment.isoformat(timespec="microseconds")
    return f"{moment:%b %e %H:%M:%S}"


def accounts(lens: Lens, _: Captured) -> EosReply:
    """Show who may log in."""
    users: dict[str, Any] = {}
    for name, *rest in lens.config.find("username"):
        words = dict(zip(rest[::2], rest[1::2], strict=False))
        users[name] = {"username": name, "role": words.get("role", ""), "privLevel": int(words.get("privilege", 1)),
                       "sshAuthorizedKey": "", "hasSecret": "sha512" in rest}  # fmt: skip
    rows = [(one["username"], one["privLevel"], one["role"], one["hasSecret"]) for one in users.values()]
    return EosReply({"users": users}, table(("User", "Privilege", "Role", "Secret"), rows))


def vrfs(lens: Lens, _: Captured) -> EosReply:
    """Show the VRFs, and which of them route."""
    names = [DEFAULT, *(rest[0] for rest in lens.config.find("vrf", "instance"))]
    members: dict[str, list[str]] = {name: [] for name in names}
    for (name,), section in lens.config.sections("interface"):
        members.setdefault(section.word("vrf") or DEFAULT, []).append(name)
    routed = {name: any(_routes(lens.config, name)) for name in names}
    data = {
        "vrfs": {
            name: {"routeDistinguisher": "", "vrfState": "up", "interfaces": members[name],
                   "protocols": {"ipv4": {"supported": True, "routingState": "up" if routed[name] else "down"}}}
            for name in names
        }
    }  # fmt: skip
    return EosReply(
        data, table(("VRF", "Routing", "Interfaces"), [(n, routed[n], ", ".join(members[n])) for n in names])
    )


def _routes(config: EosSection, vrf: str) -> Iterator[bool]:
    if vrf == DEFAULT:
        yield config.one("ip", "routing") is not None
    yield config.has("ip", "routing", "vrf", vrf)


def vlans(lens: Lens, _: Captured) -> EosReply:
    """Show the VLANs with their ports."""
    found = {}
    for (number,), section in lens.config.sections("vlan"):
        ports = [
            port for port in lens.machine.ports if lens.section(port).word("switchport", "access", "vlan") == number
        ]
        found[number] = {
            "name": section.word("name") or f"VLAN{int(number):04}",
            "status": "active" if is_vlan(lens.config, number) else "suspended",
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


Show = Callable[[Lens, Captured], EosReply]


SWITCH_VIEWS = (*CONFIG_VIEWS, *SYSTEM_VIEWS, *SERVICE_VIEWS)
PORT_VIEWS = (*INTERFACE_VIEWS, *OPTIC_VIEWS, *PFC_VIEWS, *QUEUE_VIEWS)
VIEWS: Mapping[str, Show] = dict((*SWITCH_VIEWS, *PORT_VIEWS, *BGP_VIEWS, *ROUTE_VIEWS, *NEIGHBOR_VIEWS))


def show(lens: Lens, words: Sequence[str]) -> EosReply:
    """Answer a show command."""
    found = closest(VIEWS, words)
    if isinstance(found, int):
        raise invalid(words, found)
    view, captured = found
    return view(lens, captured)
