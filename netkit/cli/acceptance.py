"""`netkit acceptance`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design import Host
from netkit.design.select import Device, select
from netkit.errors import Problem, UsageError
from netkit.observe.measure import Bench
from netkit.observe.trial_plan import TOOLS, trial_plan
from netkit.platforms.linux.acceptance import COLLECTIVE_S, SLACK_S
from netkit.platforms.linux.acceptance.nccl_tests import TOOL as COLLECTIVES
from netkit.project.connections import Connections, patient_viewer
from netkit.render.engine import Engine
from netkit.render.job import TEMPLATES, acceptance_job, render_job
from netkit.terminal.output import is_agreed, write_named
from netkit.terminal.progress import counter

UNREACHED, FAILED = 4, 1


def emit(kind: str, folder: Path, *, out: Path | None, limit: str, image: str) -> None:
    """Write a job that tests the hosts of a fabric."""
    if kind not in TEMPLATES:
        raise UsageError(Problem(f"unknown kind of job {kind!r}", f"use {', '.join(TEMPLATES)}"))
    project = open_project(folder)
    warn(project)
    hosts = several(select(project.fabric, limit))
    job = acceptance_job(kind, project.fabric, hosts, image)
    text = render_job(kind, job, Engine(project.template_folders))
    if out is None:
        sys.stdout.write(text)
        return
    write_named(out, text)
    sys.stdout.write(f"{out}: {kind} for {len(job.hosts)} hosts of {project.fabric.name}\n")


def several(devices: Sequence[Device]) -> tuple[Host, ...]:
    """Select the hosts; a test of the network needs at least two."""
    hosts = tuple(device for device in devices if isinstance(device, Host) and device.nics)
    if len(hosts) < 2:
        raise UsageError(Problem("a test of the network needs two hosts or more", "choose more with --limit"))
    return hosts


def run(
    folder: Path,
    *,
    out: Path,
    limit: str,
    lab: str,
    tools: Sequence[str],
    seconds: int,
    cuda: bool,
    dry: bool,
    yes: bool,
) -> int:
    """Show the test plan and run it; return 4 if a host was not reached, 1 if nothing ran."""
    unknown = [tool for tool in tools if tool not in TOOLS]
    if unknown:
        raise UsageError(Problem(f"unknown tool {unknown[0]!r}", f"use {', '.join(TOOLS)}"))
    project = open_project(folder, lab)
    warn(project)
    hosts = several(select(project.fabric, limit))
    reached, wanted = Connections.of(project), tuple(dict.fromkeys(tools or TOOLS))
    limit_s = max(seconds, COLLECTIVE_S if COLLECTIVES in wanted else 0) + 2 * SLACK_S
    with Bench([host.name for host in hosts], lambda name: patient_viewer(reached, name, limit_s)) as bench:
        plan = trial_plan(project.fabric, hosts, bench.programs(), wanted, seconds, is_cuda=cuda)
        for name, failure in bench.failures.items():
            sys.stdout.write(f"not reached: {name}: {failure}\n")
        for reason in plan.absent:
            sys.stdout.write(f"absent: {reason}\n")
        if not plan.rounds:
            return FAILED
        for one in plan.rounds:
            sys.stdout.write(f"{one.seconds:5} s at most  {one.title}\n")
        sys.stdout.write(f"{plan.seconds:5} s at most in all\n")
        if dry or not is_agreed("Run them? They slow down running jobs.", yes=yes):
            return 0
        with counter("measuring", len(plan.rounds)) as count:
            absent = "".join(f"# absent: {reason}\n" for reason in plan.absent)
            write_named(out, absent + bench.measure(plan.rounds, count))
        sys.stdout.write(f"{out}: judge it with netkit check acceptance --results {out}\n")
        return UNREACHED if bench.failures else 0
