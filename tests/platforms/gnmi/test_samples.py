"""Samples of a stream: put together from pieces that come when they come."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from netkit.facts import Sample
from netkit.platforms.gnmi.path import path
from netkit.platforms.gnmi.transport_stream import Piece, Samples
from netkit.platforms.gnmi.update import Update
from netkit.platforms.view import Subject

PORT = "/interfaces/interface[name=Ethernet1/1]/state/counters/in-octets"
QUEUE = "/qos/interfaces/interface[interface-id=Ethernet1/1]/output/queues/queue[name=3]/state/transmit-pkts"


def samples(*pieces: tuple[float, str, int] | None) -> list[tuple[float, dict[str, list[int]]]]:
    """Return when samples were taken and what they count; None is a time in which nothing comes."""
    found: list[Sample] = []
    stop = threading.Event()
    coming = _pieces(pieces)

    def told(_: float) -> Piece | None:
        try:
            return next(coming)
        except StopIteration:
            stop.set()
            return None

    Samples(Subject("leaf01", platform="eos"), {}, found.append, 1.0).fill(told, stop, 60)
    return [(one.at_s, {name: list(places.values()) for name, places in one.counters.items()}) for one in found]


def _pieces(pieces: Sequence[tuple[float, str, int] | None]) -> Iterator[Piece | None]:
    for piece in pieces:
        yield None if piece is None else (piece[0], (Update(path(piece[1]), piece[2]),))


def test_pieces_that_come_together_are_one_sample() -> None:
    found = samples((100.0, PORT, 1), (100.1, QUEUE, 2), None, (101.0, PORT, 3), (101.1, QUEUE, 4), None)
    assert found == [
        (100.1, {"rx_bytes": [1], "queue_tx_packets": [2]}),
        (101.1, {"rx_bytes": [3], "queue_tx_packets": [4]}),
    ]


def test_a_late_piece_is_part_of_the_next_sample() -> None:
    found = samples((100.0, PORT, 1), None, (100.3, QUEUE, 2), None, (101.0, PORT, 3), None, (101.3, QUEUE, 4), None)
    assert found == [(100.0, {"rx_bytes": [1]}), (101.0, {"rx_bytes": [3], "queue_tx_packets": [2]})]


def test_what_did_not_change_stays_counted() -> None:
    found = samples((100.0, PORT, 1), (100.0, QUEUE, 2), None, (101.0, PORT, 3), None)
    assert found[1] == (101.0, {"rx_bytes": [3], "queue_tx_packets": [2]})


def test_a_server_that_never_pauses_is_cut_into_samples() -> None:
    found = samples(*((100 + index / 10, PORT, index) for index in range(25)))
    assert [at_s for at_s, _ in found] == pytest.approx([101.0, 102.1])


def test_nothing_that_counts_is_no_sample() -> None:
    assert samples((100.0, "/system/state/hostname", 1), None) == []
