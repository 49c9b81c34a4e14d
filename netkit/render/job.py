"""Jobs that run acceptance tests under a scheduler: collectives over few and many hosts, and along each rail."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from netkit.design import Fabric, Host
from netkit.platforms.linux.acceptance.nccl_tests import TOOL
from netkit.platforms.linux.view import Setting, nccl_settings
from netkit.render.engine import Engine

TEMPLATES = {"slurm": "job/slurm.sh.j2", "mpijob": "job/mpijob.yaml.j2"}
COUNTS = (2, 8, 16, 32)
TESTS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf")
FOLDER = "/opt/nccl-tests/build"
IMAGE = "nccl-tests:latest"
ARGUMENTS = "-b 1G -e 8G -f 8 -g 1 -c 1 -n 20 -w 5"
STEP_MINUTES = 5
POD_INTERFACE = "eth0"
"""What a pod calls its own network, whatever the host calls that."""


@dataclass(frozen=True, slots=True)
class JobStep:
    """One collective over some hosts."""

    test: str
    hosts: tuple[str, ...]
    tasks: int
    split: str
    """How ranks are split into collectives of their own; with AND 0x0 there is one."""

    @property
    def about(self) -> str:
        """Return what stands before its result."""
        return json.dumps({"tool": TOOL, "test": self.test, "hosts": self.hosts})

    @property
    def short(self) -> str:
        """Return the same for where hosts have other names than in the design."""
        return json.dumps({"tool": TOOL, "test": self.test})


@dataclass(frozen=True, slots=True)
class AcceptanceJob:
    """A job as its template needs it."""

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
        """Return how long all steps may take."""
        return len(self.steps) * self.step_minutes


def render_job(kind: str, fabric: Fabric, hosts: Sequence[Host], engine: Engine, image: str = IMAGE) -> str:
    """Return the job that tests some hosts."""
    interface = POD_INTERFACE if kind == "mpijob" else hosts[0].management_interface
    return engine.render(TEMPLATES[kind], {"job": job(fabric, hosts, interface, image)}, "")


def job(fabric: Fabric, hosts: Sequence[Host], interface: str, image: str = IMAGE) -> AcceptanceJob:
    """Return what a job runs on some hosts, and with which settings; its processes meet over an interface."""
    names, gpus = tuple(host.name for host in hosts), min(len(host.nics) for host in hosts)
    counts = tuple(sorted({count for count in (*COUNTS, len(names)) if count <= len(names)}))
    steps = tuple(_steps(names, gpus, counts))
    networks = tuple(f"rail{rail.number}" for rail in fabric.rails)
    settings = tuple(_settings(fabric, hosts[0], interface))
    return AcceptanceJob(fabric.name, names, gpus, counts, steps, settings, networks, image)


def _steps(names: tuple[str, ...], gpus: int, counts: Sequence[int]) -> Iterator[JobStep]:
    for test in TESTS:
        yield from (JobStep(test, names[:count], count * gpus, "AND 0x0") for count in counts)
    yield JobStep(TESTS[0], names, len(names) * gpus, f"MOD {gpus}")


def _settings(fabric: Fabric, host: Host, interface: str) -> Iterator[Setting]:
    """Yield NCCL's environment: that of every job on a host, and what makes a result one of the network."""
    priority = fabric.lossless.roce.priority
    own = {"NCCL_SOCKET_IFNAME": f"={interface}"}
    yield from (replace(one, value=own.get(one.key, one.value)) for one in nccl_settings(fabric, host))
    yield Setting("NCCL_IB_SL", str(priority), "the same class, for what looks at the service level and not at DSCP")
    yield Setting("NCCL_ALGO", "Ring", "trees and NVLink SHARP would show more than the network carries")
    yield Setting("UCX_NET_DEVICES", interface, "MPI itself keeps off the rails")
