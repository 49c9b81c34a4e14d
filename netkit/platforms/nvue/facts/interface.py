"""Ports: link, whole-port counters, adaptive routing."""

import re
from collections.abc import Collection, Iterator, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.device import Interface
from netkit.facts.optic import Lane, Limits, Line, Module, Quantity
from netkit.platforms.nvue.facts.json_access import (
    Shown,
    counted,
    objects,
    real,
    switched,
    tree,
    under,
    unread,
    whole,
    word,
)
from netkit.platforms.nvue.facts.part import Parts, PortPart
from netkit.platforms.outage import of_zebra, with_outages
from netkit.platforms.view import View

INTERFACES = "nv show interface -o json"
OUTAGES = "date '+%Y/%m/%d %H:%M:%S'; sudo -n vtysh -d zebra -c 'show interface json'"
"""NVUE tells when a link changed the last time, not when it went: its routing daemon knows both."""
COUNTING = frozenset({"adaptive_routing", "counters"})
PORT = re.compile(r"swp[0-9]{1,4}(?:s[0-9])?")
SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([MG])")
FEC = {"rs": "rs", "baser": "fc", "fc": "fc", "off": "none", "none": "none", "auto": ""}
"""What is in force; `auto` does not tell."""
COUNTED = {
    "rx_bytes": "in-bytes",
    "tx_bytes": "out-bytes",
    "rx_packets": "in-pkts",
    "tx_packets": "out-pkts",
    "rx_errors": "in-errors",
    "tx_errors": "out-errors",
    "rx_drops": "in-drops",
    "tx_drops": "out-drops",
    "carrier_changes": "carrier-transitions",
    "link_downs": "carrier-down-count",
}


def port_views(used: Collection[str]) -> tuple[View, ...]:
    """Return the views of ports in use, and of those that are up and should not be; counters are asked for twice."""
    return (
        View((INTERFACES, OUTAGES), frozenset({"interfaces"}), lambda text, outages: interfaces(text, outages, used)),
        View((INTERFACES,), COUNTING, lambda text: counting(text, used)),
    )


def interfaces(text: str, outages: str, used: Collection[str] = ()) -> Facts:
    """Return the ports that have a link, up or down."""
    ports = _ports(text, used)
    found = ports if isinstance(ports, Absent) else {name: _interface(one) for name, one in ports.items()}
    return Facts(interfaces=with_outages(found, of_zebra(outages)))


def counting(text: str, used: Collection[str] = ()) -> Facts:
    """Return what ports count, and whether adaptive routing works there."""
    ports = _ports(text, used)
    if isinstance(ports, Absent):
        return Facts(adaptive_routing=ports, counters=ports)
    routing = dict(_adaptive(ports))
    counters = {name: _counts(ports, key) for name, key in COUNTED.items()}
    return Facts(
        adaptive_routing=routing or Absent(f"{INTERFACES}: does not tell adaptive routing"),
        counters=counted(INTERFACES, counters),
    )


def _ports(text: str, used: Collection[str]) -> Shown | Absent:
    shown = tree(text)
    if shown is None:
        return unread(INTERFACES, text)
    found = {name: one for name, one in objects(shown) if PORT.fullmatch(name) and _is_told(one)}
    ports = {name: one for name, one in found.items() if name in used or _is_up(under(one, "link"))}
    return ports or Absent(f"{INTERFACES}: shows no ports")


def _is_told(port: Shown) -> bool:
    """Whether it is a port, not a cage that is split."""
    link = under(port, "link")
    return "state" in link or "oper-status" in link


def _interface(port: Shown) -> Interface:
    link = under(port, "link")
    fec = word(link, "fec").lower()
    return Interface(
        is_up=_is_up(link),
        is_enabled={"up": True, "down": False}.get(word(link, "admin-status").lower()),
        speed_gbps=_gbps(link.get("speed")),
        mtu_bytes=whole(link.get("mtu")),
        fec=FEC.get(fec, fec),
        mac=word(link, "mac-address", "mac").lower(),
        description=word(port, "description"),
    )


def _is_up(link: Shown) -> bool | None:
    """Return whether a link is up: a word since 5.11, the name of an object before."""
    state = link.get("state")
    words = {word(link, "oper-status").lower()} - {""} or (set(state) if isinstance(state, dict) else {str(state)})
    return True if words == {"up"} else False if words == {"down"} else None


def _gbps(value: object) -> float | None:
    found = SPEED.fullmatch(value) if isinstance(value, str) else None
    number = real(found[1]) if found else None
    return None if found is None or number is None else number / (1 if found[2] == "G" else 1000)


def _counts(ports: Shown, key: str) -> dict[str, int]:
    counts = ((name, whole(under(port, "link", "stats").get(key))) for name, port in ports.items())
    return {name: count for name, count in counts if count is not None}


def _adaptive(ports: Shown) -> Iterator[tuple[str, bool]]:
    for name, port in ports.items():
        shown = under(port, "router", "adaptive-routing")
        is_on = switched(shown.get("state", shown.get("enable")))
        if is_on is not None:
            yield name, is_on


BIN = re.compile(r"rs-num-corr-err-bin([0-9]{1,2})")
LANE_BER = re.compile(r"raw-ber-lane([0-9]{1,2})")
LANE_ERRORS = re.compile(r"phy-raw-errors-lane[0-9]{1,2}")
LEAST_BER = 1e-200
"""Below this it is how NVUE writes that there were no errors: 15E-255."""
COUNTED_BITS = {
    "received_bits": "phy-received-bits",
    "fec_uncorrectable": "effective-errors",
}


def line_part(path: str) -> PortPart:
    """Return what to ask; what the path is called depends on the release."""

    def parse(ports: Parts, _texts: Sequence[str]) -> Facts:
        lines = {port: line for port, shown in ports.items() if (line := _line(shown)) != Line()}
        counters: dict[str, dict[str, int]] = {}
        for port, shown in ports.items():
            for name, at, count in _line_counts(port, shown):
                counters.setdefault(name, {})[at] = count
        return Facts(lines=lines or Absent(f"{path}: tells no error rate"), counters=counted(path, counters))

    return PortPart(path, frozenset({"lines", "counters"}), parse)


def _line(shown: Shown) -> Line:
    lanes = ((int(sign[1]) + 1, _ber(shown[key])) for key in shown if (sign := LANE_BER.fullmatch(key)))
    return Line(
        ber=_ber(shown.get("raw-ber")),
        effective_ber=_ber(shown.get("effective-ber")),
        lane_ber={lane: ber for lane, ber in lanes if ber is not None and not _is_unused(shown, lane)},
    )


def _is_unused(shown: Shown, lane: int) -> bool:
    """Whether a lane shows a plain 0, as those do that carry nothing."""
    return str(shown.get(f"raw-ber-lane{lane - 1}")).strip() in {"0", "0.0"}


def _ber(value: object) -> float | None:
    rate = real(value)
    if rate is None or not 0 <= rate <= 1:
        return None
    return rate if rate >= LEAST_BER else 0.0


def _line_counts(port: str, shown: Shown) -> Iterator[tuple[str, str, int]]:
    for name, key in COUNTED_BITS.items():
        count = whole(shown.get(key))
        if count is not None:
            yield name, port, count
    errors = [whole(shown[key]) for key in shown if LANE_ERRORS.fullmatch(key)]
    if errors and None not in errors:
        yield "corrected_bits", port, sum(filter(None, errors))
    bins = {int(sign[1]): whole(shown[key]) for key in shown if (sign := BIN.fullmatch(key))}
    if bins and None not in bins.values():
        yield from (("fec_bin", place(port, number), count or 0) for number, count in bins.items())
        yield "fec_corrected", port, sum(count or 0 for number, count in bins.items() if number > 0)


TRANSCEIVERS = "nv show platform transceiver -o json"
NO_LIGHT_DBM = -40.0
CHANNEL = re.compile(r"channel-([1-9][0-9]?)")
DBM = re.compile(r"(-?(?:inf|[0-9]{1,4}(?:\.[0-9]{1,6})?)) ?dBm", re.IGNORECASE)
# The words of cable-type; the first that fits holds.
KINDS = (("copper", "copper"), ("passive", "copper"), ("active", "aoc"), ("optical", "optic"), ("separable", "optic"))
LIMITS = {
    "low_alarm": "low-alarm-threshold",
    "low_warning": "low-warning-threshold",
    "high_warning": "high-warning-threshold",
    "high_alarm": "high-alarm-threshold",
}
LIT: dict[Quantity, str] = {"rx_dbm": "rx-power", "tx_dbm": "tx-power", "bias_ma": "tx-bias-current"}


def module_view(ports: Collection[str]) -> View:
    """Return the view; a module is shown by its cage, or by its ports where the cage is split."""
    return View(
        (TRANSCEIVERS, INTERFACES), frozenset({"modules"}), lambda text, links: module_facts(text, links, ports)
    )


def module_facts(text: str, links: str, used: Collection[str]) -> Facts:
    """Return the module of each port; both ports of a module that serves two have it, each with its own lanes."""
    shown = tree(text)
    if shown is None:
        return Facts(modules=unread(TRANSCEIVERS, text))
    cages = tree(links) or {}
    found = {
        port: _module(share)
        for name, one in objects(shown)
        if PORT.fullmatch(name) and one
        for port, share in _shares(name, one, under(cages, name), used)
    }
    return Facts(modules=found or Absent(f"{TRANSCEIVERS}: shows no modules"))


def _shares(name: str, found: Shown, cage: Shown, used: Collection[str]) -> Iterator[tuple[str, Shown]]:
    """Yield the ports a module serves, each with its part of it."""
    parts = [port for port in used if port.rpartition("s")[0] == name]
    if name in used or not parts:
        yield name, found
        return
    told = _numbered(under(found, "channel"))
    ways = next((way for word in under(cage, "link", "breakout") if (way := whole(word.removesuffix("x")))), 0)
    count = len(told) // ways if ways and len(told) % ways == 0 else 0
    for port in parts:
        first = int(port.rpartition("s")[2]) * count
        own = {f"channel-{number}": told[number] for number in told if first < number <= first + count}
        yield port, {**found, "channel": own}


def _numbered(channels: Shown) -> dict[int, Shown]:
    return {int(sign[1]): one for name, one in objects(channels) if (sign := CHANNEL.fullmatch(name))}


def _module(found: Shown) -> Module:
    if word(found, "status").startswith("unplugged"):
        return Module(is_present=False)
    channels = under(found, "channel")
    said = word(found, "cable-type").lower()
    kind = next((kind for sign, kind in KINDS if sign in said), "unknown")
    return Module(
        kind=kind,  # type: ignore[arg-type]  # KINDS has no other words
        identifier=word(found, "identifier"),
        vendor=word(found, "vendor-name"),
        part=word(found, "vendor-pn"),
        serial=word(found, "vendor-sn"),
        firmware=word(found, "firmware-version"),
        temperature_c=_reading(found, "temperature"),
        voltage_v=_reading(found, "voltage"),
        lanes=_lanes(channels),
        limits=dict(_limits(found, channels)),
    )


def _reading(found: Shown, name: str) -> float | None:
    """Return a reading, which stands beside its limits or alone."""
    node = found.get(name)
    return real(node.get(name) if isinstance(node, dict) else node)


def _lanes(channels: Shown) -> dict[int, Lane]:
    """Return the lanes, counted from 1 where a module serves two ports and these are the second one's."""
    told = _numbered(channels)
    if not told:
        return {}
    before = (min(told) - 1) // len(told) * len(told)
    return {number - before: _lane(one) for number, one in sorted(told.items())}


def _lane(channel: Shown) -> Lane:
    return Lane(
        rx_dbm=_dbm(_value(channel, "rx-power", "power")),
        tx_dbm=_dbm(_value(channel, "tx-power", "power")),
        bias_ma=real(_value(channel, "tx-bias-current", "current")),
    )


def _value(channel: Shown, name: str, key: str) -> object:
    node = channel.get(name)
    return node.get(key) if isinstance(node, dict) else node


def _dbm(value: object) -> float | None:
    """Return light in dBm; it is told in mW beside. No light is told as -inf."""
    found = DBM.search(value) if isinstance(value, str) else None
    if found is None:
        return None
    return NO_LIGHT_DBM if "inf" in found[1].lower() else max(float(found[1]), NO_LIGHT_DBM)


def _limits(found: Shown, channels: Shown) -> Iterator[tuple[Quantity, Limits]]:
    """Yield the limits; those of light are the same for every lane."""
    first = next((one for _, one in objects(channels)), {})
    light = ((quantity, under(first, name)) for quantity, name in LIT.items())
    whole: tuple[tuple[Quantity, Shown], ...] = (
        ("temperature_c", under(found, "temperature")),
        ("voltage_v", under(found, "voltage")),
    )
    for quantity, node in (*whole, *light):
        read = _dbm if quantity.endswith("dbm") else real
        told = Limits(**{name: read(node.get(key)) for name, key in LIMITS.items()})
        if told.is_range:
            yield quantity, told
