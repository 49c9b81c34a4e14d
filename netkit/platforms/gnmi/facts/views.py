"""What a switch is asked by gNMI, in one go or as a stream."""

from collections.abc import Mapping
from functools import partial

from netkit.facts import Absent, Counters, Facts
from netkit.facts.device import KINDS, Interface
from netkit.platforms.gnmi.facts import count, sonic
from netkit.platforms.gnmi.message import CAPABILITIES, ONCE, leaves, read
from netkit.platforms.shown import text, whole
from netkit.platforms.view import View, ViewSubject

INTERFACES, QUEUES = "/interfaces/interface/state", "/qos/interfaces/interface/output/queues/queue/state"
COUNTERS, COUNTED_QUEUES = "COUNTERS_DB:/COUNTERS/Ethernet*", "COUNTERS_DB:/COUNTERS/Ethernet*/Queues"
PORT_TABLE = "APPL_DB:/PORT_TABLE"
PHY = "/interfaces/interface[name=*]/ethernet/phy/state"
PRIORITIES = "/qos/interfaces/interface[interface-id=*]/state/switch-priority/counters"
STREAMED: Mapping[str, tuple[str, ...]] = {
    "eos": ("/interfaces/interface/state/counters", QUEUES),
    "sonic": (COUNTERS, COUNTED_QUEUES),
    "nvue": (
        "/interfaces/interface[name=*]/state/counters",
        "/interfaces/interface[name=*]/ethernet/state/counters",
        PHY,
        "/qos/interfaces/interface[interface-id=*]/output/queues/queue[name=*]/state",
        PRIORITIES,
    ),
}
"""Platform → what is streamed of its counters, unless access.yaml names other paths."""
UP = {"UP": True, "DOWN": False}
ONLY_STREAMS = Absent("Cumulus Linux only streams: watch it through gNMI, and check it through another source")
NO_SERVER = Absent("the platform has no gNMI server")
NOT_TOLD = Absent("netkit asks gNMI for counters and interfaces only")
ASKED = frozenset({"counters", "interfaces"})
OTHERS = frozenset(KINDS) - ASKED - {"nics", "host", "lookups", "probes"}


def views(subject: ViewSubject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    platform = subject.platform
    if platform not in ("eos", "sonic"):
        reason = ONLY_STREAMS if platform == "nvue" else NO_SERVER
        return (_absent(OTHERS | ASKED, reason),)
    told = _of_sonic(subject.ports) if platform == "sonic" else _of_openconfig(platform, subject.ports)
    return (*told, _absent(OTHERS, NOT_TOLD))


def _absent(kinds: frozenset[str], reason: Absent) -> View:
    facts = Facts(**dict.fromkeys(kinds, reason))
    return View((CAPABILITIES,), kinds, lambda _: facts)


def _of_openconfig(platform: str, ports: tuple[str, ...]) -> tuple[View, ...]:
    commands = (_once(INTERFACES), _once(QUEUES))
    return (
        View(commands, frozenset({"counters"}), partial(counters, platform=platform, wanted=ports)),
        View(commands[:1], frozenset({"interfaces"}), interfaces),
    )


def _of_sonic(ports: tuple[str, ...]) -> tuple[View, ...]:
    commands = (_once(PORT_TABLE), _once(COUNTERS), _once(COUNTED_QUEUES))
    return (
        View(commands, frozenset({"counters"}), partial(counters_of_sonic, wanted=ports)),
        View(commands[:1], frozenset({"interfaces"}), lambda text: Facts(interfaces=sonic.interfaces(read(text)))),
    )


def _once(place: str) -> str:
    return f"{ONCE}{place}"


def counters(*texts: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Return the counters of a server that speaks OpenConfig."""
    updates = (update for text in texts for update in read(text))
    return _counters(count.counters(platform, dict(count.Counting(platform, {}, wanted).counts(updates))))


def counters_of_sonic(ports: str, *texts: str, wanted: tuple[str, ...]) -> Facts:
    """Return the counters of SONiC, whose APPL_DB knows by which names its server calls ports."""
    updates = (update for text in texts for update in read(text))
    counting = count.Counting("sonic", sonic.aliases(read(ports)), wanted)
    found = count.counters("sonic", dict(counting.counts(updates)))
    changes = sonic.changes(read(ports), wanted)
    return _counters({**found, "carrier_changes": changes} if changes and found else found)


def _counters(found: Counters) -> Facts:
    return Facts(counters=found or Absent("the gNMI server shows no counters of these ports"))


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
