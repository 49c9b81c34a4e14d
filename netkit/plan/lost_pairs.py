"""Count the address pairs that a change disconnects without listing them: renumbering hosts disconnects millions."""

from collections import Counter
from collections.abc import Iterator, Sequence

from netkit.plan.model import ReachabilityLoss
from netkit.platforms.compare import natural
from netkit.routing.address import AddressGroup

Rows = Sequence[int]
"""For each group the groups that it reaches, as bits."""


def lost_between(groups: Sequence[AddressGroup], wanted: Rows, has: Rows) -> ReachabilityLoss:
    """Return the addresses behind groups that should reach each other in both directions, and do not."""
    lost = [one & ~other for one, other in zip(_mutual(wanted), _mutual(has), strict=True)]
    hosts = [Counter(nic.host for nic in group.nics) for group in groups]
    alone: dict[str, int] = {}
    by_host: dict[str, int] = {}
    by_size: dict[int, int] = {}
    for index, own in enumerate(hosts):
        by_size[own.total()] = by_size.get(own.total(), 0) | 1 << index
        for host in own:
            by_host[host] = by_host.get(host, 0) | 1 << index
            if len(own) == 1:
                alone[host] = alone.get(host, 0) | 1 << index
    pairs = 0
    touched = []
    for index, own in enumerate(hosts):
        # A host reaches itself without the fabric.
        row = lost[index] & ~(alone[next(iter(own))] if len(own) == 1 else 0)
        if row:
            touched.append(index)
        if row >> index & 1:
            pairs += (own.total() ** 2 - sum(count**2 for count in own.values())) // 2
        later = row >> (index + 1) << (index + 1)
        pairs += own.total() * sum(size * (later & members).bit_count() for size, members in by_size.items())
        pairs -= sum(
            count * hosts[other][host] for host, count in own.items() for other in _bits(later & by_host[host])
        )
    nics = [nic for index in touched for nic in groups[index].nics]
    names, rails = {nic.host for nic in nics}, {nic.interface for nic in nics}
    return ReachabilityLoss(pairs, tuple(sorted(names, key=lambda one: natural((one,)))), tuple(sorted(rails)))


def _mutual(rows: Rows) -> list[int]:
    """Return for each group those that it reaches and that reach it. Many groups have the same row."""
    alike: dict[int, int] = {}
    for index, row in enumerate(rows):
        alike[row] = alike.get(row, 0) | 1 << index
    columns = [0] * len(rows)
    for row, members in alike.items():
        for other in _bits(row):
            columns[other] |= members
    return [row & column for row, column in zip(rows, columns, strict=True)]


def _bits(row: int) -> Iterator[int]:
    while row:
        yield (row & -row).bit_length() - 1
        row &= row - 1
