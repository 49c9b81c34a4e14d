"""The CNP sums of a rail, shared by checks and the gate."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from netkit.judge.delta import MISSING, CounterState, Delta
from netkit.judge.parity import DeltaOf, RailSum, is_read, rail_sum

COUNTS = st.binary(max_size=8 * 16)
"""Four counts of four bytes a NIC; drawn in one piece, since a composite strategy is slow on a busy machine."""


def nic(sent: int, handled: int, ignored: int = 0, marked: int = 0) -> DeltaOf:
    counts = {"cnp_sent": sent, "cnp_handled": handled, "cnp_ignored": ignored, "ecn_received": marked}
    return lambda name: Delta(CounterState.DELTA, counts[name], 1.0)


@given(COUNTS)
def test_a_rail_is_the_sum_of_its_nics(drawn: bytes) -> None:
    rows = list(struct.iter_unpack("4I", drawn[: len(drawn) // 16 * 16]))
    assert rail_sum(nic(*row) for row in rows) == RailSum(*(sum(row[index] for row in rows) for index in range(4)))


def test_ignored_cnps_were_received_and_an_excess_is_not_a_loss() -> None:
    assert RailSum(1000, 600, 150, 0).loss_percent == 25.0
    assert RailSum(1000, 1100, 0, 0).loss_percent == -10.0
    assert RailSum(0, 0, 0, 0).loss_percent == 0.0


def test_either_side_may_be_sufficient() -> None:
    rows = ((100, 0, 0, 0), (0, 60, 40, 0), (9, 9, 0, 5000))
    assert [RailSum(*row).is_enough for row in rows] == [True, True, False]


def test_a_nic_that_lacks_a_side_is_not_used() -> None:
    assert is_read(nic(0, 0))
    assert not is_read(lambda name: MISSING if name == "cnp_handled" else Delta(CounterState.DELTA))
    assert not is_read(lambda _name: Delta(CounterState.RESET))
