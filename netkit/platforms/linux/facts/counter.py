"""Counters of NICs by the names of facts: where each comes from is data.

Bytes and packets are those of the port, RDMA's among them, which the kernel's own counters do not see; a virtual
function has no port, and only the kernel's. The pauses of a priority are there only while PFC is on for it.
"""

import re
from collections.abc import Mapping, Sequence

from netkit.facts import Absent, Counters
from netkit.facts.counter import place
from netkit.platforms.linux.facts.reading import Card, Tree, pairs, sections, whole

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
FEC: Mapping[str, str] = {"corrected_blocks": "fec_corrected", "uncorrectable_blocks": "fec_uncorrectable"}


class Book:
    """Counters as they are written down: name → place → count."""

    def __init__(self) -> None:
        self.counters: dict[str, dict[str, int]] = {}

    def write(self, name: str, at: str, count: int | None) -> None:
        """Write one down, if it was told."""
        if count is not None:
            self.counters.setdefault(name, {})[at] = count

    def rows(self, rows: Rows, names: Mapping[str, str], at: str) -> None:
        """Write down what is known of some rows."""
        for told, name in names.items():
            self.write(name, at, rows.get(told))


def counters(tree: Tree, cards: Sequence[Card], statistics: str, fec: str) -> Counters | Absent:
    """Return the counters of the NICs."""
    book = Book()
    driver, corrections = sections(statistics), sections(fec)
    for card in cards:
        _files(book, tree, card)
        if card.interface in driver:
            _driver(book, card.interface, counts(driver[card.interface]), _below(tree, f"{card.net}/statistics"))
        book.rows(counts(corrections.get(card.interface, "")), FEC, card.interface)
    return book.counters or Absent("neither sysfs nor ethtool shows counters of any NIC")


def counts(text: str) -> dict[str, int]:
    """Return rows of `name: count`, the total where there is one for each lane too."""
    found: dict[str, int] = {}
    for name, value in pairs(text):
        count = whole(value)
        if count is not None:
            found.setdefault(name, count)
    return found


def _below(tree: Tree, folder: str) -> dict[str, int]:
    found = {name: whole(text) for name, text in tree.below(folder)}
    return {name: count for name, count in found.items() if count is not None}


def _files(book: Book, tree: Tree, card: Card) -> None:
    """Write down what only files tell."""
    book.rows(_below(tree, f"{card.port}/hw_counters"), QUEUE, card.interface)
    book.rows(_below(tree, f"{card.net}/statistics"), ALWAYS_KERNEL, card.interface)
    book.write("carrier_changes", card.interface, whole(tree.text(f"{card.net}/carrier_changes")))


def _driver(book: Book, interface: str, rows: Rows, kernel: Rows) -> None:
    """Write down what the driver tells, and for a virtual function what the kernel tells instead.

    Never one for the other: a NIC whose driver did not answer this once would seem to count backwards.
    """
    book.rows(rows, PORT, interface)
    if not any(name.endswith("_phy") for name in rows):
        book.rows(kernel, KERNEL, interface)
    for name, count in rows.items():
        match = OF_PRIORITY.match(name)
        known = PRIORITY.get(f"{match[1]}_{match[3]}") if match else None
        if match and known:
            book.write(known, place(interface, match[2]), count)


def bins(found: Mapping[str, Mapping[int, int]]) -> Counters | Absent:
    """Return the histograms of wrong symbols as counters."""
    book = Book()
    for interface, histogram in found.items():
        for symbols, count in histogram.items():
            book.write("fec_bin", place(interface, symbols), count)
    return book.counters or Absent("no NIC tells its histogram of wrong symbols")
