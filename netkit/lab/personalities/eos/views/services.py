"""What the switch is told to use or to offer beside its ports: time, logs, names, accounts, SNMP, management."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from netkit.lab.link_change import link_changes
from netkit.lab.personalities.eos.commands import Captured
from netkit.lab.personalities.eos.reply import EosReply, InvalidCommandError
from netkit.lab.personalities.eos.switch_state import (
    FACTORY_HOSTNAME,
    is_vlan,
)
from netkit.lab.personalities.eos.tree import EosSection
from netkit.lab.personalities.eos.views.lens import Lens, table

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


VIEWS = (
    ("show clock", clock),
    ("show ntp associations", ntp),
    ("show logging last <count> <unit>", logged),
    ("show users accounts", accounts),
    ("show vrf", vrfs),
    ("show vlan", vlans),
)
