"""Ports of EOS: names, state, lanes and the log of link changes."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor
from netkit.facts.optic import Line
from netkit.platforms.json_access import Shown, mac_or_name, named, number, parsed, rows, table, text, whole
from netkit.platforms.outage import MONTHS, NEVER, WORDS, LinkOutage, in_words, moment, outage, with_outages

VERSION = "show version"
HOSTNAME = "show hostname"
FILE_SYSTEMS = "show file systems"
INTERFACES = "show interfaces"
ERROR_CORRECTION = "show interfaces error-correction"
FLOW_CONTROL = "show interfaces flow-control"
PHY = "show interfaces phy detail"
THRESHOLDS = "show interfaces transceiver dom thresholds"
HARDWARE = "show interfaces transceiver hardware"
INVENTORY = "show inventory"
LOG = "show logging last 1 days | grep LINEPROTO"
CLOCK = "show clock"
LLDP = "show lldp neighbors detail"
BGP = "show bgp neighbors vrf all"
BGP_SUMMARY = "show ip bgp summary vrf all"
BFD = "show bfd peers"
MAINTENANCE = "show maintenance"
ROUTES = "show ip route"
RUNNING = "show running-config sanitized"
PFC = "show priority-flow-control"
PFC_COUNTERS = "show priority-flow-control counters detail"
WATCHDOG = "show priority-flow-control counters watchdog"
ECN_COUNTERS = "show qos interfaces ecn counters queue"
QUEUES = "show interfaces counters queue detail"
QUEUE_DROPS = "show interfaces counters queue"
LOAD_BALANCE = "show ip hardware fib load-balance distribution"

REVISIONS = {PHY: 2, INVENTORY: 2, BGP: 2}
IN_WORDS = frozenset({RUNNING, PFC, QUEUE_DROPS, LOAD_BALANCE, HARDWARE, LOG, CLOCK})
"""Their JSON is unknown, or there is none."""


Value = TypeVar("Value")
LONG = "Ethernet"
SHORT = re.compile(r"Et(?=\d)", re.ASCII)
NAME = re.compile(r"Ethernet\d{1,4}(?:/\d{1,3}){0,2}", re.ASCII)
MOST_LANES = 64
"""More than any cage has."""


def long_name(name: str) -> str:
    """Return Ethernet1/5 for Et1/5; another name as it is."""
    return SHORT.sub(LONG, name.strip(), count=1)


def is_port(name: str, in_use: tuple[str, ...] = ()) -> bool:
    """Whether an interface has a cable; of those that are in use, if any are named."""
    return name in in_use if in_use else NAME.fullmatch(name) is not None


def cage(name: str) -> str:
    """Return the cage of a port: 1 for Ethernet1/5, 3/1 for Ethernet3/1/5, 7 for Ethernet7."""
    place = name.removeprefix(LONG)
    return place.rpartition("/")[0] or place


def first_lane(name: str) -> int:
    """Return the lane of its cage at which a port begins."""
    _, slash, lane = name.rpartition("/")
    return int(lane) if slash else 1


def lanes(ports: Iterable[str]) -> dict[str, range]:
    """Return the lanes of its cage that are a port's own: up to where the next port begins."""
    firsts = {port: first_lane(port) for port in ports}
    begun: dict[str, set[int]] = {}
    for port, first in firsts.items():
        begun.setdefault(cage(port), set()).add(first)
    return {
        port: range(first, min((other for other in begun[cage(port)] if other > first), default=first + MOST_LANES))
        for port, first in firsts.items()
    }


def own(channels: Mapping[int, Value], mine: range) -> dict[int, Value]:
    """Return a port's own lanes, from 1: some releases show it the whole cage, some count its lanes from 1."""
    found = {lane - mine.start + 1: value for lane, value in channels.items() if lane in mine}
    return found or dict(channels)


LINE = re.compile(
    r"%LINEPROTO-5-UPDOWN: Line protocol on Interface (?P<port>Ethernet[\d/]{1,12})(?: \(.*\))?, "
    r"changed state to (?P<way>up|down)$",
    re.ASCII,
)
TRADITIONAL = re.compile(
    rf"(?:(\d{{4}}) )?({'|'.join(MONTHS)}) {{1,2}}(\d{{1,2}})(?: (\d{{4}}))? (\d\d):(\d\d):(\d\d(?:\.\d{{1,9}})?)",
    re.ASCII,
)
RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)", re.ASCII)
DAY_S = 86_400.0
MOST_LINES = 20_000


class Now(NamedTuple):
    """What the clock says: lines may stand without a year."""

    at_s: float
    year: int


class EosLinkChange(NamedTuple):
    """A link that went or came."""

    at_s: float
    port: str
    is_up: bool


def last_outages(log: str, clock: str, ports: Collection[str]) -> Mapping[str, LinkOutage]:
    """Return the last outage of each port; those the log does not name were not gone. One that names none is no log."""
    now = _now(clock)
    changes = sorted(_changes(log, now), key=lambda one: one.at_s) if now else []
    if not now or not changes:
        return {}
    by_port: dict[str, list[EosLinkChange]] = {}
    for one in changes:
        by_port.setdefault(one.port, []).append(one)
    found = {port: _last(by_port.get(port, []), now) for port in ports}
    return {port: one for port, one in found.items() if one is not None}


def _now(clock: str) -> Now | None:
    at_s, found = in_words(clock), WORDS.search(clock)
    return None if at_s is None or found is None else Now(at_s, int(found["year"]))


def _last(changes: list[EosLinkChange], now: Now) -> LinkOutage | None:
    """Return the last outage of one port: from when it went to when it came; None while it is gone."""
    went_s: float | None = None
    last: LinkOutage | None = NEVER
    for one in changes:
        if not one.is_up:
            went_s = one.at_s if went_s is None else went_s
        elif went_s is not None:
            last, went_s = outage(went_s, one.at_s, now.at_s), None
    return last if went_s is None else None


def _changes(log: str, now: Now) -> Iterator[EosLinkChange]:
    for line in log.splitlines()[-MOST_LINES:]:
        found = LINE.search(line.rstrip())
        at_s = _moment(line[: found.start()], now) if found else None
        if found and at_s is not None:
            yield EosLinkChange(at_s, found["port"], found["way"] == "up")


def _moment(head: str, now: Now) -> float | None:
    """Return when a line was written, by the local time that all lines and the clock have; the offset says nothing."""
    iso = RFC3339.search(head)
    if iso:
        year, month, day, hour, minute = map(int, iso.groups()[:-1])
        return moment(year, month, day, hour, minute, float(iso[6]))
    found = TRADITIONAL.search(head)
    if found is None:
        return None
    before, month_, day_, after, hour_, minute_, second = found.groups()
    at = (MONTHS.index(month_) + 1, int(day_), int(hour_), int(minute_), float(second))
    told = before or after
    if told:
        return moment(int(told), *at)
    this = moment(now.year, *at)
    return moment(now.year - 1, *at) if this is None or this > now.at_s + DAY_S else this


HEAD = re.compile(r"\S+")
PORT = "Port"


def cells(shown: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield port → cells by their heads. A cell stands where its head does; what reaches further goes with it."""
    starts: dict[str, int] = {}
    for line in shown.expandtabs().splitlines():
        if line.startswith(f"{PORT} "):
            starts = {found[0]: found.start() for found in HEAD.finditer(line)}
        elif starts and is_port(port := long_name(line.partition(" ")[0])):
            yield port, _cut(line, starts)


def _cut(line: str, starts: Mapping[str, int]) -> Mapping[str, str]:
    ends = [*list(starts.values())[1:], max(len(line), 1)]
    return {head: line[start:end].strip() for (head, start), end in zip(starts.items(), ends, strict=True)}


FEC_WORDS = {"reedsolomon": "rs", "reedsolomon544": "rs", "firecode": "fc", "disabled": "none"}
GIGABIT = 10**9
OFF = frozenset({"disabled"})
UP = "connected"


def fec_word(shown: object) -> str:
    """Return `rs`, `fc` or `none`; another word as EOS says it."""
    word = text(shown)
    return FEC_WORDS.get(word.lower(), word)


def interfaces(shown: str, corrections: str, log: str, clock: str) -> Facts:
    """Return the ports. What EOS says of error correction is another command's, and of outages its log's."""
    codes = table(parsed(corrections), "interfaceErrCorrStatuses")
    found = {
        name: _interface(one, fec_word(table(codes, name).get("errCorrEncodingStatus")))
        for name, one in named(parsed(shown), "interfaces")
        if is_port(name)
    }
    outages = last_outages(log, clock, found)
    return Facts(interfaces=with_outages(found, outages) if found else Absent(f"{INTERFACES} shows no ports"))


def _interface(shown: Shown, fec: str) -> Interface:
    status, protocol = text(shown.get("interfaceStatus")), text(shown.get("lineProtocolStatus"))
    bits = number(shown.get("bandwidth"))
    return Interface(
        is_up=status == UP and protocol in {"up", ""} if status else None,
        is_enabled=status not in OFF if status else None,
        speed_gbps=bits / GIGABIT if bits else None,
        mtu_bytes=whole(shown.get("mtu")),
        fec=fec,
        mac=mac_or_name(text(shown.get("physicalAddress"))),
        description=text(shown.get("description")),
    )


def neighbors(shown: str) -> Facts:
    """Return who is there by LLDP."""
    answer = parsed(shown)
    if not isinstance(table(answer).get("lldpNeighbors"), dict):
        return Facts(neighbors=Absent(f"{LLDP} cannot be read"))
    return Facts(neighbors=dict(_neighbors(named(answer, "lldpNeighbors"))))


def _neighbors(ports: Iterator[tuple[str, Shown]]) -> Iterator[tuple[str, tuple[Neighbor, ...]]]:
    for port, one in ports:
        heard = sorted(rows(one.get("lldpNeighborInfo")), key=_contact_s, reverse=True)
        if heard and is_port(port):
            yield port, tuple(map(_neighbor, heard))


def _contact_s(shown: Shown) -> float:
    return number(shown.get("lastContactTime")) or 0.0


def _neighbor(shown: Shown) -> Neighbor:
    port = table(shown, "neighborInterfaceInfo")
    name = text(port.get("interfaceId_v2")) or text(port.get("interfaceId")).strip('"')
    is_mac = text(port.get("interfaceIdType")) == "macAddress"
    return Neighbor(
        system=text(shown.get("systemName")),
        port=mac_or_name(name) if is_mac else name,
        description=text(port.get("interfaceDescription")).strip('"'),
    )


def flow_control(shown: str) -> Mapping[str, bool]:
    """Return port → whether pauses hold up all priorities at once."""
    return {
        port: "on" in {text(one.get("txOperState")), text(one.get("rxOperState"))}
        for port, one in named(parsed(shown), "interfaceFlowControls")
    }


DOWN = "linkDown"
Counts = dict[str, dict[str, int]]


def lines(phy: str, in_use: tuple[str, ...]) -> Facts:
    """Return error rates, and how often errors were corrected or not."""
    shown = dict(_line_sides(parsed(phy), in_use))
    if not shown:
        why = Absent(f"{PHY} shows no physical layer")
        return Facts(lines=why, counters=why)
    return Facts(lines={port: _line(one) for port, one in shown.items()}, counters=_counters(shown))


def _line_sides(answer: object, in_use: tuple[str, ...]) -> Iterator[tuple[str, Shown]]:
    """Yield port → the chip that faces the cable: the last one, for those before it face the next one."""
    for port, one in named(answer, "interfacePhyStatuses"):
        chips = [chip for chip in rows(one.get("phyStatuses")) if _location(chip) in {"line", ""}]
        if is_port(port, in_use) and chips:
            yield port, next((chip for chip in reversed(chips) if table(chip, "fec")), chips[-1])


def _location(chip: Shown) -> str:
    return text(table(chip, "description").get("location"))


def _line(chip: Shown) -> Line:
    """Return what arrives. A line that is down has no error rate, whatever its register still says."""
    is_down = text(table(chip, "phyState").get("value")) == DOWN
    return Line(
        fec=fec_word(table(chip, "fec").get("encoding")),
        ber=None if is_down else _ratio(table(chip, "preFecBer").get("value")),
    )


def _ratio(value: object) -> float | None:
    """Return a share of bits; what is no share is not known."""
    found = number(value)
    return found if found is not None and 0 <= found <= 1 else None


def _counters(chips: dict[str, Shown]) -> Counts:
    found: Counts = {}
    for port, chip in chips.items():
        fec = table(chip, "fec")
        for name, key in (("fec_corrected", "correctedCodewords"), ("fec_uncorrectable", "uncorrectedCodewords")):
            if (count := whole(table(fec, key).get("value"))) is not None:
                found.setdefault(name, {})[port] = count
        symbols = [whole(lane.get("value")) for _, lane in named(fec, "correctedSymbols")]
        if symbols and None not in symbols:
            found.setdefault("fec_symbol_errors", {})[port] = sum(count or 0 for count in symbols)
    return found
