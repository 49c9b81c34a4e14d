"""Slow NICs are identified from collectives and transfers: the right ones, no others, and never from noise."""

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design import Fabric, Host, Nic
from netkit.facts import Snapshot
from netkit.facts.snapshot import Collective, Transfer, Trial
from netkit.intent.model import Thresholds
from netkit.judge import CheckContext
from tests.checks.judging import said, skipped
from tests.judge.scenes import fabric
from tests.lanes import examples

CHECK = "acceptance.stragglers"
BUILT = fabric(units=[{"unit": "1-2", "hosts": 4}])
NICS = tuple(nic.address for host in BUILT.hosts for nic in host.nics)
GIB = 2**30
SLOW = 0.5


def judged(trials: Iterable[Trial], built: Fabric = BUILT) -> CheckContext:
    found = Snapshot(built.name, 1.0, {}, trials=tuple(trials))
    return CheckContext(built, found, Thresholds(), names=frozenset())


class Bed:
    """A fabric whose slow NICs halve the bandwidth of each run they take part in."""

    def __init__(self, built: Fabric, slow: Collection[str] = (), seed: int = 1, noise: float = 0.02) -> None:
        self._built, self._slow, self._noise = built, slow, noise
        self._dice = random.Random(seed)  # noqa: S311 - noise, not a secret

    def _part(self, nics: Iterable[str]) -> float:
        part = 0.98 - self._dice.uniform(0, self._noise)
        return part * SLOW if set(nics) & set(self._slow) else part

    def collective(self, hosts: Sequence[Host], rail: int | None = None) -> Trial:
        nics = [nic for host in hosts for nic in host.nics if rail in {None, nic.rail}]
        wide = len(hosts[0].nics) if rail is None else 1
        row = Collective(8 * GIB, round(50 * wide * self._part(nic.address for nic in nics), 2))
        return Trial(
            tool="nccl-tests",
            test="all_reduce_perf",
            ends=tuple(host.name for host in hosts),
            ranks=wide * len(hosts),
            nic="" if rail is None else nics[0].rdma,
            collectives=(row,),
        )

    def transfer(self, near: Nic, far: Nic) -> Trial:
        row = Transfer(65536, 400 * min(0.99, 0.01 + self._part((near.address, far.address))))
        return Trial(tool="perftest", test="ib_write_bw", ends=(near.address, far.address), transfers=(row,))

    def collectives(self) -> Iterator[Trial]:
        """The steps of a job: few and all hosts, halves of them on each rail, and pairs across units."""
        hosts = self._built.hosts
        yield from (self.collective(hosts[:count]) for count in {2, 8, len(hosts)} if count <= len(hosts))
        for bit in range((len(hosts) - 1).bit_length()):
            for side in (0, 1):
                half = [host for place, host in enumerate(hosts) if place >> bit & 1 == side]
                if len(half) > 1:
                    yield from (self.collective(half, rail.number) for rail in self._built.rails)
        yield from (self.collective(pair) for pair in pairs(hosts))

    def transfers(self) -> Iterator[Trial]:
        """The transfers of an acceptance run: every NIC with two others on its rail."""
        for rail in self._built.rails:
            for near, far in pairs(self._built.hosts):
                yield self.transfer(near.nics[rail.number], far.nics[rail.number])


def pairs(hosts: Sequence[Host]) -> Iterator[tuple[Host, Host]]:
    half = len(hosts) // 2
    yield from zip(hosts[:half], hosts[half : 2 * half], strict=True)
    if half > 1:
        yield from zip(hosts[:half], (*hosts[half + 1 : 2 * half], hosts[half]), strict=True)
    if len(hosts) % 2:
        yield from ((hosts[-1], hosts[0]), (hosts[-1], hosts[1]))


def named(context: CheckContext) -> set[str]:
    """The NICs that findings name as slow."""
    hosts = {host.name: host for host in context.fabric.hosts}
    found: set[str] = set()
    for verdict, device, place, text in said(context, CHECK):
        assert verdict == "fail", text
        if "one or more of" not in text:
            nics = [nic for nic in hosts[device].nics if place in {"", nic.interface}]
            found |= {nic.address for nic in nics}
    return found


def suspected(context: CheckContext) -> set[str]:
    """The NICs that findings list as possibly slow."""
    texts = [text for _, _, _, text in said(context, CHECK) if "one or more of" in text]
    hidden = {(device, place) for device, place, _ in skipped(context, CHECK)}
    return {
        nic.address
        for host in context.fabric.hosts
        for nic in host.nics
        if (host.name, nic.interface) in hidden or any(f"{host.name}:{nic.interface} " in text for text in texts)
    }


@pytest.mark.parametrize("address", NICS)
def test_one_slow_nic_is_named_and_no_other(address: str) -> None:
    bed = Bed(BUILT, {address})
    for trials in (bed.collectives(), bed.transfers()):
        context = judged(trials)
        assert named(context) == {address}
        assert suspected(context) == set()


def test_a_finding_names_node_rail_nic_leaf_and_port() -> None:
    nic = BUILT.hosts[5].nics[1]
    ((verdict, device, place, text),) = said(judged(Bed(BUILT, {nic.address}, noise=0).collectives()), CHECK)
    assert (verdict, device, place) == ("fail", "gpu06", "rail1")
    assert text == (
        "gpu06:rail1 (rail 1, mlx5_3) is slow: 49 % of line rate at best in 6 runs with it, 98 % without; "
        f"its link ends at {nic.leaf} {nic.leaf_port}"
    )


@pytest.mark.parametrize("both", list(combinations(NICS, 2)), ids="-".join)
def test_two_slow_nics_are_named_or_in_a_list_of_candidates(both: tuple[str, str]) -> None:
    bed = Bed(BUILT, both)
    for trials in (bed.collectives(), bed.transfers()):
        context = judged(trials)
        assert named(context) <= set(both)
        assert named(context) | suspected(context) >= set(both)


@pytest.mark.parametrize("both", list(combinations(NICS, 2)), ids="-".join)
def test_collectives_and_transfers_together_identify_two(both: tuple[str, str]) -> None:
    bed = Bed(BUILT, both)
    assert named(judged([*bed.collectives(), *bed.transfers()])) == set(both)


@given(
    st.integers(2, 9).flatmap(lambda hosts: st.tuples(st.just(hosts), st.sets(st.integers(0, hosts - 1), max_size=3))),
    st.integers(0, 1),
    st.integers(0, 1000),
)
@settings(max_examples=examples(60), deadline=None)
def test_slow_nics_of_a_rail_are_never_confused_and_never_missed(
    sizes: tuple[int, set[int]], rail: int, seed: int
) -> None:
    hosts, which = sizes
    built = fabric(ceilings={"units": 4, "hosts_per_unit": 16, "spines": 4}, units=[{"unit": 1, "hosts": hosts}])
    slow = {built.hosts[number].nics[rail].address for number in which}
    bed = Bed(built, slow, seed, noise=0.04)
    # Of an odd number of hosts the last sends to two that otherwise only send: no fast run clears their receive side.
    is_receiving_seen = not (hosts % 2 and hosts - 1 in which)
    for trials, is_settled in ((bed.collectives(), True), (bed.transfers(), is_receiving_seen)):
        context = judged(trials, built)
        assert named(context) <= slow
        assert named(context) | suspected(context) >= slow
        if len(slow) < 2 and hosts > 3 and is_settled:
            assert named(context) == slow
            assert suspected(context) == set()


def test_a_nic_with_slow_receive_is_not_cleared_by_its_send_results() -> None:
    bed, (first, *others) = Bed(BUILT, noise=0), [host.nics[0] for host in BUILT.hosts]
    runs = [bed.transfer(first, far) for far in others[:2]]
    slow = [replace(bed.transfer(far, first), transfers=(Transfer(65536, 160),)) for far in others[:2]]
    runs += [bed.transfer(others[0], others[1]), bed.transfer(others[1], others[2])]
    assert named(judged([*runs, *slow])) == {first.address}


def test_two_hosts_that_are_slow_only_with_each_other_have_a_slow_path() -> None:
    bed, near, far = Bed(BUILT, noise=0), BUILT.hosts[1].nics[0], BUILT.hosts[5].nics[0]
    slow = Trial(
        tool="perftest", test="ib_write_bw", ends=(near.address, far.address), transfers=(Transfer(65536, 260),)
    )
    runs = [run for run in bed.transfers() if run.ends != slow.ends]
    text = (
        f"{near.address} and {far.address}: 65 % of line rate with each other, and each is fast with others: "
        f"the path between {near.leaf} and {far.leaf}"
    )
    assert said(judged([*runs, slow]), CHECK) == [("warn", "", "", text)]


def test_a_run_that_fails_counts_as_slow() -> None:
    bed, nic = Bed(BUILT), BUILT.hosts[3].nics[0]
    runs = [
        replace(run, failure="it ended before its last line", collectives=()) if is_used(run, nic) else run
        for run in bed.collectives()
    ]
    assert named(judged(runs)) == {nic.address}


def is_used(run: Trial, nic: Nic) -> bool:
    return "gpu04" in run.ends and run.nic in {"", nic.rdma}


def test_hosts_outside_the_design_are_ignored() -> None:
    strange = Trial(tool="perftest", test="ib_write_bw", ends=("pod-1", "pod-2"), transfers=(Transfer(65536, 100),))
    few = replace(Bed(BUILT).collective(BUILT.hosts[:2]), ranks=2, collectives=(Collective(8 * GIB, 20.0),))
    assert said(judged([strange, few]), CHECK) == []


@pytest.mark.parametrize("seed", range(20))
def test_noise_of_a_few_percent_names_nothing(seed: int) -> None:
    bed = Bed(BUILT, seed=seed, noise=0.06)
    assert said(judged(bed.collectives()), CHECK) == []


def test_a_host_that_is_slow_on_every_rail_is_one_finding() -> None:
    host = BUILT.hosts[2]
    found = said(judged(Bed(BUILT, {nic.address for nic in host.nics}, noise=0).collectives()), CHECK)
    text = "all 2 rail NICs of gpu03 are slow: 49 % of line rate at best in 9 runs with it, 98 % without"
    assert found == [("fail", "gpu03", "", text)]
