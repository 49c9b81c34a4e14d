"""Parsers of a host's interfaces: state, neighbours, routes, link-up time and counters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from netkit.facts import Absent, Counters
from netkit.facts.counter import place
from netkit.facts.device import Interface, Lag, Neighbor
from netkit.facts.host import DefaultRoute, Lookup
from netkit.platforms.linux.facts.reading import (
    CLASS,
    MOST,
    RECENT,
    Card,
    Tree,
    document,
    member,
    members,
    number,
    plain,
    sections,
    whole,
    word,
)

SLAVES = "/bonding/slaves"
NO_PARTNER = "00:00:00:00:00:00"
UNREADABLE = Absent("ip address, or the files below /sys, could not be read")


@lru_cache(maxsize=RECENT)
def links(text: str) -> Mapping[str, Mapping[str, Any]] | None:
    """Parse `ip -j address` by interface; None if it is invalid."""
    found = document(text)
    if not isinstance(found, list):
        return None
    return {word(link, "ifname"): link for link in members(found) if word(link, "ifname")}


def interfaces(
    links: Mapping[str, Mapping[str, Any]] | None, tree: Tree, cards: Sequence[Card], fec: Mapping[str, str]
) -> Mapping[str, Interface] | Absent:
    """Build the interfaces of the NICs that exist."""
    if links is None or not tree.files:
        return UNREADABLE
    return {
        card.interface: _interface(links[card.interface], tree.text(f"{card.net}/speed"), fec.get(card.interface, ""))
        for card in cards
        if card.interface in links
    }


def _interface(link: Mapping[str, Any], speed: str, fec: str) -> Interface:
    words = link.get("flags")
    flags = set(map(str, words)) if isinstance(words, list) else None
    speed_mbps = whole(speed)  # -1 while there is no link
    return Interface(
        is_up=None if flags is None else {"UP", "LOWER_UP"} <= flags,
        is_enabled=None if flags is None else "UP" in flags,
        speed_gbps=speed_mbps / 1000 if speed_mbps else None,
        mtu_bytes=whole(link.get("mtu")),
        fec=fec,
        mac=word(link, "address"),
        description=word(link, "ifalias"),
    )


def lags(tree: Tree) -> Mapping[str, Lag] | Absent:
    """Build the bonds of the kernel; a bond without an LACP partner has one of zeros."""
    if not tree.files:
        return UNREADABLE
    found = ((path.removesuffix(SLAVES), text) for path, text in tree.below(f"{CLASS}/net") if path.endswith(SLAVES))
    return {name: _lag(tree, f"{CLASS}/net/{name}/bonding", text.split()) for name, text in found}


def _lag(tree: Tree, folder: str, names: Sequence[str]) -> Lag:
    aggregator, partner = tree.text(f"{folder}/ad_aggregator"), tree.text(f"{folder}/ad_partner_mac")
    carrying = "active", "up", aggregator
    members = {}
    for name in names:
        own = f"{CLASS}/net/{name}/bonding_slave"
        members[name] = carrying == tuple(
            tree.text(f"{own}/{file}") for file in ("state", "mii_status", "ad_aggregator_id")
        )
    return Lag(
        is_up={"up": True, "down": False}.get(tree.text(f"{folder}/mii_status")),
        members=members,
        partner="" if partner == NO_PARTNER else partner,
    )


def addresses(links: Mapping[str, Mapping[str, Any]] | None) -> dict[str, tuple[str, ...]]:
    """Collect the addresses of all interfaces, with prefix length, without link-local ones."""
    found = {}
    for name, link in (links or {}).items():
        infos = ((one, number(one.get("prefixlen"))) for one in members(link.get("addr_info")))
        found[name] = tuple(
            f"{word(one, 'local')}/{length:.0f}"
            for one, length in infos
            if word(one, "local") and length is not None and word(one, "scope") != "link"
        )
    return found


AGE = re.compile(r"([0-9]{1,6}) days?, ([0-9]{1,2}):([0-9]{2}):([0-9]{2})")


def neighbors(text: str) -> Mapping[str, tuple[Neighbor, ...]] | Absent:
    """Parse lldpcli's json0, in which every value is a list, or its json, in which some are not."""
    found = document(text)
    if not isinstance(found, dict) or "lldp" not in found:
        return Absent("lldpd does not show its neighbours: check whether it is installed and runs")
    by_port: dict[str, list[Neighbor]] = {}
    for lldp in members(found["lldp"]):
        for interface in members(lldp.get("interface")):
            if word(interface, "name"):
                by_port.setdefault(word(interface, "name"), []).append(_neighbor(interface))

    def age_s(neighbor: Neighbor) -> float:
        return float("inf") if neighbor.age_s is None else neighbor.age_s

    return {name: tuple(sorted(ones, key=age_s)) for name, ones in by_port.items()}


def _neighbor(interface: Mapping[str, Any]) -> Neighbor:
    chassis, port = members(interface.get("chassis")), members(interface.get("port"))
    age = AGE.match(word(interface, "age"))
    days, hours, minutes, seconds = map(int, age.groups()) if age else (0, 0, 0, 0)
    return Neighbor(
        system=_value(chassis, "name") or _value(chassis, "id"),
        port=_value(port, "id"),
        description=_value(port, "descr"),
        age_s=float(((days * 24 + hours) * 60 + minutes) * 60 + seconds) if age else None,
    )


def _value(about: Iterable[Mapping[str, Any]], key: str) -> str:
    for one in about:
        for inner in members(one.get(key)):
            if word(inner, "value"):
                return word(inner, "value")
    return ""


FAILED = re.compile(r"Command failed \S*?:([0-9]{1,6})\s*\Z")
COMPLAINTS = "#@ complaints"
REFUSING = {"unreachable", "blackhole", "prohibit", "throw"}


def lookups(text: str, asked: Sequence[tuple[str, str, str]]) -> tuple[Lookup, ...] | Absent:
    """Parse the result of each route lookup, in order."""
    answers, mark, errors = text.partition(COMPLAINTS)
    failures = _failures(errors)
    lines = [line for line in answers.splitlines() if line.strip()]
    if not mark or len(lines) + len(failures) != len(asked):
        return Absent("ip route get did not answer every lookup")
    routes = document(f"[{','.join(lines)}]")  # a reader for each takes most of the time
    found = iter(routes if isinstance(routes, list) and len(routes) == len(lines) else map(document, lines))
    return tuple(
        Lookup(*one, failure=failures[number]) if number in failures else _lookup(one, next(found, None))
        for number, one in enumerate(asked, 1)
    )


def _failures(errors: str) -> dict[int, str]:
    """Parse the input lines that failed, each with the message before it."""
    found: dict[int, str] = {}
    reason = ""
    for line in errors.splitlines():
        match = FAILED.search(line)
        if match:
            found[int(match[1])] = reason or "no route"
            reason = ""
        else:
            reason = line.strip().removeprefix("RTNETLINK answers: ").removeprefix("Error: ") or reason
    return found


def _lookup(asked: tuple[str, str, str], shown: object) -> Lookup:
    route = next(iter(members(shown)), None)
    if route is None:
        return Lookup(*asked, failure="the answer of ip route get cannot be read")
    kind = word(route, "type")
    if kind in REFUSING:
        return Lookup(*asked, failure=kind)
    return Lookup(*asked, out_interface=word(route, "dev"), gateway=_gateway(route))


def _gateway(hop: Mapping[str, Any]) -> str:
    """The address of a next hop, which may be of another address family."""
    return word(hop, "gateway") or word(member(hop, "via"), "host")


def default_routes(text: str) -> tuple[DefaultRoute, ...] | None:
    """Parse the default routes of both families, one per next hop; None if those of IPv4 are missing."""
    by_family = {family: document(shown) for family, shown in sections(text).items()}
    if not isinstance(by_family.get("4"), list):
        return None
    found = []
    for family in (4, 6):
        for route in members(by_family.get(str(family))):
            if word(route, "type") not in {"", "unicast"}:
                continue
            for hop in (route, *members(route.get("nexthops"))):
                if word(hop, "dev"):
                    metric = whole(route.get("metric")) or 0
                    found.append(DefaultRoute(word(hop, "dev"), _gateway(hop), metric, family))
    return tuple(found)


FIELD = re.compile(r"^\s*time_to_link_up\s*\|\s*0x([0-9a-fA-F]{1,8})\s*$", re.MULTILINE)
MS_PER_S = 1000


def times_s(text: str) -> Mapping[str, float]:
    """Parse the link-up time of each NIC whose link is up; until then the firmware holds 0."""
    found = {name: FIELD.search(plain(shown)) for name, shown in sections(text).items()}
    times_ms = {name: int(match[1], 16) for name, match in found.items() if match}
    return {name: time_ms / MS_PER_S for name, time_ms in times_ms.items() if time_ms}


Rows = Mapping[str, int]
QUEUE: Mapping[str, str] = {
    "np_cnp_sent": "cnp_sent",
    "rp_cnp_handled": "cnp_handled",
    "rp_cnp_ignored": "cnp_ignored",
    "np_ecn_marked_roce_packets": "ecn_received",
    "out_of_sequence": "out_of_sequence",
    "packet_seq_err": "packet_seq_err",
    "local_ack_timeout_err": "local_ack_timeout",
    "req_transport_retries_exceeded": "retries_exceeded",
    "req_rnr_retries_exceeded": "rnr_retries_exceeded",
    "out_of_buffer": "out_of_buffer",
    "roce_adp_retrans": "adaptive_retransmits",
    "duplicate_request": "duplicate_requests",
    "roce_slow_restart_cnps": "slow_restart_cnps",
    "rx_icrc_encapsulated": "icrc_errors",
}
# Broadcom (bnxt_re) and AMD (ionic_rdma) count received CNPs whether or not they slow a sender down, so theirs are all
# handled. Their other counters of errors are not the same as mlx5's.
QUEUE_OF_OTHERS: Mapping[str, str] = {
    "tx_cnp_pkts": "cnp_sent",
    "rx_cnp_pkts": "cnp_handled",
    "rx_ecn_marked_pkts": "ecn_received",
    "oos_drop_count": "out_of_sequence",
    "seq_err_naks_rcvd": "packet_seq_err",
    "to_retransmits": "local_ack_timeout",
    "max_retry_exceeded": "retries_exceeded",
    "rx_out_of_buffer": "out_of_buffer",
    "dup_req": "duplicate_requests",
    "rx_roce_only_bytes": "rdma_rx_bytes",
    "tx_roce_only_bytes": "rdma_tx_bytes",
    "tx_rdma_cnp_pkts": "cnp_sent",
    "rx_rdma_cnp_pkts": "cnp_handled",
    "rx_rdma_ecn_pkts": "ecn_received",
    "req_rx_pkt_seq_err": "packet_seq_err",
    "tx_rdma_ack_timeout": "local_ack_timeout",
    "req_tx_retry_excd_err": "retries_exceeded",
    "rx_rdma_ucast_bytes": "rdma_rx_bytes",
    "tx_rdma_ucast_bytes": "rdma_tx_bytes",
}
PORT: Mapping[str, str] = {
    "rx_bytes_phy": "rx_bytes",
    "tx_bytes_phy": "tx_bytes",
    "rx_packets_phy": "rx_packets",
    "tx_packets_phy": "tx_packets",
    "rx_discards_phy": "rx_drops",
    "tx_discards_phy": "tx_drops",
    "tx_errors_phy": "tx_errors",
    "link_down_events_phy": "link_downs",
    "rx_corrected_bits_phy": "corrected_bits",
    "rx_bits_phy": "received_bits",
    "rx_vport_rdma_unicast_bytes": "rdma_rx_bytes",
    "tx_vport_rdma_unicast_bytes": "rdma_tx_bytes",
    "tx_pause_storm_warning_events": "pause_storm_warnings",
    "tx_pause_storm_error_events": "pause_storm_errors",
    "outbound_pci_stalled_wr_events": "pci_stalls",
}
PORT_OF_OTHERS: Mapping[str, str] = {
    "link_down_events": "link_downs",
    "rx_corrected_bits": "corrected_bits",
    "rx_bits": "received_bits",
}
"""Of bnxt_en."""
KERNEL: Mapping[str, str] = {
    "rx_bytes": "rx_bytes",
    "tx_bytes": "tx_bytes",
    "rx_packets": "rx_packets",
    "tx_packets": "tx_packets",
    "rx_dropped": "rx_drops",
    "tx_dropped": "tx_drops",
}
ALWAYS_KERNEL: Mapping[str, str] = {"rx_errors": "rx_errors", "tx_errors": "tx_errors"}
PRIORITY: Mapping[str, str] = {
    "rx_pause": "rx_pause",
    "tx_pause": "tx_pause",
    "rx_pause_duration": "rx_pause_us",
    "tx_pause_duration": "tx_pause_us",
    "rx_buf_discard": "buffer_drops",
    "rx_packets": "priority_rx_packets",
    "tx_packets": "priority_tx_packets",
}
OF_PRIORITY = re.compile(r"(rx|tx)_prio([0-7])_([a-z_]+)\Z")
PRIORITY_OF_OTHERS: Sequence[tuple[re.Pattern[str], Mapping[str, str]]] = (
    (re.compile(r"(?P<way>rx|tx)_pfc_ena_frames_pri(?P<at>[0-7])\Z"), {"rx": "rx_pause", "tx": "tx_pause"}),
    (re.compile(r"pfc_pri(?P<at>[0-7])_(?P<way>rx|tx)_duration_us\Z"), {"rx": "rx_pause_us", "tx": "tx_pause_us"}),
    (
        re.compile(r"(?P<way>rx|tx)_packets_pri(?P<at>[0-7])\Z"),
        {"rx": "priority_rx_packets", "tx": "priority_tx_packets"},
    ),
)
"""Of bnxt_en."""
FEC: Mapping[str, str] = {"corrected_blocks": "fec_corrected", "uncorrectable_blocks": "fec_uncorrectable"}


class CounterTable:
    """Counters under construction: name → place → count."""

    def __init__(self) -> None:
        self.counters: dict[str, dict[str, int]] = {}

    def write(self, name: str, at: str, count: int | None) -> None:
        """Add a counter, unless it is None."""
        if count is not None:
            self.counters.setdefault(name, {})[at] = count

    def rows(self, rows: Rows, names: Mapping[str, str], at: str) -> None:
        """Add the counters of the rows with known names."""
        for row, name in names.items():
            if row in rows:
                self.write(name, at, rows[row])

    def known(self, rows: Rows, names: Mapping[str, str], at: str) -> None:
        """Add those that are not there yet: names of another driver for the same."""
        for row, name in names.items():
            if row in rows and at not in self.counters.get(name, {}):
                self.write(name, at, rows[row])


def counters(tree: Tree, cards: Sequence[Card], statistics: str, fec: str) -> Counters | Absent:
    """Collect the counters of the NICs from sysfs, the driver and ethtool."""
    table = CounterTable()
    driver, corrections = sections(statistics), sections(fec)
    for card in cards:
        kernel = _files(tree, f"{card.net}/statistics", (*KERNEL, *ALWAYS_KERNEL))
        queue = _files(tree, f"{card.port}/hw_counters", (*QUEUE, *QUEUE_OF_OTHERS))
        table.rows(queue, QUEUE, card.interface)
        table.known(queue, QUEUE_OF_OTHERS, card.interface)
        table.rows(kernel, ALWAYS_KERNEL, card.interface)
        table.write("carrier_changes", card.interface, whole(tree.text(f"{card.net}/carrier_changes")))
        if not card.pci:
            table.rows(kernel, KERNEL, card.interface)
        elif card.interface in driver:
            _driver(table, card.interface, counts(driver[card.interface]), kernel)
        table.rows(counts(corrections.get(card.interface, "")), FEC, card.interface)
    return table.counters or Absent("neither sysfs nor ethtool shows counters of any NIC")


COUNT = re.compile(r"^([^:\n]+):[ \t]*([0-9]{1,20})[ \t\r]*$", re.MULTILINE)


def counts(text: str) -> dict[str, int]:
    """Parse rows of `name: count`; the total comes first where there are counts by lane."""
    rows = reversed(COUNT.findall(plain(text)))  # of rows with the same name, the first one counts
    return {key: count for name, digits in rows if (key := name.strip()) and (count := int(digits)) < MOST}


def _files(tree: Tree, folder: str, names: Iterable[str]) -> dict[str, int]:
    """The counts in files of a folder."""
    shown = {name: tree.files[path] for name in names if (path := f"{folder}/{name}") in tree.files}
    return {name: count for name, text in shown.items() if (count := whole(text)) is not None}


def _driver(table: CounterTable, interface: str, rows: Rows, kernel: Rows) -> None:
    """Add the driver's counters, and for a virtual function the kernel's instead.

    They are not interchangeable: a NIC whose driver failed to answer once would seem to count backwards.
    """
    table.rows(rows, PORT, interface)
    table.known(rows, PORT_OF_OTHERS, interface)
    if not any(name.endswith("_phy") for name in rows):
        table.rows(kernel, KERNEL, interface)
    for name, count in rows.items():
        if "pri" in name and (known := _of_priority(name)):
            table.write(known[0], place(interface, known[1]), count)


@lru_cache(maxsize=1024)
def _of_priority(name: str) -> tuple[str, str] | None:
    """The counter that a driver's row is, and its priority."""
    for pattern, names in PRIORITY_OF_OTHERS:
        if found := pattern.match(name):
            return names[found["way"]], found["at"]
    match = OF_PRIORITY.match(name)
    known = PRIORITY.get(f"{match[1]}_{match[3]}") if match else None
    return (known, match[2]) if match and known else None


def bins(found: Mapping[str, Mapping[int, int]]) -> Counters | Absent:
    """Convert the histograms of symbol errors to counters."""
    table = CounterTable()
    for interface, histogram in found.items():
        for symbols, count in histogram.items():
            table.write("fec_bin", place(interface, symbols), count)
    return table.counters or Absent("no NIC shows its histogram of symbol errors")
