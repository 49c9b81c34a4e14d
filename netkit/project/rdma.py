"""`netkit check --rdma`: RDMA latency between hosts, measured before facts are collected."""

import time
from collections.abc import Callable, Iterator, Sequence

from netkit.design import Host
from netkit.errors import Problem, UsageError
from netkit.facts import Absent
from netkit.facts.snapshot import Trial
from netkit.observe.measure import Bench
from netkit.observe.trial_plan import LIMIT_S, MOST_SHOWN, TOOL, TrialRound, rdma_mesh
from netkit.platforms.linux.acceptance import SLACK_S, START_S, perftest, results
from netkit.project.checking import Checking
from netkit.project.connections import Connections, patient_viewer
from netkit.project.deadline import Deadline
from netkit.report.plan_view import counted

LONGEST_S = START_S + LIMIT_S + 2 * SLACK_S


def measured(checking: Checking, deadline: Deadline) -> tuple[Trial, ...]:
    """Measure between hosts until the deadline; a host that was not reached counts as failed.

    Hosts without the tool are reported and left out.
    """
    if checking.snapshot is not None:
        raise UsageError(Problem("--rdma measures on hosts, so it cannot use a snapshot", "drop one of the options"))
    hosts = [device for device in checking.devices if isinstance(device, Host)]
    reached = Connections.of(checking.project)
    names = [host.name for host in hosts]
    with deadline, Bench(names, lambda name: deadline.bound(patient_viewer(reached, name, LONGEST_S))) as bench:
        programs = bench.programs()
        unreached = tuple(_failed(name, f"not reached: {why}") for name, why in bench.failures.items())
        plan = rdma_mesh(checking.project.fabric, [host for host in hosts if host.name not in bench.failures], programs)
        if failed := tuple(bench.failures):
            more = f" and {len(failed) - MOST_SHOWN} more" if len(failed) > MOST_SHOWN else ""
            _note(checking, [f"not reached: {', '.join(failed[:MOST_SHOWN])}{more}"])
        _note(checking, plan.absent)
        with checking.project.feedback.progress("measuring RDMA latency", len(plan.rounds)) as count:
            parts = tuple(_measured(bench, plan.rounds, deadline, count))
    left = plan.rounds[len(parts) :]
    if left:
        rounds = f"{counted(len(left), 'round')} of {len(plan.rounds)}"
        _note(checking, [f"{rounds} not started: no time is left before the deadline"])
    found = results("".join(parts))
    if not plan.rounds and not unreached:
        return (Trial(tool=perftest.TOOL, test=TOOL, at_s=time.time(), failure="no two hosts can measure it"),)
    return (*unreached, *_left_out(plan.rounds, left), *(() if isinstance(found, Absent) else found))


def _measured(
    bench: Bench, rounds: Sequence[TrialRound], deadline: Deadline, count: Callable[[], None]
) -> Iterator[str]:
    """Yield what the senders of rounds printed, as long as the next round would end in time."""
    for one in rounds:
        if deadline.left_s < START_S + one.seconds:
            return
        yield bench.measure([one], count)


def _left_out(rounds: Sequence[TrialRound], left: Sequence[TrialRound]) -> Iterator[Trial]:
    """Yield failed results of the hosts that took part in no round that was started."""
    begun = {name for one in rounds[: len(rounds) - len(left)] for name in (*one.senders, *one.receivers)}
    for name in dict.fromkeys(name for one in left for name in one.senders if name not in begun):
        yield _failed(name, "not started: no time was left before the deadline")


def _failed(name: str, why: str) -> Trial:
    return Trial(tool=perftest.TOOL, test=TOOL, ends=(name,), at_s=time.time(), failure=why)


def _note(checking: Checking, absent: Sequence[str]) -> None:
    for reason in absent:
        checking.project.feedback.note(f"RDMA latency: {reason}")
