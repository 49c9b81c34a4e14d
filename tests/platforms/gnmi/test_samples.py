"""Samples of a stream, assembled from updates that arrive at any time."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from netkit.facts import Sample
from netkit.platforms.gnmi.driver import Piece, Samples
from netkit.platforms.gnmi.message import Update, path
from netkit.platforms.view import ViewSubject

PORT = "/interfaces/interface[name=Ethernet1/1]/state/counters/in-octets"
QUEUE = "/qos/interfaces/interface[interface-id=Ethernet1/1]/output/queues/queue[name=3]/state/transmit-pkts"

OUT = PORT.replace("in-octets", "out-octets")


def samples(*pieces: tuple[float, str, int] | None) -> list[tuple[float, dict[str, list[int]]]]:
    """Times and counters of samples; None is an interval without updates."""
    found: list[Sample] = []
    stop = threading.Event()
    coming = _pieces(pieces)

    def reported(_: float) -> Piece | None:
        try:
            return next(coming)
        except StopIteration:
            stop.set()
            return None

    Samples(ViewSubject("leaf01", platform="eos"), {}, found.append, 1.0).fill(reported, stop, 60)
    return [(one.at_s, {name: list(places.values()) for name, places in one.counters.items()}) for one in found]


def _pieces(pieces: Sequence[tuple[float, str, int] | None]) -> Iterator[Piece | None]:
    for piece in pieces:
        yield None if piece is None else (piece[0], (Update(path(piece[1]), piece[2]),))


def test_updates_that_arrive_together_are_one_sample() -> None:
    found = samples((100.0, PORT, 1), (100.1, QUEUE, 2), None, (101.0, PORT, 3), (101.1, QUEUE, 4), None)
    assert found == [
        (100.1, {"rx_bytes": [1], "queue_tx_packets": [2]}),
        (101.1, {"rx_bytes": [3], "queue_tx_packets": [4]}),
    ]


def test_a_late_update_is_part_of_the_next_sample() -> None:
    found = samples((100.0, PORT, 1), None, (100.3, QUEUE, 2), None, (101.0, PORT, 3), None, (101.3, QUEUE, 4), None)
    assert found == [(100.0, {"rx_bytes": [1]}), (101.0, {"rx_bytes": [3], "queue_tx_packets": [2]})]


def test_values_omitted_as_unchanged_are_kept() -> None:
    other = PORT.replace("1/1", "1/2")
    found = samples((100.0, PORT, 1), (100.0, other, 2), None, (101.0, PORT, 3), None, (102.0, PORT, 4), None)
    assert [counters["rx_bytes"] for _, counters in found] == [[1, 2], [3], [4, 2]]


def test_what_is_no_longer_reported_is_absent_and_never_0() -> None:
    seen = rated((PORT, 0.0, 10), (QUEUE, 0.4, 3))
    assert [(at_s, [*rates]) for at_s, rates in seen][-1] == (9.0, ["rx_bytes"])
    assert {round(rate) for _, rates in seen for rate in rates.values()} == {100}


@pytest.mark.parametrize("phases", [(0.0, 0.4), (0.0, 0.8), (0.0, 0.33, 0.66), (0.0, 0.6, 0.9), (0.0, 0.25, 0.95)])
def test_rates_of_subscriptions_out_of_phase_are_correct(phases: tuple[float, ...]) -> None:
    seen = rated(*((path, phase, 10) for path, phase in zip((PORT, QUEUE, OUT), phases, strict=False)))
    assert [len(one) for _, one in seen[4:-1]] == [len(phases)] * len(seen[4:-1])
    assert {round(rate) for _, one in seen[:-1] for rate in one.values()} == {100}


def rated(*subscriptions: tuple[str, float, int]) -> list[tuple[float, dict[str, float]]]:
    """The rates of paths that count 100 a second, each reported this many times from a fraction of a second on."""
    reported = sorted((index + phase, path) for path, phase, times in subscriptions for index in range(times))
    pieces: list[tuple[float, str, int] | None] = []
    for (at_s, place), (next_s, _) in zip(reported, [*reported[1:], (99.0, "")], strict=True):
        pieces += [(1000 + at_s, place, round(at_s * 100)), *([None] if next_s - at_s > 0.2 else [])]
    before: dict[str, tuple[float, int]] = {}
    rates: list[tuple[float, dict[str, float]]] = []
    for at_s, counters in samples(*pieces):
        now = {name: (at_s, counts[0]) for name, counts in counters.items()}
        one = {
            name: (count - before[name][1]) / (at_s - before[name][0])
            for name, (_, count) in now.items()
            if name in before
        }
        rates.append((at_s - 1000, one))
        before |= now
    return rates


def test_a_clock_that_is_set_back_does_not_stop_samples() -> None:
    pieces = [(100.0, PORT, 1), None, (101.0, PORT, 2), None, (50.0, PORT, 3), None, (51.0, PORT, 4), None]
    assert samples(*pieces) == [(at_s, {"rx_bytes": [n]}) for n, at_s in enumerate((100.0, 101.0, 50.0, 51.0), 1)]


def test_a_server_that_never_pauses_is_split_into_samples() -> None:
    found = samples(*((100 + index / 10, PORT, index) for index in range(25)))
    assert [at_s for at_s, _ in found] == pytest.approx([101.0, 102.1])


def test_without_counters_there_is_no_sample() -> None:
    assert samples((100.0, "/system/state/hostname", 1), None) == []
