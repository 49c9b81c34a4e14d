"""The light mesh of RDMA latency measurements: which hosts measure with each other, and when."""

import subprocess
from itertools import chain

from netkit.facts.snapshot import Trial
from netkit.observe.measure import Bench
from netkit.observe.probing import probe_pairs
from netkit.observe.trial_plan import TOOL, rdma_mesh
from netkit.platforms.linux.acceptance import results
from netkit.platforms.view import Reply
from tests.judge.scenes import fabric
from tests.observe.test_measure import ALL, BUILT, NAMES_OF_HOSTS, Answering

LATENCY = """                    RDMA_Read Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
 2       5000          3.43           9.20         3.50               3.52
"""


class Measuring(Answering):
    """A host that answers as ib_read_lat does."""

    def _reply(self, command: str) -> Reply:
        reported = super()._reply(command)
        return reported if not reported.failure else Reply(reported.text + LATENCY)


def test_every_host_measures_and_at_most_once_per_round() -> None:
    plan = rdma_mesh(BUILT, BUILT.hosts, ALL)
    for one in plan.rounds:
        assert set(one.senders) & set(one.receivers) == set()
    senders = [name for one in plan.rounds for name in one.senders]
    assert (set(senders), plan.absent) == (set(NAMES_OF_HOSTS), ())
    assert len(senders) == sum(len(probe_pairs(BUILT, host)) for host in BUILT.hosts) // len(BUILT.rails)


def test_hosts_alternate_their_nics() -> None:
    with Bench(NAMES_OF_HOSTS, Measuring) as bench:
        used = {trial.ends[0]: trial.nic for trial in _measured(bench)}
    turns = [host.nics[number % 2] for number, host in enumerate(BUILT.hosts)]
    assert used == {nic.address: nic.rdma for nic in turns}


def test_results_can_be_parsed() -> None:
    with Bench(NAMES_OF_HOSTS, Measuring) as bench:
        found = _measured(bench)
    assert {(trial.test, trial.failure) for trial in found} == {(TOOL, "")}
    assert {row.typical_us for trial in found for row in trial.transfers} == {3.5}


def _measured(bench: Bench) -> tuple[Trial, ...]:
    found = results(bench.measure(rdma_mesh(BUILT, BUILT.hosts, ALL).rounds))
    assert isinstance(found, tuple)
    return found


def test_hosts_without_the_tool_are_named_and_left_out() -> None:
    some = {name: ALL[name] for name in NAMES_OF_HOSTS[:2]}
    plan = rdma_mesh(BUILT, BUILT.hosts, some)
    assert plan.absent == ("no ib_read_lat on gpu03, gpu04, gpu05, gpu06 and 2 more",)
    assert set(chain.from_iterable((*one.senders, *one.receivers) for one in plan.rounds)) == set(NAMES_OF_HOSTS[:2])
    assert rdma_mesh(BUILT, BUILT.hosts, {}).rounds == ()


def test_isolated_rails_are_not_measured_across() -> None:
    apart = fabric(cross_rail="blocked", units=[{"unit": "1-2", "hosts": 4}])
    rails = {nic.address: nic.rail for host in apart.hosts for nic in host.nics}
    with Bench(NAMES_OF_HOSTS, Measuring) as bench:
        found = results(bench.measure(rdma_mesh(apart, apart.hosts, ALL).rounds))
    assert isinstance(found, tuple)
    assert all(rails[trial.ends[0]] == rails[trial.ends[1]] for trial in found)


def test_every_command_is_valid_and_ends_by_itself() -> None:
    plan = rdma_mesh(BUILT, BUILT.hosts, ALL)
    for command in chain.from_iterable((*one.senders.values(), *one.receivers.values()) for one in plan.rounds):
        assert "timeout " in command
        subprocess.run(["sh", "-n", "-c", command], check=True)
