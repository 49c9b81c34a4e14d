"""All faults of the lab by name: those of hardware, of the network, and of management access."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from netkit.design.fabric import Fabric, Host, Switch
from netkit.errors import LabError, Problem
from netkit.lab.faults.fault import (
    DEVICES,
    HOST,
    HOST_NIC,
    PORTS,
    SWITCH,
    SWITCH_PORT,
    FaultKind,
    InjectedFault,
    Option,
    Value,
    unfit,
)

ACCESS = (
    FaultKind(
        "unreachable",
        "management",
        DEVICES,
        "Nothing answers at the device's management address: connections are refused, or silently time out. "
        "Data traffic continues.",
        (Option("manner", "refuses", "refuse connections, or drop silently", choices=("refuses", "silently")),),
    ),
    FaultKind(
        "slow",
        "management",
        DEVICES,
        "Every command takes longer, as on a loaded control CPU.",
        (Option("seconds", 5.0, "how much longer", 0.1, 600),),
    ),
    FaultKind("refuses-auth", "management", DEVICES, "The device rejects every login: keys and passwords are refused."),
    FaultKind(
        "drops-after-commit",
        "management",
        (SWITCH,),
        "The connection is cut the moment a change takes effect, before the answer, and cannot be opened again for a "
        "while. A change that waits for confirmation rolls back by itself. On a Linux switch: a change of ports or "
        "services; one of frr.conf alone stays between FRR's own programs, and nothing is cut.",
        (Option("seconds", 30.0, "how long the device stays away", 0.1, 3600),),
    ),
    FaultKind(
        "disk-full",
        "management",
        DEVICES,
        "Nothing can be written: saving a configuration, a checkpoint or an uploaded file fails as it does on a full "
        "disk. The running configuration is not touched. `df` and EOS's `show file systems` show it.",
    ),
    FaultKind(
        "hangs",
        "management",
        DEVICES,
        "A command starts and never ends, until its caller gives up. Logging in still works.",
        (Option("after", 0, "how many commands answer before one hangs", 0, 1000),),
    ),
    FaultKind(
        "garbage",
        "management",
        DEVICES,
        "Commands exit with 0 but print garbage, cut off in the middle.",
    ),
    FaultKind(
        "apply-fails-quietly",
        "management",
        (SWITCH,),
        "A change is accepted and the command ends with exit code 0, but the change does not take effect; a line in "
        "the output mentions it. On a Linux switch: what frr-reload.py, netplan and restarts of services should do.",
    ),
)


PAUSES = Option("pauses_per_s", 2500.0, "pause frames a second at the origin", 1, 1e6)
LANE = Option("lane", 0, "the lane, from 1; 0 means all", 0, 8)

HARDWARE = (
    FaultKind(
        "pause-storm",
        "model",
        PORTS,
        "A receiver that cannot keep up. A host NIC sends thousands of pauses a second to its leaf, as when its PCIe "
        "bus or GPU is slow; a switch port is an egress where more flows meet than it can carry. Queues fill and "
        "pauses spread against the data, hop by hop, to the NICs that send there: those are victims. Only the origin "
        "sends pauses, or has a full egress queue, without receiving any there.",
        (
            PAUSES,
            Option("share", 0.6, "share of time traffic is paused at the origin", 0.01, 1),
            Option("burst_ms", 50, "longest pause without a gap; a watchdog that detects sooner trips", 0.01, 1e6),
        ),
    ),
    FaultKind(
        "watchdog-trip",
        "model",
        PORTS,
        "A pause that never ends: a host NIC that hangs, or for a switch port, whatever is at its other end. The "
        "watchdog of the switch port that receives it detects a storm, ignores pauses there and drops what the queue "
        "holds, until the fault is healed and the restoration time is over. Where no watchdog is configured the "
        "pauses spread instead.",
        (PAUSES,),
    ),
    FaultKind(
        "pfc-off",
        "nic",
        PORTS,
        "PFC is off at one end of a cable. On a host NIC its settings show it; on a switch port it contradicts the "
        "configuration. The end neither sends nor respects pauses: where congestion would have paused, the lossless "
        "class loses packets, in both directions of the cable.",
    ),
    FaultKind(
        "dim-optic",
        "model",
        PORTS,
        "The lasers of a module grow weak. It transmits less optical power at a higher bias current, the other end of "
        "the fibre receives less, and its bit error rate rises. Only modules that report optical power can show it.",
        (Option("db", 8.0, "how much weaker", 0.1, 35), LANE),
    ),
    FaultKind(
        "hot-optic",
        "model",
        PORTS,
        "A module runs hot, as with a blocked air duct. Both ports of a module that serves two show it.",
        (Option("celsius", 76.0, "the temperature it reaches", -40, 125),),
    ),
    FaultKind(
        "dirty-lane",
        "model",
        PORTS,
        "Dirt on one fibre of the connector at this end. The lane receives less optical power than its neighbours "
        "while the far end transmits as before; bit errors before correction rise by orders of magnitude, and the "
        "histogram of corrected symbols grows a tail. Copper has no optical power to lose but shows the errors.",
        (
            Option("db", 4.5, "optical power lost on the lane", 0.1, 35),
            Option("lane", 2, "the lane, from 1", 1, 8),
            Option("ber", 5e-5, "bit error rate before correction", 1e-12, 1e-2),
        ),
    ),
    FaultKind(
        "mixed-optic-firmware",
        "model",
        PORTS,
        "One module runs different firmware from all others of its kind. Both ports of a module that serves two show "
        "it.",
        (Option("firmware", "46.110.8", "the version it shows"),),
    ),
    FaultKind(
        "mixed-nic-firmware",
        "model",
        (HOST_NIC,),
        "A NIC runs different firmware from all others of its kind, like one that was replaced and not updated.",
        (Option("firmware", "28.39.3560", "the version it shows"),),
    ),
    FaultKind(
        "adaptive-routing-half-on",
        "model",
        (SWITCH, SWITCH_PORT),
        "Adaptive routing works on some ports of a fabric only. On a switch every second port to other switches does "
        "the opposite of what it is configured to; on a port, that port.",
    ),
    FaultKind(
        "counter-reset",
        "model",
        (*DEVICES, *PORTS),
        "Counters restart from zero, once, as after a clear or a driver reload.",
    ),
    FaultKind(
        "counter-wrap",
        "model",
        (*DEVICES, *PORTS),
        "Non-zero counters stand just below the end of their range, and soon restart from zero without anything being "
        "wrong. Bytes at line rate wrap 32 bits several times a second, as they do on a device with counters of that "
        "width. Healing does not undo it; clearing the counters does.",
        (
            Option("bits", 64, "the width of the counters", choices=(32, 64)),
            Option("left", 20, "counts left before they wrap", 1, 1e9),
        ),
    ),
    FaultKind(
        "counter-stuck",
        "model",
        (*DEVICES, *PORTS),
        "Counters are stuck while traffic continues, as with a counter thread that has died.",
    ),
)


NETWORK = (
    FaultKind(
        "link-flap",
        "kernel",
        PORTS,
        "A link that goes down and comes back, again and again, as with a module that is not seated well. Sessions "
        "over it go down with it, and carrier changes add up at both ends.",
        (
            Option("up_s", 8.0, "how long it stays up", 0.2, 3600),
            Option("down_s", 2.0, "how long it stays down", 0.2, 3600),
        ),
    ),
    FaultKind(
        "slow-link-up",
        "kernel",
        PORTS,
        "A module whose equalizer does not settle retrains, once: the link is down until it has come up. Then all is "
        "well again; a NIC reports how long it took, a switch when its link went down and came up. Healing replaces "
        "the module: between switches the link goes down once more, and comes up quickly.",
        (Option("seconds", 45.0, "how long the link takes to come up", 0.1, 3600),),
    ),
    FaultKind(
        "wrong-mtu",
        "kernel",
        PORTS,
        "One end of a link has a smaller MTU than it is configured with. Small packets pass, large ones are lost.",
        (Option("bytes", 1500, "the MTU it has", 1280, 9216),),
    ),
    FaultKind(
        "lossy",
        "kernel",
        PORTS,
        "A port loses some of what it sends without counting it, like bit errors on the cable: the longer a packet, "
        "the likelier. Small packets pass, and sessions stay up.",
        (
            Option("percent", 60.0, "share of packets lost", 0.1, 100),
            Option("above_bytes", 4000, "only longer packets are lost; 0 loses some of all", 0, 9216),
        ),
    ),
    FaultKind(
        "wrong-cable",
        "kernel",
        PORTS,
        "Two cables of one device are swapped: each is plugged in where the other belongs. On a host that swaps two "
        "rails. Neighbours by LLDP differ from the plan, and addresses no longer reach their gateways.",
        (Option("with", "", "the other port of the same device; by default the next one of its kind"),),
    ),
    FaultKind(
        "missing-host-route",
        "kernel",
        (HOST, HOST_NIC),
        "Static routes of a host are gone, as when a network daemon did not finish. Without a NIC every rail loses "
        "one, with a NIC that rail. Its destinations match the unreachable route, or another NIC's.",
        (Option("prefix", "", "the destination; by default the first one with a gateway"),),
    ),
    FaultKind(
        "wrong-source-route",
        "kernel",
        (HOST_NIC,),
        "The rule that selects a rail's own routing table selects the table of another rail. Packets leave on the "
        "wrong NIC, with a source address that does not belong to it.",
        (Option("as", "", "the interface whose table it uses; by default the next rail"),),
    ),
    FaultKind(
        "ecn-unmarked",
        "kernel",
        (SWITCH, SWITCH_PORT),
        "A switch does not mark congestion, despite its configuration. No packet leaves it with CE set, so "
        "receivers behind it send no CNPs and no sender slows down: an incast is held by pauses alone.",
    ),
    FaultKind(
        "cnp-remarked",
        "kernel",
        (SWITCH, SWITCH_PORT),
        "A switch rewrites the DSCP of CNPs at egress. Downstream they use the wrong queue.",
        (Option("dscp", 4, "the DSCP they leave with", 0, 63),),
    ),
    FaultKind(
        "bgp-session-down",
        "kernel",
        (SWITCH_PORT,),
        "BGP packets on one link are lost, as when a control-plane policer drops them. The link stays up; the session "
        "goes down when its hold time is over, and half or all of the paths behind it with it.",
    ),
    FaultKind(
        "cnp-loss",
        "nic",
        (HOST_NIC,),
        "A NIC loses CNPs: those that arrive are neither handled nor ignored, or those it counts as sent never leave. "
        "The sums of sent and received CNPs of its rail diverge.",
        (Option("direction", "received", "which CNPs are lost", choices=("received", "sent")),),
    ),
    FaultKind(
        "wrong-dscp-map",
        "nic",
        (HOST, HOST_NIC),
        "A host maps the DSCP of RoCE to a different priority than its leaf does, as after a firmware update that "
        "restored the defaults. Received data fills a buffer without PFC, and pauses from the leaf stop a priority "
        "that RoCE does not use.",
        (Option("priority", 0, "the priority RoCE is mapped to", 0, 7),),
    ),
)


CATALOG: Mapping[str, FaultKind] = MappingProxyType({kind.name: kind for kind in (*HARDWARE, *NETWORK, *ACCESS)})
MOST_NAMED = 12


def check(
    fabric: Fabric, name: str, place: str, options: Mapping[str, str] | None = None, since_s: float = 0
) -> InjectedFault:
    """Validate a fault with its options; raise LabError with the valid choices."""
    kind = known(name)
    device, port = locate(fabric, place)
    if isinstance(fabric.device(device), Switch):
        target = SWITCH_PORT if port else SWITCH
    else:
        target = HOST_NIC if port else HOST
    if target not in kind.targets:
        raise LabError(Problem(f"{name} does not apply to a {target}", f"name {_any_of(kind.targets)}"))
    fault = InjectedFault(name, device, port, since_s, dict(_options(kind, options or {})))
    if problem := unfit(fabric, fault):
        raise LabError(problem)
    return fault


def known(name: str) -> FaultKind:
    """Look up a fault by name; raise LabError if the catalogue has none."""
    if name not in CATALOG:
        raise LabError(Problem(f"no fault {name!r}", _instead(name, CATALOG)))
    return CATALOG[name]


def locate(fabric: Fabric, place: str) -> tuple[str, str]:
    """Parse `DEVICE[:PORT]`; raise LabError with the valid choices."""
    name, _, port = place.partition(":")
    device = fabric.device(name)
    if device is None:
        raise LabError(Problem(f"no device {name!r}", _instead(name, fabric.names)))
    if isinstance(device, Host):
        what, ports = "interface", list(device.cabled)
    else:
        what, ports = "port in use", [port.name for port in device.cabled]
    if ":" in place and port not in ports:
        raise LabError(Problem(f"{name} has no {what} {port!r}", _instead(port, ports)))
    return name, port


def parse_options(words: Iterable[str]) -> dict[str, str]:
    """Parse `NAME=VALUE` words."""
    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise LabError(Problem(f"{word!r} is not an option", "write NAME=VALUE"))
        options[name] = value
    return options


def _options(kind: FaultKind, given: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    options = {option.name: option for option in kind.options}
    problems = [
        Problem(f"{kind.name} has no option {name!r}", _instead(name, options)) for name in given if name not in options
    ]
    for name, option in options.items():
        try:
            yield name, _value(option, given[name]) if name in given else option.default
        except ValueError as error:
            problems.append(Problem(f"{kind.name}: {name} is {given[name]!r}", f"{error}; it is {option.meaning}"))
    if problems:
        raise LabError(problems)


def _value(option: Option, text: str) -> Value:
    """Convert an option to the type of its default; ValueError lists the allowed values."""
    if option.choices:
        found = next((choice for choice in option.choices if str(choice) == text), None)
        if found is None:
            raise ValueError(f"give {_any_of(option.choices)}")
        return found
    if isinstance(option.default, str):
        return text
    kind = type(option.default)
    try:
        value = kind(text)
    except ValueError:
        raise ValueError("give a whole number" if kind is int else "give a number") from None
    if not option.low <= value <= option.high:
        raise ValueError(f"give {option.low:g} to {option.high:g}")
    return value


def _instead(name: str, names: Iterable[str]) -> str:
    """A hint that lists valid names, closest match first."""
    choices = list(names)
    if not choices:
        return "there is none"
    close = difflib.get_close_matches(name, choices, 1, 0.5)
    valid = ", ".join(choices[:MOST_NAMED])
    if len(choices) > MOST_NAMED:
        valid += f" and {len(choices) - MOST_NAMED} more"
    return f"did you mean {close[0]}? there are {valid}" if close else f"there are {valid}"


def _any_of(choices: Iterable[Value]) -> str:
    *most, last = map(str, choices)
    return f"{', '.join(most)} or {last}" if most else last
