"""A light mesh of RDMA latency: from one NIC of each host along its rail and across to others, as packets are probed.

Unlike a ping it needs both ends, so that it is measured in rounds, in each of which no host takes part twice. Hosts
take turns with their NICs: the first one measures from its first rail, the next one from its second.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netkit.design import Fabric, Host, Nic
from netkit.observe.probing import probe_pairs
from netkit.observe.trial_plan import MOST_SHOWN, TrialPlan, transfers
from netkit.platforms.linux.acceptance.command import Side

TOOL = "ib_read_lat"
LIMIT_S = 2
Pair = tuple[Side, Side]


def rdma_mesh(fabric: Fabric, hosts: Sequence[Host], programs: Mapping[str, frozenset[str]]) -> TrialPlan:
    """Return the rounds of those hosts that have the tool, and which have not."""
    able = {host.name for host in hosts if TOOL in programs.get(host.name, frozenset())}
    lacking = [host.name for host in hosts if host.name not in able]
    more = f" and {len(lacking) - MOST_SHOWN} more" if len(lacking) > MOST_SHOWN else ""
    absent = (f"no {TOOL} on {', '.join(lacking[:MOST_SHOWN])}{more}",) if lacking else ()
    owners = {nic.address: host.name for host in fabric.hosts for nic in host.nics}
    ends = (end for number, host in enumerate(hosts) for end in _of_host(fabric, host, number))
    pairs = ((_side(owners, near), _side(owners, far)) for near, far in ends)
    among = (pair for pair in pairs if {pair[0].host, pair[1].host} <= able)
    rounds = (transfers(fabric, TOOL, _title(one), one, LIMIT_S) for one in _scheduled(among))
    return TrialPlan(tuple(rounds), absent)


def _title(pairs: Sequence[Pair]) -> str:
    return f"{TOOL} between {len(pairs)} pairs of hosts"


def _of_host(fabric: Fabric, host: Host, number: int) -> Iterator[tuple[Nic, Nic]]:
    """Yield what a host measures: from the one of its NICs whose turn it is."""
    if host.nics:
        turn = host.nics[number % len(host.nics)]
        yield from (pair for pair in probe_pairs(fabric, host) if pair[0] is turn)


def _side(owners: Mapping[str, str], nic: Nic) -> Side:
    return Side(owners[nic.address], nic.interface, nic.rdma, nic.address)


def _scheduled(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Return pairs in rounds, each in the first one in which both its hosts are free."""
    rounds: list[list[Pair]] = []
    busy: list[set[str]] = []
    for near, far in pairs:
        both = {near.host, far.host}
        number = next((number for number, taken in enumerate(busy) if not taken & both), len(rounds))
        if number == len(rounds):
            rounds.append([])
            busy.append(set())
        rounds[number].append((near, far))
        busy[number] |= both
    return rounds
