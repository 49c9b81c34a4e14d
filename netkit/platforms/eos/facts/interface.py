"""Commands of EOS, and parsers of its ports: names, state, lanes, neighbours and link changes."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Lag, Mlag, Neighbor
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
PORT_CHANNELS = "show port-channel"
MLAG = "show mlag detail"
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

REVISIONS = {PHY: 2, INVENTORY: 2, BGP: 2, MLAG: 2}
IN_WORDS = frozenset({RUNNING, PFC, QUEUE_DROPS, LOAD_BALANCE, HARDWARE, LOG, CLOCK})
"""Commands whose JSON is unknown or missing."""


Value = TypeVar("Value")
LONG = "Ethernet"
SHORT = re.compile(r"Et(?=\d)", re.ASCII)
NAME = re.compile(r"Ethernet\d{1,4}(?:/\d{1,3}){0,2}", re.ASCII)
MOST_LANES = 64
"""An upper bound for the lanes of a cage."""


@lru_cache(maxsize=4096)
def long_name(name: str) -> str:
    """Expand Et1/5 to Ethernet1/5; other names stay as they are."""
    return SHORT.sub(LONG, name.strip(), count=1)


def is_port(name: str, in_use: Collection[str] = ()) -> bool:
    """Whether an interface is a front-panel port, and one of those in use if any are given."""
    return name in in_use if in_use else NAME.fullmatch(name) is not None


def cage(name: str) -> str:
    """The cage of a port: 1 for Ethernet1/5, 3/1 for Ethernet3/1/5, 7 for Ethernet7."""
    place = name.removeprefix(LONG)
    return place.rpartition("/")[0] or place


def first_lane(name: str) -> int:
    """The first lane of a port within its cage."""
    _, slash, lane = name.rpartition("/")
    return int(lane) if slash else 1


def lanes(ports: Iterable[str]) -> dict[str, range]:
    """Assign the lanes of each cage to ports: each has those up to the next port."""
    firsts = {port: first_lane(port) for port in ports}
    begun: dict[str, set[int]] = {}
    for port, first in firsts.items():
        begun.setdefault(cage(port), set()).add(first)
    return {
        port: range(first, min((other for other in begun[cage(port)] if other > first), default=first + MOST_LANES))
        for port, first in firsts.items()
    }


def own(channels: Mapping[int, Value], mine: range) -> dict[int, Value]:
    """Select a port's own lanes, renumbered from 1: some releases list the whole cage, some number from 1 already."""
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
    """The current time; the year completes log lines without one."""

    at_s: float
    year: int


class EosLinkChange(NamedTuple):
    """A link that went down or came up."""

    at_s: float
    port: str
    is_up: bool


def last_outages(log: str, clock: str, ports: Collection[str]) -> Mapping[str, LinkOutage]:
    """Find the last outage of each port; a port that the log does not name had none. A log without ports is ignored."""
    now_s, stamp = in_words(clock), WORDS.search(clock)
    if now_s is None or stamp is None:
        return {}
    now = Now(now_s, int(stamp["year"]))
    changes = []
    for line in log.splitlines()[-MOST_LINES:]:
        change = LINE.search(line.rstrip())
        at_s = _moment(line[: change.start()], now) if change else None
        if change and at_s is not None:
            changes.append(EosLinkChange(at_s, change["port"], change["way"] == "up"))
    if not changes:
        return {}
    changes.sort(key=lambda one: one.at_s)
    by_port: dict[str, list[EosLinkChange]] = {}
    for one in changes:
        by_port.setdefault(one.port, []).append(one)
    found = {port: _last(by_port.get(port, []), now) for port in ports}
    return {port: one for port, one in found.items() if one is not None}


def _last(changes: list[EosLinkChange], now: Now) -> LinkOutage | None:
    """Find the last outage of one port; None while it is down."""
    went_s: float | None = None
    last: LinkOutage | None = NEVER
    for one in changes:
        if not one.is_up:
            went_s = one.at_s if went_s is None else went_s
        elif went_s is not None:
            last, went_s = outage(went_s, one.at_s, now.at_s), None
    return last if went_s is None else None


def _moment(head: str, now: Now) -> float | None:
    """Parse the timestamp of a line in local time, as the clock shows it too; the UTC offset is irrelevant."""
    iso = RFC3339.search(head)
    if iso:
        year, month, day, hour, minute = map(int, iso.groups()[:-1])
        return moment(year, month, day, hour, minute, float(iso[6]))
    found = TRADITIONAL.search(head)
    if found is None:
        return None
    before, month_, day_, after, hour_, minute_, second = found.groups()
    at = (MONTHS.index(month_) + 1, int(day_), int(hour_), int(minute_), float(second))
    if before or after:
        return moment(int(before or after), *at)
    this = moment(now.year, *at)
    return moment(now.year - 1, *at) if this is None or this > now.at_s + DAY_S else this


HEAD = re.compile(r"\S+")
PORT = "Port"


def cells(output: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Parse a table with a column Port: yield each port with its cells by heading. A cell starts below its heading."""
    starts: dict[str, int] = {}
    for line in output.expandtabs().splitlines():
        if line.startswith(f"{PORT} "):
            starts = {found[0]: found.start() for found in HEAD.finditer(line)}
        elif starts and is_port(port := long_name(line.partition(" ")[0])):
            ends = [*list(starts.values())[1:], max(len(line), 1)]
            yield port, {head: line[start:end].strip() for (head, start), end in zip(starts.items(), ends, strict=True)}


FEC_WORDS = {"reedsolomon": "rs", "reedsolomon544": "rs", "firecode": "fc", "disabled": "none"}
GIGABIT = 10**9
OFF = frozenset({"disabled"})
UP = CONNECTED = "connected"


def fec_word(shown: object) -> str:
    """Convert EOS's name of an FEC to `rs`, `fc` or `none`; other names stay as they are."""
    word = text(shown)
    return FEC_WORDS.get(word.lower(), word)


def interfaces(shown: str, corrections: str, log: str, clock: str) -> Facts:
    """Build the ports from `show interfaces`, FEC from its own command, and outages from the log."""
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


def lags(shown: str) -> Facts:
    """Parse the LAGs, by number: up where a port of the switch itself carries it, which those of its peer do not."""
    answer = parsed(shown)
    if not isinstance(table(answer).get("portChannels"), dict):
        return Facts(lags=Absent(f"{PORT_CHANNELS} cannot be read"))
    return Facts(
        lags={
            name.removeprefix("Port-Channel"): Lag(any(is_port(port) for port, _ in named(one, "activePorts")))
            for name, one in named(answer, "portChannels")
        }
    )


def mlag(shown: str) -> Facts:
    """Parse the state of a pair. No source documents the field of the heartbeat."""
    answer = table(parsed(shown))
    state, negotiation = text(answer.get("state")), text(answer.get("negStatus"))
    if not state:
        return Facts(mlag=Absent(f"{MLAG} cannot be read"))
    detail = table(answer, "detail")
    roles = (text(detail.get(key)) for key in ("mlagState", "peerMlagState"))
    return Facts(mlag=Mlag(negotiation == CONNECTED, None, *roles))


def neighbors(shown: str) -> Facts:
    """Parse LLDP neighbours, the most recent first."""
    answer = parsed(shown)
    if not isinstance(table(answer).get("lldpNeighbors"), dict):
        return Facts(neighbors=Absent(f"{LLDP} cannot be read"))

    def contact_s(shown: Shown) -> float:
        return number(shown.get("lastContactTime")) or 0.0

    found = {}
    for port, one in named(answer, "lldpNeighbors"):
        latest = sorted(rows(one.get("lldpNeighborInfo")), key=contact_s, reverse=True)
        if latest and is_port(port):
            found[port] = tuple(map(_neighbor, latest))
    return Facts(neighbors=found)


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
    """Parse port → whether link-level flow control (802.3x pause) is active."""
    return {
        port: "on" in {text(one.get("txOperState")), text(one.get("rxOperState"))}
        for port, one in named(parsed(shown), "interfaceFlowControls")
    }


DOWN = "linkDown"
Counts = dict[str, dict[str, int]]


def lines(phy: str, in_use: Collection[str]) -> Facts:
    """Parse bit error rates and FEC counters."""
    line_side: dict[str, Shown] = {}
    for port, one in named(parsed(phy), "interfacePhyStatuses"):
        statuses = rows(one.get("phyStatuses"))
        chips = [chip for chip in statuses if text(table(chip, "description").get("location")) in {"line", ""}]
        if is_port(port, in_use) and chips:  # the last chip in the chain faces the cable
            line_side[port] = next((chip for chip in reversed(chips) if table(chip, "fec")), chips[-1])
    if not line_side:
        why = Absent(f"{PHY} shows no physical layer")
        return Facts(lines=why, counters=why)
    return Facts(lines={port: _line(one) for port, one in line_side.items()}, counters=_counters(line_side))


def _line(chip: Shown) -> Line:
    """Parse the received signal. A line that is down has no error rate, whatever its register holds."""
    is_down = text(table(chip, "phyState").get("value")) == DOWN
    ber = number(table(chip, "preFecBer").get("value"))
    is_known = ber is not None and 0 <= ber <= 1 and not is_down
    return Line(fec=fec_word(table(chip, "fec").get("encoding")), ber=ber if is_known else None)


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
