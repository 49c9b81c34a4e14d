"""What a check reads by gNMI."""

from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS, Interface
from netkit.platforms import json_access
from netkit.platforms.agents import agents_of
from netkit.platforms.gnmi.facts import count
from netkit.platforms.gnmi.message import CAPABILITIES, ONCE, leaves, read
from netkit.platforms.view import View, ViewSubject

INTERFACES, QUEUES = "/interfaces/interface/state", "/qos/interfaces/interface/output/queues/queue/state"
UP = {"UP": True, "DOWN": False}
NO_SERVER = Absent("the platform has no gNMI server")
NOT_READ = Absent("netkit reads only counters and interfaces by gNMI")
READ = frozenset({"counters", "interfaces"})
OTHERS = frozenset(KINDS) - READ - {"nics", "host", "lookups", "probes"}


def views(subject: ViewSubject) -> tuple[View, ...]:
    known = agents_of(subject.platform)
    if known is None or known.gnmi is None or known.gnmi.only_streams is not None:
        reason = known.gnmi.only_streams if known and known.gnmi else None
        return (_absent(OTHERS | READ, reason or NO_SERVER),)
    database = known.gnmi.database
    if database:
        return (*database.views(subject.ports), _absent(OTHERS, NOT_READ))
    commands = (f"{ONCE}{INTERFACES}", f"{ONCE}{QUEUES}")
    parse = partial(counters, platform=subject.platform, wanted=subject.ports)
    return (
        View(commands, frozenset({"counters"}), parse),
        View(commands[:1], frozenset({"interfaces"}), interfaces),
        _absent(OTHERS, NOT_READ),
    )


def _absent(kinds: frozenset[str], reason: Absent) -> View:
    facts = Facts(**dict.fromkeys(kinds, reason))
    return View((CAPABILITIES,), kinds, lambda _: facts)


def counters(*texts: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Parse the counters of an OpenConfig server."""
    updates = (update for text in texts for update in read(text))
    return count.as_facts(count.counters(platform, dict(count.Counting(platform, {}, wanted).counts(updates))))


def interfaces(text: str) -> Facts:
    found: dict[str, dict[str, object]] = {}
    for update in read(text):
        for path, value in leaves(update):
            port = path[1].keys.get("name", "") if len(path) == 4 and path[2].name == "state" else ""
            if port:
                found.setdefault(port, {})[path[-1].name.rpartition(":")[2]] = value
    ports = {
        port: Interface(
            is_up=UP.get(json_access.text(leaf.get("oper-status"))),
            is_enabled=UP.get(json_access.text(leaf.get("admin-status"))),
            mtu_bytes=json_access.whole(leaf.get("mtu")),
            description=json_access.text(leaf.get("description")),
        )
        for port, leaf in found.items()
    }
    return Facts(interfaces=ports or Absent("the gNMI server shows no interfaces"))
