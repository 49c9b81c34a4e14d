"""Modules, with their own limits."""

import re
from collections.abc import Collection, Iterator

from netkit.facts import Absent, Facts
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.nvue.facts import link
from netkit.platforms.nvue.facts.link import PORT
from netkit.platforms.nvue.facts.shown import Shown, objects, real, tree, under, unread, whole, word
from netkit.platforms.view import View

COMMAND = "nv show platform transceiver -o json"
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


def view(ports: Collection[str]) -> View:
    """Return the view; a module is shown by its cage, or by its ports where the cage is split."""
    return View((COMMAND, link.COMMAND), frozenset({"modules"}), lambda text, links: parse(text, links, ports))


def parse(text: str, links: str, used: Collection[str]) -> Facts:
    """Return the module of each port; both ports of a module that serves two have it, each with its own lanes."""
    shown = tree(text)
    if shown is None:
        return Facts(modules=unread(COMMAND, text))
    cages = tree(links) or {}
    found = {
        port: _module(share)
        for name, one in objects(shown)
        if PORT.fullmatch(name) and one
        for port, share in _shares(name, one, under(cages, name), used)
    }
    return Facts(modules=found or Absent(f"{COMMAND}: shows no modules"))


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
