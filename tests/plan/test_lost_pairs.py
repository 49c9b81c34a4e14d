"""The number of disconnected pairs equals that of a list of each."""

from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import combinations_with_replacement, product

from hypothesis import given
from hypothesis import strategies as st

from netkit.plan.lost_pairs import lost_of, mutual, named_loss
from netkit.plan.model import ReachabilityLoss
from netkit.routing.address import AddressGroup, NicTables

NICS = st.builds(
    NicTables,
    host=st.sampled_from(["gpu2", "gpu10", "gpu1"]),
    interface=st.sampled_from(["rail0", "rail1"]),
    address=st.just(IPv4Address("10.0.0.1")),
    leaf=st.just("leaf01"),
    is_on_leaf=st.just((True,)),
    tables=st.just(()),
)
GROUPS = st.lists(st.builds(AddressGroup, st.lists(NICS, min_size=1, max_size=4).map(tuple)), max_size=7)


def listed(groups: Sequence[AddressGroup], wanted: Sequence[int], has: Sequence[int]) -> ReachabilityLoss:
    """Enumerate all pairs of addresses."""
    pairs, touched, rails = 0, set[int](), set[tuple[str, str]]()
    for one, other in combinations_with_replacement(range(len(groups)), 2):
        is_wanted, is_there = (rows[one] >> other & 1 and rows[other] >> one & 1 for rows in (wanted, has))
        ends = [
            (a, b)
            for a in range(len(groups[one].nics))
            for b in range(len(groups[other].nics))
            if one != other or a < b
        ]
        found = sum(groups[one].nics[a].host != groups[other].nics[b].host for a, b in ends)
        if is_wanted and not is_there and found:
            pairs += found
            touched |= {one, other}
            for near, far in product(groups[one].nics, groups[other].nics):
                rails.add((min(near.interface, far.interface), max(near.interface, far.interface)))
    nics = [nic for index in touched for nic in groups[index].nics]
    hosts = sorted({nic.host for nic in nics}, key=lambda name: int(name.removeprefix("gpu")))
    return ReachabilityLoss(
        pairs, tuple(hosts), tuple(sorted({one for pair in rails for one in pair})), 0, tuple(sorted(rails))
    )


def test_a_rail_on_which_a_host_loses_only_itself_is_not_named() -> None:
    def group(host: str, interface: str) -> AddressGroup:
        return AddressGroup((NicTables(host, interface, IPv4Address("10.0.0.1"), "leaf01", (True,), ("",), ()),))

    groups = (group("gpu1", "rail0"), group("gpu1", "rail1"), group("gpu2", "rail0"))
    found = named_loss(groups, (0b110, 0b001, 0b001))
    assert found == listed(groups, (0b111, 0b111, 0b111), (0b001, 0b110, 0b110))
    assert (found.pairs, found.rails) == (1, ("rail0",))


@given(st.data())
def test_the_count_equals_that_of_an_enumeration(data: st.DataObject) -> None:
    groups = data.draw(GROUPS)
    row = st.integers(0, (1 << len(groups)) - 1)
    wanted, has = (data.draw(st.lists(row, min_size=len(groups), max_size=len(groups))) for _ in range(2))
    assert named_loss(groups, lost_of(mutual(wanted), mutual(has))) == listed(groups, wanted, has)
