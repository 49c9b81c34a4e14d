"""What a switch is asked by gNMI, in one go or as a stream."""

from collections.abc import Mapping
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS, Interface
from netkit.platforms.agents import agents_of
from netkit.platforms.gnmi.facts import count
from netkit.platforms.gnmi.message import CAPABILITIES, ONCE, leaves, read
from netkit.platforms.json_access import text, whole
from netkit.platforms.view import View, ViewSubject

INTERFACES, QUEUES = "/interfaces/interface/state", "/qos/interfaces/interface/output/queues/queue/state"
UP = {"UP": True, "DOWN": False}
NO_SERVER = Absent("the platform has no gNMI server")
NOT_TOLD = Absent("netkit asks gNMI for counters and interfaces only")
ASKED = frozenset({"counters", "interfaces"})
OTHERS = frozenset(KINDS) - ASKED - {"nics", "host", "lookups", "probes"}


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    known = agents_of(subject.platform)
    if known is None or known.gnmi is None or known.gnmi.only_streams is not None:
        reason = known.gnmi.only_streams if known and known.gnmi else None
        return (_absent(OTHERS | ASKED, reason or NO_SERVER),)
    database = known.gnmi.database
    told = database.views(subject.ports) if database else _of_openconfig(subject.platform, subject.ports)
    return (*told, _absent(OTHERS, NOT_TOLD))


def _absent(kinds: frozenset[str], reason: Absent) -> View:
    facts = Facts(**dict.fromkeys(kinds, reason))
    return View((CAPABILITIES,), kinds, lambda _: facts)


def _of_openconfig(platform: str, ports: tuple[str, ...]) -> tuple[View, ...]:
    commands = (f"{ONCE}{INTERFACES}", f"{ONCE}{QUEUES}")
    return (
        View(commands, frozenset({"counters"}), partial(counters, platform=platform, wanted=ports)),
        View(commands[:1], frozenset({"interfaces"}), interfaces),
    )


def counters(*texts: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Return the counters of a server that speaks OpenConfig."""
    updates = (update for text in texts for update in read(text))
    return count.as_facts(count.counters(platform, dict(count.Counting(platform, {}, wanted).counts(updates))))


def interfaces(shown: str) -> Facts:
    """Return the ports as openconfig-interfaces tells them."""
    found: dict[str, dict[str, object]] = {}
    for update in read(shown):
        for path, value in leaves(update):
            port = path[1].keys.get("name", "") if len(path) == 4 and path[2].name == "state" else ""
            if port:
                found.setdefault(port, {})[path[-1].name.rpartition(":")[2]] = value
    told = {port: _interface(leaf) for port, leaf in found.items()}
    return Facts(interfaces=told or Absent("the gNMI server shows no interfaces"))


def _interface(leaf: Mapping[str, object]) -> Interface:
    return Interface(
        is_up=UP.get(text(leaf.get("oper-status"))),
        is_enabled=UP.get(text(leaf.get("admin-status"))),
        mtu_bytes=whole(leaf.get("mtu")),
        description=text(leaf.get("description")),
    )
