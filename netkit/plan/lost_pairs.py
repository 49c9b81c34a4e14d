"""Which groups of addresses reach each other, as rows of bits, and which pairs of NICs a plan names as lost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from netkit.plan.model import ReachabilityLoss
from netkit.platforms.compare import natural
from netkit.routing.address import AddressGroup, NicTables

Rows = tuple[int, ...]
"""For each group the groups that it reaches, as bits."""


def named_loss(groups: Sequence[AddressGroup], lost: Rows) -> ReachabilityLoss:
    """How a plan names pairs of groups; each row has the other end's bit.

    NICs that lose each other in both families are one pair.
    """
    of_ipv6 = [group.nics[0].address.version == 6 for group in groups]
    is_only_ipv6 = all(is_own for is_own, row in zip(of_ipv6, lost, strict=True) if row)
    if any(of_ipv6) and any(lost):
        groups, lost = _once_each(groups, lost)
    hosts = [Counter(nic.host for nic in group.nics) for group in groups]
    rails = [{nic.interface for nic in group.nics} for group in groups]
    by_host: dict[str, int] = {}
    alone: dict[str, int] = {}
    by_rail: dict[str, int] = {}
    by_size: dict[int, int] = {}
    for index, own in enumerate(hosts):
        by_size[own.total()] = by_size.get(own.total(), 0) | 1 << index
        for rail in rails[index]:
            by_rail[rail] = by_rail.get(rail, 0) | 1 << index
        for host in own:
            by_host[host] = by_host.get(host, 0) | 1 << index
        if len(own) == 1:
            alone[host] = alone.get(host, 0) | 1 << index
    ends = 0
    known: dict[int, tuple[int, list[str]]] = {}
    touched: set[str] = set()
    rail_pairs: set[tuple[str, str]] = set()
    for index, (own, every) in enumerate(zip(hosts, lost, strict=True)):
        # A host reaches itself without the fabric.
        row = every if len(own) > 1 else every & ~alone[next(iter(own))]
        if not row:
            continue
        if row not in known:
            size = sum(size * (row & members).bit_count() for size, members in by_size.items())
            known[row] = size, [rail for rail, members in by_rail.items() if members & row]
        size, far = known[row]
        at_home = sum(count * hosts[other][host] for host, count in own.items() for other in _bits(row & by_host[host]))
        if found := own.total() * size - at_home:
            ends += found
            touched |= own.keys()
            rail_pairs |= {(min(pair), max(pair)) for pair in product(rails[index], far)}
    names = sorted(touched, key=lambda one: natural((one,)))
    on = sorted({rail for pair in rail_pairs for rail in pair})
    pairs = ends // 2
    is_only_ipv6 = is_only_ipv6 and pairs > 0
    return ReachabilityLoss(pairs, tuple(names), tuple(on), 0, tuple(sorted(rail_pairs)), is_only_ipv6=is_only_ipv6)


def _once_each(groups: Sequence[AddressGroup], lost: Rows) -> tuple[Sequence[AddressGroup], Rows]:
    """Groups that have each NIC once, whatever its addresses, and the pairs of them in which any of those are lost."""
    nics = {(nic.host, nic.interface): nic for group in groups for nic in group.nics}
    places = dict.fromkeys(nics, 0)
    for index, group in enumerate(groups):
        for nic in group.nics:
            places[nic.host, nic.interface] |= 1 << index
    found: dict[int, list[NicTables]] = {}
    for key, place in places.items():
        found.setdefault(place, []).append(nics[key])
    known: dict[int, int] = {0: 0}
    rows = []
    for place in found:
        row = 0
        for index in _bits(place):
            row |= lost[index]
        if row not in known:
            known[row] = sum(1 << number for number, other in enumerate(found) if row & other)
        rows.append(known[row])
    return [AddressGroup(tuple(members)) for members in found.values()], tuple(rows)


def lost_of(wanted: Rows, has: Rows) -> Rows:
    """The pairs of groups that should reach each other, and do not; both have pairs as rows of either end."""
    alike: dict[int, int] = {}
    lost = (one & ~other for one, other in zip(wanted, has, strict=True))
    return tuple(alike.setdefault(row, row) for row in lost)


def either(one: Rows, other: Rows) -> Rows:
    return tuple(map(int.__or__, one, other))


def renumbered(groups: Sequence[AddressGroup]) -> tuple[tuple[int, int], ...]:
    """Where hosts change their addresses: (distance, groups), the latter with the same NICs as that many groups before.

    An address of the other family is not another address. A bit stands for each group. With one distance for many
    groups, rows are shifted as a whole.
    """
    first: dict[tuple[str, str, int], int] = {}
    found: dict[int, int] = {}
    for index, group in enumerate(groups):
        for nic in group.nics:
            if distance := index - first.setdefault((nic.host, nic.interface, nic.address.version), index):
                found[distance] = found.get(distance, 0) | 1 << index
    return tuple(sorted(found.items()))


def at_any_address(rows: Sequence[int], alike: Iterable[tuple[int, int]]) -> Rows:
    """Which NICs reach each other at any of their addresses; those with several count in their first group only.

    `alike` is what `renumbered` found. Pairs reach each other in both directions.
    """
    shifts = tuple(alike)
    doubles = 0
    for _, members in shifts:
        doubles |= members
    known: dict[int, int] = {}
    found = list(mutual(rows))
    for index, row in enumerate(found):
        if row not in known:
            known[row] = row & ~doubles
            for distance, members in shifts:
                known[row] |= (row & members) >> distance
        found[index] = known[row]
    for distance, members in shifts:
        for index in _bits(members):
            found[index - distance] |= found[index]
    return tuple(0 if doubles >> index & 1 else row for index, row in enumerate(found))


def mutual(rows: Sequence[int]) -> Rows:
    """For each group those that it reaches and that reach it. Many groups have the same row."""
    alike: dict[int, int] = {}
    for index, row in enumerate(rows):
        alike[row] = alike.get(row, 0) | 1 << index
    members = [alike[row] for row in alike]
    # Columns of the distinct rows as text: Python turns a table of characters around faster than bits.
    digits = [format(row, f"0{len(rows)}b")[::-1] for row in alike]
    columns: dict[tuple[str, ...], int] = {}
    found = []
    for row, column in zip(rows, zip(*digits, strict=True), strict=True):
        if column not in columns:
            columns[column] = sum(mask for mask, digit in zip(members, column, strict=True) if digit == "1")
        found.append(row & columns[column])
    return tuple(found)


def _bits(row: int) -> Iterator[int]:
    while row:
        yield (row & -row).bit_length() - 1
        row &= row - 1
