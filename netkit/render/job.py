"""Scheduler jobs for acceptance tests: collectives over few and many hosts, and along each rail."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from netkit.design import Fabric, Host
from netkit.platforms.linux.acceptance.nccl_tests import TOOL
from netkit.platforms.linux.view_nic import Setting, nccl_settings
from netkit.render.engine import Engine

TEMPLATES = {"slurm": "job/slurm.sh.j2", "mpijob": "job/mpijob.yaml.j2"}
COUNTS = (2, 8, 16, 32)
TESTS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf")
FOLDER = "/opt/nccl-tests/build"
IMAGE = "nccl-tests:latest"
ARGUMENTS = "-b 1G -e 8G -f 8 -g 1 -c 1 -n 20 -w 5"
STEP_MINUTES = 5
POD_INTERFACE = "eth0"
"""The interface of a pod's own network."""


@dataclass(frozen=True, slots=True)
class JobStep:
    """One collective over some hosts."""

    test: str
    hosts: tuple[str, ...]
    tasks: int
    split: str
    """NCCL's split of ranks into separate collectives; AND 0x0 is a single one."""

    @property
    def about(self) -> str:
        """The line before its result."""
        return json.dumps({"tool": TOOL, "test": self.test, "hosts": self.hosts})

    @property
    def short(self) -> str:
        """The same without hosts, for environments where their names differ from the design."""
        return json.dumps({"tool": TOOL, "test": self.test})


@dataclass(frozen=True, slots=True)
class AcceptanceJob:
    """Values for the template of a job."""

    fabric: str
    hosts: tuple[str, ...]
    gpus: int
    counts: tuple[int, ...]
    steps: tuple[JobStep, ...]
    settings: tuple[Setting, ...]
    networks: tuple[str, ...]
    image: str
    folder: str = FOLDER
    arguments: str = ARGUMENTS
    step_minutes: int = STEP_MINUTES

    @property
    def minutes(self) -> int:
        """Time limit of all steps."""
        return len(self.steps) * self.step_minutes


def render_job(kind: str, fabric: Fabric, hosts: Sequence[Host], engine: Engine, image: str = IMAGE) -> str:
    interface = POD_INTERFACE if kind == "mpijob" else hosts[0].management_interface
    return engine.render(TEMPLATES[kind], {"job": job(fabric, hosts, interface, image)}, "")


def job(fabric: Fabric, hosts: Sequence[Host], interface: str, image: str = IMAGE) -> AcceptanceJob:
    """Build a job for hosts; its processes bootstrap over `interface`."""
    names, gpus = tuple(host.name for host in hosts), min(len(host.nics) for host in hosts)
    counts = tuple(sorted({count for count in (*COUNTS, len(names)) if count <= len(names)}))
    steps = [JobStep(test, names[:count], count * gpus, "AND 0x0") for test in TESTS for count in counts]
    steps.append(JobStep(TESTS[0], names, len(names) * gpus, f"MOD {gpus}"))
    networks = tuple(f"rail{rail.number}" for rail in fabric.rails)
    settings = tuple(_settings(fabric, hosts[0], interface))
    return AcceptanceJob(fabric.name, names, gpus, counts, tuple(steps), settings, networks, image)


def _settings(fabric: Fabric, host: Host, interface: str) -> Iterator[Setting]:
    """Yield NCCL's environment: a host's usual settings, and those that make a result reflect the network."""
    priority = fabric.lossless.roce.priority
    own = {"NCCL_SOCKET_IFNAME": f"={interface}"}
    yield from (replace(one, value=own.get(one.key, one.value)) for one in nccl_settings(fabric, host))
    yield Setting("NCCL_IB_SL", str(priority), "the same class, for what looks at the service level and not at DSCP")
    yield Setting("NCCL_ALGO", "Ring", "trees and NVLink SHARP would show more than the network carries")
    yield Setting("UCX_NET_DEVICES", interface, "MPI itself keeps off the rails")
