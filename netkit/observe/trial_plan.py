"""Schedule of acceptance runs in rounds, in each of which a NIC takes part at most once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.design import Fabric, Host, Nic
from netkit.observe.probing import probe_pairs
from netkit.platforms.linux import acceptance
from netkit.platforms.linux.acceptance import TrialEnd, nccl_tests, perftest
from netkit.platforms.linux.view_nic import nccl_settings, nearest_gpu
from netkit.render.job import COUNTS

TOOLS = tuple(acceptance.PROGRAMS)
MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class TrialRound:
    """Commands that hosts run at the same time."""

    tool: str
    title: str
    senders: Mapping[str, str]
    """Host → command that prints the results."""
    receivers: Mapping[str, str]
    seconds: int
    """Time limit."""


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """The rounds to run, and what is left out."""

    rounds: tuple[TrialRound, ...]
    absent: tuple[str, ...]
    """Why tools, or hosts for a tool, are left out."""

    @property
    def seconds(self) -> int:
        """Time limit of all rounds."""
        return sum(one.seconds for one in self.rounds)


def trial_plan(
    fabric: Fabric,
    hosts: Sequence[Host],
    programs: Mapping[str, frozenset[str]],
    tools: Sequence[str],
    seconds: int,
    *,
    is_cuda: bool = False,
) -> TrialPlan:
    """Plan runs of the tools on the hosts that have them; RDMA between memory of hosts, or of GPUs."""
    rounds: list[TrialRound] = []
    absent: list[str] = []
    for tool in tools:
        wanted = (*acceptance.PROGRAMS[tool], *((acceptance.CUDA,) if is_cuda and tool == perftest.TOOL else ()))
        able = [host for host in hosts if set(wanted) <= programs.get(host.name, frozenset())]
        lacking = [host.name for host in hosts if host not in able]
        needed = " and ".join(wanted)
        if len(able) < 2:
            absent.append(f"{tool}: {needed} on fewer than two hosts")
            continue
        if lacking:
            absent.append(f"{tool}: no {needed} on {', '.join(lacking)}")
        rounds += _rounds(fabric, able, tool, seconds, is_cuda=is_cuda)
    return TrialPlan(tuple(rounds), tuple(absent))


def _rounds(fabric: Fabric, hosts: Sequence[Host], tool: str, seconds: int, *, is_cuda: bool) -> Iterator[TrialRound]:
    if tool == nccl_tests.TOOL:
        names, gpus = [host.name for host in hosts], min(len(host.nics) for host in hosts)
        settings = [(one.key, one.value) for one in nccl_settings(fabric, hosts[0])] + [("NCCL_ALGO", "Ring")]
        for count in sorted({count for count in (*COUNTS, len(names)) if count <= len(names)}):
            run = acceptance.collective(names[:count], gpus, settings, "all_reduce_perf")
            title = f"all_reduce_perf over {count} hosts"
            yield TrialRound(nccl_tests.TOOL, title, {names[0]: run}, {}, acceptance.COLLECTIVE_S)
        return
    for rail in fabric.rails:
        for turn in (0, 1):
            for pairs in _pairs(hosts, rail.number, turn, is_cuda=is_cuda):
                if tool == perftest.IPERF3:
                    yield from () if turn else (_streams(fabric, rail.number, pairs, seconds),)
                else:
                    tests = acceptance.TESTS[: 2 - turn]  # a second partner shows which end of a slow pair is slow
                    titles = ((test, f"{test} along rail {rail.number}: {_listed(pairs)}") for test in tests)
                    yield from (transfers(fabric, test, title, pairs, seconds) for test, title in titles)


def _pairs(
    hosts: Sequence[Host], rail: int, turn: int, *, is_cuda: bool
) -> Iterator[tuple[tuple[TrialEnd, TrialEnd], ...]]:
    """Yield pairs of NICs of a rail, as far apart as possible; an odd one has a separate round.

    The second turn gives each NIC another partner; two hosts have none.
    """
    sides = [
        TrialEnd(host.name, nic.interface, nic.rdma, nic.address, nearest_gpu(host, nic.rail) if is_cuda else None)
        for host in hosts
        for nic in host.nics
        if nic.rail == rail
    ]
    half = len(sides) // 2
    if half > turn:
        far = sides[half : 2 * half]
        yield tuple(zip(sides[:half], (*far[turn:], *far[:turn]), strict=True))
    if half and len(sides) % 2:
        yield ((sides[-1], sides[turn]),)


def transfers(
    fabric: Fabric, test: str, title: str, pairs: Sequence[tuple[TrialEnd, TrialEnd]], seconds: int
) -> TrialRound:
    """Build a round of perftest between pairs that share no host."""
    tos = fabric.lossless.tos
    return TrialRound(
        perftest.TOOL,
        title,
        {near.host: acceptance.rdma_send(test, near, far, seconds, tos) for near, far in pairs},
        {far.host: acceptance.rdma_receive(test, far, seconds, tos) for _, far in pairs},
        seconds + acceptance.SLACK_S,
    )


def _streams(fabric: Fabric, rail: int, pairs: Sequence[tuple[TrialEnd, TrialEnd]], seconds: int) -> TrialRound:
    dscps = (fabric.lossless.data_dscp, 0)
    return TrialRound(
        perftest.IPERF3,
        f"iperf3 along rail {rail}, lossless and best effort together: {_listed(pairs)}",
        {near.host: acceptance.tcp_send(near, far, seconds, dscps) for near, far in pairs},
        {far.host: acceptance.tcp_receive(far, seconds, len(dscps)) for _, far in pairs},
        seconds + acceptance.SLACK_S,
    )


def _listed(pairs: Sequence[tuple[TrialEnd, TrialEnd]]) -> str:
    shown = ", ".join(f"{near.host} → {far.host}" for near, far in pairs[:MOST_SHOWN])
    return shown if len(pairs) <= MOST_SHOWN else f"{shown} and {len(pairs) - MOST_SHOWN} pairs more at once"


TOOL = "ib_read_lat"
LIMIT_S = 2
Pair = tuple[TrialEnd, TrialEnd]


def rdma_mesh(fabric: Fabric, hosts: Sequence[Host], programs: Mapping[str, frozenset[str]]) -> TrialPlan:
    """Plan RDMA between the hosts that have the tool; list those that have not."""
    able = {host.name for host in hosts if TOOL in programs.get(host.name, frozenset())}
    lacking = [host.name for host in hosts if host.name not in able]
    more = f" and {len(lacking) - MOST_SHOWN} more" if len(lacking) > MOST_SHOWN else ""
    absent = (f"no {TOOL} on {', '.join(lacking[:MOST_SHOWN])}{more}",) if lacking else ()
    owners = {nic.address: host.name for host in fabric.hosts for nic in host.nics}
    pairs: list[Pair] = []
    for number, host in enumerate(hosts):
        if not host.nics:
            continue
        turn = host.nics[number % len(host.nics)]  # each host measures from one of its NICs, in rotation
        ends = (pair for pair in probe_pairs(fabric, host) if pair[0] is turn)
        pairs += ((_side(owners, near), _side(owners, far)) for near, far in ends)
    among = (pair for pair in pairs if {pair[0].host, pair[1].host} <= able)
    titled = ((f"{TOOL} between {len(one)} pairs of hosts", one) for one in _scheduled(among))
    return TrialPlan(tuple(transfers(fabric, TOOL, title, one, LIMIT_S) for title, one in titled), absent)


def _side(owners: Mapping[str, str], nic: Nic) -> TrialEnd:
    return TrialEnd(owners[nic.address], nic.interface, nic.rdma, nic.address)


def _scheduled(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Assign each pair to the first round in which both its hosts are free."""
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
