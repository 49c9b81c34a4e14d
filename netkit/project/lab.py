"""Start labs; the lab of a proof runs beside any other of the same fabric, and ends with the proof."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from netkit.design import Fabric, Host, Switch
from netkit.errors import Interrupted, LabError, Problem, UsageError
from netkit.errors import Path as IntentPath
from netkit.lab import keeper, netlink, personality
from netkit.lab.folder import LabFolder, LabJob, all_labs, ask_keeper, began_at, lab_folder, only_one
from netkit.platforms.config import Files
from netkit.platforms.ownership import OWN_RULES
from netkit.project.project import Project
from netkit.render import Engine, render

NAME = re.compile(r"proof-(\d+)-(\d+)")
POLL_S = 0.2
BORN_S = 300.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OnStep = Callable[[str], None]


def start(lab: LabFolder, project: Project, job: LabJob) -> None:
    """Start the keeper process of a new lab."""
    lab.end()
    netlink.make_room(sum(1 for _ in project.fabric.links()))
    lab.path.mkdir(mode=0o755)
    given = {name: {file: files[file] for file in files if file != OWN_RULES} for name, files in job.files.items()}
    keeper.start(replace(job, files=given), keeper.run)  # the rules of ownership stay off the devices


def await_birth(lab: LabFolder) -> None:
    """Wait until the keeper of a lab answers."""
    deadline = time.monotonic() + BORN_S
    while not lab.control.exists():
        if not lab.is_alive or time.monotonic() > deadline:
            reason = lab.last_words() or "it left no message"
            raise LabError(
                Problem(f"the lab did not start: {reason}", "netkit lab logs shows details, netkit lab down cleans up")
            )
        time.sleep(POLL_S / 4)


@contextmanager
def proof_lab(project: Project, files: Mapping[str, Files], promised: Fabric, patience_s: float) -> Iterator[LabFolder]:
    """Yield a lab that is being booted with the given files; it ends with the block."""
    personality.check()
    lab = lab_folder(f"proof-{os.getpid()}-{began_at(os.getpid())}")
    try:
        with ended_by_signals(lab):
            with netlink.announced():
                with only_one():
                    clear_up(all_labs())
                    started = {name: dict(one) for name, one in files.items()}
                    folder = str(project.folder.absolute())
                    start(lab, project, LabJob(project.fabric, started, lab, folder, patience_s, promised))
                await_birth(lab)
            yield lab
    finally:
        with only_one():
            lab.end()
            netlink.give_back()


def shortfalls(lab: LabFolder, on_step: OnStep, deadline_s: float) -> tuple[str, ...]:
    """Wait until a lab is up, and return what it lacks; LabError if the deadline passes."""
    step = ""
    while time.monotonic() < deadline_s:
        progress = ask_keeper(lab, "progress")
        if progress["failure"]:
            raise LabError(Problem(f"the lab could not be built: {progress['failure']}"))
        if progress["is_up"]:
            lacks = progress["shortfalls"]
            return tuple(f"{device}{':' + port if port else ''}: {what}" for device, port, what in lacks)
        if progress["step"] != step:
            step = progress["step"]
            on_step(step)
        time.sleep(POLL_S)
    raise LabError(Problem("the lab was not up within --prove-within", "allow more with --prove-within"))


def clear_up(labs: Iterable[LabFolder]) -> None:
    """End labs of proofs that were killed."""
    for lab in labs:
        found = NAME.fullmatch(lab.name)
        if found and began_at(int(found[1])) != found[2]:
            lab.end()


@contextmanager
def ended_by_signals(lab: LabFolder) -> Iterator[None]:
    """End the lab on a signal, which also ends everything that talks to it.

    A signal that is ignored, as under `nohup`, stays ignored.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        lab.end()
        raise Interrupted

    not_ignored = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in not_ignored}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def boot_files(project: Project, configs: Path | None) -> Mapping[str, Mapping[str, str]]:
    """The files to boot with: rendered now, or from a folder that was rendered before."""
    if configs is None:
        devices: tuple[Switch | Host, ...] = (*project.fabric.switches, *project.fabric.hosts)
        made = render(project.fabric, devices, Engine(project.template_folders))
        return {one.device: one.files for one in made}
    found: dict[str, dict[str, str]] = {}
    for name in project.fabric.names:
        files = (file for file in sorted((configs / name).glob("*")) if file.is_file())
        found[name] = {file.name: file.read_text(encoding="utf-8") for file in files}
    missing = [name for name in found if not found[name]]
    if missing:
        raise UsageError(Problem(f"{configs} has no files of {missing[0]}", "netkit render --out writes such a folder"))
    return found


def of_device(project: Project, name: str) -> IntentPath:
    """The path of the entry that decides most about a device: its override, unit, or tier."""
    if name in project.intent.overrides:
        return ("overrides", name)
    device = project.fabric.device(name)
    if isinstance(device, Switch) and device.role != "leaf":
        return ("switches", device.role)
    if device is not None:
        for index, entry in enumerate(project.intent.units):
            if device.unit in entry.unit and device.pod in entry.pod:
                return ("units", index)
    return ()


def placed(project: Project, name: str, what: str) -> Problem:
    """Locate a problem of a device at its line of the intent."""
    return project.loaded.places.locate(Problem(f"{name}: {what}", path=of_device(project, name)))
