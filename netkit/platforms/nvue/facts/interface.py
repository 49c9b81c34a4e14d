"""Ports: links, counters, adaptive routing, bit errors and modules."""

import re
from collections.abc import Collection, Iterator, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.device import Interface, Lag, Mlag
from netkit.facts.optic import Lane, Limits, Line, Module, Quantity
from netkit.platforms.nvue.facts.json_access import (
    Parts,
    PortPart,
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
from netkit.platforms.outage import of_zebra, with_outages
from netkit.platforms.view import View

INTERFACES = "nv show interface -o json"
MLAG = "nv show mlag -o json"
OUTAGES = "date '+%Y/%m/%d %H:%M:%S'; sudo -n vtysh -d zebra -c 'show interface json'"
"""NVUE shows when a link changed last, not when it went down: zebra knows both."""
COUNTING = frozenset({"adaptive_routing", "counters"})
PORT = re.compile(r"swp[0-9]{1,4}(?:s[0-9])?")
BOND = re.compile(r"bond([0-9]{1,4})")
SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([MG])")
FEC = {"rs": "rs", "baser": "fc", "fc": "fc", "off": "none", "none": "none", "auto": ""}
"""The mode in use; `auto` does not name it."""
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
    """Build the views of ports in use, and of those that are up unexpectedly; counters are read twice."""
    return (
        View((INTERFACES, OUTAGES), frozenset({"interfaces"}), lambda text, outages: interfaces(text, outages, used)),
        View((INTERFACES,), COUNTING, lambda text: counting(text, used)),
    )


def interfaces(text: str, outages: str, used: Collection[str] = ()) -> Facts:
    ports = _ports(text, used)
    found = ports if isinstance(ports, Absent) else {name: _interface(one) for name, one in ports.items()}
    return Facts(interfaces=with_outages(found, of_zebra(outages)))


def counting(text: str, used: Collection[str] = ()) -> Facts:
    """Parse port counters and the state of adaptive routing."""
    ports = _ports(text, used)
    if isinstance(ports, Absent):
        return Facts(adaptive_routing=ports, counters=ports)
    routing: dict[str, bool] = {}
    counters: dict[str, dict[str, int]] = {}
    for name, port in ports.items():
        adaptive = under(port, "router", "adaptive-routing")
        is_on = switched(adaptive.get("state", adaptive.get("enable")))
        if is_on is not None:
            routing[name] = is_on
        stats = under(port, "link", "stats")
        for counter, key in COUNTED.items():
            count = whole(stats.get(key))
            if count is not None:
                counters.setdefault(counter, {})[name] = count
    return Facts(
        adaptive_routing=routing or Absent(f"{INTERFACES}: does not show adaptive routing"),
        counters=counted(INTERFACES, counters),
    )


def _ports(text: str, used: Collection[str]) -> Shown | Absent:
    shown = tree(text)
    if shown is None:
        return unread(INTERFACES, text)
    ports = {}
    for name, port in objects(shown):
        link = under(port, "link")
        is_port = PORT.fullmatch(name) and ("state" in link or "oper-status" in link)  # a split cage has neither
        if is_port and (name in used or _is_up(link)):
            ports[name] = port
    return ports or Absent(f"{INTERFACES}: shows no ports")


def _interface(port: Shown) -> Interface:
    link = under(port, "link")
    fec = word(link, "fec").lower()
    shown_speed = link.get("speed")
    speed = SPEED.fullmatch(shown_speed) if isinstance(shown_speed, str) else None
    return Interface(
        is_up=_is_up(link),
        is_enabled={"up": True, "down": False}.get(word(link, "admin-status").lower()),
        speed_gbps=float(speed[1]) / (1 if speed[2] == "G" else 1000) if speed else None,
        mtu_bytes=whole(link.get("mtu")),
        fec=FEC.get(fec, fec),
        mac=word(link, "mac-address", "mac").lower(),
        description=word(port, "description"),
    )


def _is_up(link: Shown) -> bool | None:
    """Parse the state of a link: a text since 5.11, the name of an object before."""
    state = link.get("state")
    words = {word(link, "oper-status").lower()} - {""} or (set(state) if isinstance(state, dict) else {str(state)})
    if words == {"up"}:
        return True
    return False if words == {"down"} else None


def lags(text: str) -> Facts:
    """Parse the bonds towards hosts and servers, by number."""
    shown = tree(text)
    if shown is None:
        return Facts(lags=unread(INTERFACES, text))
    found = {BOND.fullmatch(name): one for name, one in objects(shown)}
    return Facts(lags={name[1]: Lag(_is_up(under(one, "link"))) for name, one in found.items() if name})


def mlag(text: str) -> Facts:
    """Parse the state of a pair; whether values are texts or booleans depends on the release."""
    shown = tree(text)
    if shown is None:
        return Facts(mlag=unread(MLAG, text))
    alive, backup = (_yes(shown.get(key)) for key in ("peer-alive", "backup-active"))
    return Facts(mlag=Mlag(alive, backup, word(shown, "local-role"), word(shown, "peer-role")))


def _yes(value: object) -> bool | None:
    return {"true": True, "false": False}.get(str(value).lower(), switched(value))


BIN = re.compile(r"rs-num-corr-err-bin([0-9]{1,2})")
LANE_BER = re.compile(r"raw-ber-lane([0-9]{1,2})")
LANE_ERRORS = re.compile(r"phy-raw-errors-lane[0-9]{1,2}")
LEAST_BER = 1e-200
"""NVUE writes 15E-255 for no errors."""
COUNTED_BITS = {
    "received_bits": "phy-received-bits",
    "fec_uncorrectable": "effective-errors",
}


def line_part(path: str) -> PortPart:
    """Build the part for bit errors; the path depends on the release."""

    def parse(ports: Parts, _texts: Sequence[str]) -> Facts:
        lines: dict[str, Line] = {}
        counters: dict[str, dict[str, int]] = {}
        for port, shown in ports.items():
            line = _line(shown)
            if line != Line():
                lines[port] = line
            for name, at, count in _line_counts(port, shown):
                counters.setdefault(name, {})[at] = count
        return Facts(lines=lines or Absent(f"{path}: shows no error rate"), counters=counted(path, counters))

    return PortPart(path, frozenset({"lines", "counters"}), parse)


def _line(shown: Shown) -> Line:
    lanes = {}
    for key in shown:
        lane, ber = LANE_BER.fullmatch(key), _ber(shown[key])
        is_unused = str(shown[key]).strip() in {"0", "0.0"}  # a lane that carries nothing
        if lane and ber is not None and not is_unused:
            lanes[int(lane[1]) + 1] = ber
    return Line(ber=_ber(shown.get("raw-ber")), effective_ber=_ber(shown.get("effective-ber")), lane_ber=lanes)


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
# Words of cable-type; the first that matches counts.
KINDS = (("copper", "copper"), ("passive", "copper"), ("active", "aoc"), ("optical", "optic"), ("separable", "optic"))
LIMITS = {
    "low_alarm": "low-alarm-threshold",
    "low_warning": "low-warning-threshold",
    "high_warning": "high-warning-threshold",
    "high_alarm": "high-alarm-threshold",
}
LANE_KEYS: dict[Quantity, str] = {"rx_dbm": "rx-power", "tx_dbm": "tx-power", "bias_ma": "tx-bias-current"}


def module_view(ports: Collection[str]) -> View:
    """Build the view of modules: NVUE lists them by cage, or by port if the cage is split."""
    return View(
        (TRANSCEIVERS, INTERFACES), frozenset({"modules"}), lambda text, links: module_facts(text, links, ports)
    )


def module_facts(text: str, links: str, used: Collection[str]) -> Facts:
    """Parse the modules; each port of a module that serves several has its own lanes."""
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
    """Yield the ports that a module serves, each with its part of the module."""
    parts = [port for port in used if port.rpartition("s")[0] == name]
    if name in used or not parts:
        yield name, found
        return
    lanes = _numbered(under(found, "channel"))
    breakouts = [whole(name.removesuffix("x")) for name in under(cage, "link", "breakout")]
    ways = next(filter(None, breakouts), 0)
    count = len(lanes) // ways if ways and len(lanes) % ways == 0 else 0
    for port in parts:
        first = int(port.rpartition("s")[2]) * count
        own = {f"channel-{number}": lanes[number] for number in lanes if first < number <= first + count}
        yield port, {**found, "channel": own}


def _numbered(channels: Shown) -> dict[int, Shown]:
    return {int(sign[1]): one for name, one in objects(channels) if (sign := CHANNEL.fullmatch(name))}


def _module(found: Shown) -> Module:
    if word(found, "status").startswith("unplugged"):
        return Module(is_present=False)
    channels = under(found, "channel")
    cable = word(found, "cable-type").lower()
    kind = next((kind for sign, kind in KINDS if sign in cable), "unknown")
    lanes = _numbered(channels)
    before = (min(lanes) - 1) // len(lanes) * len(lanes) if lanes else 0  # lanes of another port of the module
    return Module(
        kind=kind,  # type: ignore[arg-type]  # KINDS has only valid ones
        identifier=word(found, "identifier"),
        vendor=word(found, "vendor-name"),
        part=word(found, "vendor-pn"),
        serial=word(found, "vendor-sn"),
        firmware=word(found, "firmware-version"),
        temperature_c=_reading(found, "temperature"),
        voltage_v=_reading(found, "voltage"),
        lanes={number - before: _lane(one) for number, one in sorted(lanes.items())},
        limits=dict(_limits(found, channels)),
    )


def _reading(found: Shown, name: str) -> float | None:
    """Parse a reading, which is a value or an object with limits beside it."""
    node = found.get(name)
    return real(node.get(name) if isinstance(node, dict) else node)


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
    """Parse optical power in dBm, listed beside mW; -inf without a signal."""
    found = DBM.search(value) if isinstance(value, str) else None
    if found is None:
        return None
    return NO_LIGHT_DBM if "inf" in found[1].lower() else max(float(found[1]), NO_LIGHT_DBM)


def _limits(found: Shown, channels: Shown) -> Iterator[tuple[Quantity, Limits]]:
    """Yield the limits; the power limits of the first lane stand for all lanes."""
    first = next((one for _, one in objects(channels)), {})
    per_lane = ((quantity, under(first, name)) for quantity, name in LANE_KEYS.items())
    per_module: tuple[tuple[Quantity, Shown], ...] = (
        ("temperature_c", under(found, "temperature")),
        ("voltage_v", under(found, "voltage")),
    )
    for quantity, node in (*per_module, *per_lane):
        parse = _dbm if quantity.endswith("dbm") else real
        limits = Limits(**{name: parse(node.get(key)) for name, key in LIMITS.items()})
        if limits.is_range:
            yield quantity, limits
