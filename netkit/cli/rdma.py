"""`netkit check --rdma`: RDMA latency between hosts, measured before the fabric is looked at."""

import sys
from collections.abc import Sequence

from netkit.cli.acceptance import patient_viewer
from netkit.cli.checking import Checking
from netkit.cli.fleet import fleet
from netkit.cli.progress import counter
from netkit.design import Host
from netkit.errors import Problem, UsageError
from netkit.facts import Absent
from netkit.facts.trial import Trial
from netkit.observe.measure import Bench
from netkit.observe.rdma_mesh import LIMIT_S, rdma_mesh
from netkit.platforms.linux.acceptance import results
from netkit.platforms.linux.acceptance.command import SLACK_S, START_S

LONGEST_S = START_S + LIMIT_S + 2 * SLACK_S


def measured(checking: Checking) -> tuple[Trial, ...]:
    """Return what hosts measured between each other; those that lack the tool are named and left out."""
    if checking.snapshot is not None:
        raise UsageError(Problem("--rdma asks hosts to measure, and a snapshot has none", "leave one of them away"))
    hosts = [device for device in checking.devices if isinstance(device, Host)]
    reached = fleet(checking.project, checking.lab)
    with Bench([host.name for host in hosts], lambda name: patient_viewer(reached, name, LONGEST_S)) as bench:
        programs = bench.programs()
        there = [host for host in hosts if host.name not in bench.failures]
        plan = rdma_mesh(checking.project.fabric, there, programs)
        _note(plan.absent)
        if not plan.rounds:
            return ()
        with counter("measuring RDMA latency", len(plan.rounds)) as count:
            found = results(bench.measure(plan.rounds, count))
    return () if isinstance(found, Absent) else found


def _note(absent: Sequence[str]) -> None:
    for reason in absent:
        sys.stderr.write(f"RDMA latency: {reason}\n")
