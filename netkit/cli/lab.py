"""`netkit lab`: a running copy of a fabric on this machine."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from netkit.cli.fabric import Project, open_project, warn
from netkit.cli.intent_place import placed
from netkit.design import Host, Switch
from netkit.errors import LabError, Problem, UsageError
from netkit.lab import ability, detach, keeper, neighbor_table, remote
from netkit.lab.folder import LabFolder, all_labs, lab_folder, only_one
from netkit.lab.job import Job
from netkit.render import Engine, render

POLL_S = 0.2
WIDTH = 30
BORN_S = 30.0


def up(folder: Path, name: str, *, bare: bool, configs: Path | None, patience_s: float) -> int:
    """Boot a fabric, or say that it runs already; show how far it is."""
    project = open_project(folder)
    warn(project)
    ability.check()
    lab = lab_folder(name or project.fabric.name)
    with only_one():
        if not lab.is_alive:
            files = {} if bare else _files(project, configs)
            _start(lab, project, Job(project.fabric, files, lab, str(folder.absolute()), patience_s))
    return _wait(lab, project)


def _start(lab: LabFolder, project: Project, job: Job) -> None:
    lab.end()
    lab.path.mkdir(mode=0o755)
    neighbor_table.make_room(sum(1 for _ in project.fabric.links()))
    detach.start(job, keeper.run)


def _files(project: Project, configs: Path | None) -> Mapping[str, Mapping[str, str]]:
    """Return what the devices begin with: rendered now, or a folder that was rendered before."""
    if configs is None:
        devices: tuple[Switch | Host, ...] = (*project.fabric.switches, *project.fabric.hosts)
        made = render(project.fabric, devices, Engine(project.template_folders))
        return {one.device: one.files for one in made}
    found = {name: _read(configs / name) for name in project.fabric.names}
    missing = [name for name, files in found.items() if not files]
    if missing:
        raise UsageError(Problem(f"{configs} has no files of {missing[0]}", "netkit render --out writes such a folder"))
    return found


def _read(folder: Path) -> Mapping[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*")) if file.is_file()}


def _wait(lab: LabFolder, project: Project) -> int:
    """Follow the keeper until the lab is up, and say what is missing."""
    deadline = time.monotonic() + BORN_S
    while not lab.control.exists():
        if not lab.is_alive or time.monotonic() > deadline:
            raise LabError(
                Problem(f"the lab did not start: {lab.last_words() or 'it left no word'}", "netkit lab down")
            )
        time.sleep(POLL_S / 4)
    shown = ""
    while True:
        progress = remote.ask(lab, "progress")
        if progress["failure"]:
            lab.end()
            raise LabError(Problem(f"the lab could not be built: {progress['failure']}"))
        shown = _show(progress, shown)
        if progress["is_up"]:
            break
        time.sleep(POLL_S)
    for device, port, what in progress["shortfalls"]:
        sys.stderr.write(f"error: {placed(project, device, f'{port}: {what}' if port else what)}\n")
    record = lab.record()
    sys.stdout.write(f"{lab.name} is up: {len(record['devices'])} devices on {record['block']}.0.0/16\n")
    return 1 if progress["shortfalls"] else 0


def _show(progress: Mapping[str, Any], shown: str) -> str:
    """Draw how far it is: one moving line on a terminal, one line for each step elsewhere."""
    step, done, total = progress["step"], progress["done"], max(progress["total"], 1)
    if sys.stderr.isatty():
        bar = "━" * (WIDTH * done // total)
        text = (
            ""
            if progress["is_up"]
            else f"{step:<12} {bar:<{WIDTH}} {done}/{progress['total']}  {progress['seconds']:.0f} s"
        )
        sys.stderr.write("\r\x1b[K" + text)
        sys.stderr.flush()
    elif step != shown:
        sys.stderr.write(f"{step}\n")
    return str(step)


def down(name: str, folder: Path | None, *, everything: bool) -> None:
    """End a lab, or all of them; nothing of it stays behind."""
    with only_one():
        chosen = all_labs() if everything else (_chosen(name, folder),)
        for lab in chosen:
            lab.end()
            sys.stdout.write(f"{lab.name} is down\n")
        neighbor_table.give_back()


def status(name: str, folder: Path | None) -> int:
    """List the labs, or the devices of one."""
    if not name and folder is None:
        labs = all_labs()
        for lab in labs:
            record = lab.record()
            state = "up" if lab.is_alive else "left behind; netkit lab down removes it"
            sys.stdout.write(
                f"{lab.name}  {len(record.get('devices', ()))} devices  {record.get('fabric', '?')}  {state}\n"
            )
        if not labs:
            sys.stdout.write("no lab runs\n")
        return 0
    lab = running(name, folder)
    for line in _table(remote.ask(lab, "status")["devices"]):
        sys.stdout.write(line + "\n")
    return 0


def _table(devices: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [("device", "personality", "address", "state")]
    rows += [(d["name"], d["personality"], f"{d['address']}:{d['port']}", d["state"]) for d in devices]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)), row[3]])


def check(name: str, folder: Path | None) -> int:
    """Prove that the fabric is what its design says, with a ping between every two NICs."""
    answer = remote.ask(running(name, folder), "check")
    for shortfall in answer["shortfalls"]:
        sys.stderr.write(f"error: {shortfall}\n")
    if answer["shortfalls"]:
        return 1
    end = "none passes across, as designed" if answer["is_blocked"] else f"{answer['across']} across"
    sys.stdout.write(f"every host reaches every other: {answer['own']} trips on their own rail, {end}\n")
    return 0


def execute(name: str, folder: Path | None, device: str, command: Sequence[str]) -> None:
    """Run a command on a node; its exit code becomes ours."""
    lab = running(name, folder)
    pid = device_record(lab, device)["pid"]
    outer = ["nsenter", "-t", str(lab.init()), "-m", "-p"]
    if os.geteuid() != 0:
        outer += ["-U", "--preserve-credentials"]
    inner = ["nsenter", "-t", str(pid), "-m", "-n", "-u", "--", "/bin/sh", "-c", 'cd; exec "$@"', "sh", *command]
    environment = {**os.environ, "PATH": NODE_PATH, "HOME": "/root", "USER": "root", "ENV": "/run/netkit/profile"}
    _become([*outer, *inner], environment)


def ssh(name: str, folder: Path | None, device: str, command: Sequence[str]) -> None:
    """Log in to a node the way every tool does."""
    lab = running(name, folder)
    device_record(lab, device)
    _become(["ssh", "-F", str(lab.ssh_config), device, *command], dict(os.environ))


def logs(name: str, folder: Path | None, device: str) -> None:
    """Print the log of a node, or of the keeper."""
    lab = running(name, folder)
    file = lab.path / (f"{device}.log" if device else "keeper.log")
    if device:
        device_record(lab, device)
    sys.stdout.write(file.read_text(encoding="utf-8", errors="replace") if file.exists() else "")


def restart(name: str, folder: Path | None, device: str) -> None:
    """Cut the power of a node and boot it from what it had saved."""
    lab = running(name, folder)
    device_record(lab, device)
    answer = remote.ask(lab, "restart", device=device)
    if answer.get("problem"):
        raise LabError(Problem(f"{device}: {answer['problem']}"))
    sys.stdout.write(f"{device} has restarted\n")


def _become(words: Sequence[str], environment: Mapping[str, str]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(words[0], list(words), dict(environment))  # noqa: S606


def _chosen(name: str, folder: Path | None) -> LabFolder:
    """Return the lab that is meant: by name, by its fabric, or the only one there is."""
    if name:
        return lab_folder(name)
    if folder is not None:
        return lab_folder(open_project(folder).fabric.name)
    labs = all_labs()
    if len(labs) == 1:
        return labs[0]
    names = ", ".join(lab.name for lab in labs)
    raise LabError(
        Problem(f"several labs are here: {names}", "choose one with --name")
        if labs
        else Problem("no lab runs", "netkit lab up --fabric DIR")
    )


def running(name: str, folder: Path | None) -> LabFolder:
    """Return the lab that is meant; it must run."""
    lab = _chosen(name, folder)
    if not lab.is_alive:
        raise LabError(Problem(f"no lab {lab.name} runs", "netkit lab up --fabric DIR"))
    return lab


def device_record(lab: LabFolder, device: str) -> Mapping[str, Any]:
    """Return what is written down of a device of a lab."""
    devices: Mapping[str, Mapping[str, Any]] = lab.record().get("devices", {})
    if device not in devices:
        known = ", ".join(list(devices)[:6])
        raise LabError(Problem(f"the lab {lab.name} has no device {device!r}", f"it has {known} …"))
    return devices[device]


NODE_PATH = "/run/netkit/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/frr"
