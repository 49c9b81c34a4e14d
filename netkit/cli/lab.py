"""The verbs of `netkit lab` on running labs: status, commands on nodes, faults and traffic."""

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netkit.cli.fabric import open_project
from netkit.errors import LabError, Problem, UsageError
from netkit.lab import netlink
from netkit.lab.faults import CATALOG
from netkit.lab.folder import LOG, LabFolder, all_labs, ask_keeper, lab_folder, only_one
from netkit.lab.namespace_holder import ENVIRONMENT, OWN
from netkit.private import without_secrets
from netkit.report.table import columns

OWN_TERMINAL = ("TERM", "COLUMNS", "LINES")
"""Variables that a shell on a node inherits."""
START = "netkit lab up --fabric DIR"
SHOWN = 6


def down(name: str, folder: Path | None, *, everything: bool) -> None:
    """End a lab, or all of them, without leaving anything behind."""
    with only_one():
        chosen = all_labs() if everything else (_chosen(name, folder, all_labs()),)
        for lab in chosen:
            word = "is down" if lab.path.exists() else "was not up"
            lab.end()
            sys.stdout.write(f"{lab.name} {word}\n")
        netlink.give_back()


def status(name: str, folder: Path | None) -> int:
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
    devices = ask_keeper(lab, "status")["devices"]
    rows = ((d["name"], d["personality"], f"{d['address']}:{d['port']}", d["state"]) for d in devices)
    sys.stdout.write(columns(rows, ("device", "personality", "address", "state")))
    return 0


def check(name: str, folder: Path | None) -> int:
    """Check sessions and routes, and ping between every two NICs that the design connects."""
    answer = ask_keeper(running(name, folder), "check")
    for shortfall in answer["shortfalls"]:
        sys.stderr.write(f"error: {shortfall}\n")
    if answer["shortfalls"]:
        return 1
    across = "none across, as designed" if answer["is_blocked"] else f"{answer['across']} across"
    sys.stdout.write(f"every host reaches every other: {answer['own']} pings on their own rail, {across}\n")
    return 0


def execute(name: str, folder: Path | None, device: str, command: Sequence[str]) -> None:
    """Run a command on a node; its exit code becomes ours."""
    lab = running(name, folder)
    pid = device_record(lab, device)["pid"]
    outer = ["nsenter", "-t", str(lab.init()), "-m", "-p"]
    if os.geteuid() != 0:
        outer += ["-U", "--preserve-credentials"]
    inner = ["nsenter", "-t", str(pid), "-m", "-n", "-u", "--", "/bin/sh", "-c", 'cd; exec "$@"', "sh", *command]
    terminal = {key: os.environ[key] for key in OWN_TERMINAL if key in os.environ}
    _become([*outer, *inner], {**terminal, **ENVIRONMENT, "ENV": f"{OWN}/profile"})


def ssh(name: str, folder: Path | None, device: str, command: Sequence[str]) -> None:
    """Log in to a node over SSH."""
    lab = running(name, folder)
    device_record(lab, device)
    _become(["ssh", "-F", str(lab.ssh_config), device, *command], dict(os.environ))


def logs(name: str, folder: Path | None, device: str) -> None:
    """Print the log of a node, or of the lab's keeper process."""
    lab = _chosen(name, folder, all_labs())
    if not lab.path.exists():
        raise LabError(Problem(f"the lab {lab.name} does not exist", START))
    file = lab.path / (f"{device}.log" if device else LOG)
    if device:
        device_record(lab, device)
    sys.stdout.write(file.read_text(encoding="utf-8", errors="replace") if file.exists() else "")


def restart(name: str, folder: Path | None, device: str) -> None:
    """Power-cycle a node: it boots from its saved configuration."""
    lab = running(name, folder)
    device_record(lab, device)
    answer = ask_keeper(lab, "restart", device=device)
    if answer.get("problem"):
        raise LabError(Problem(f"{device}: {answer['problem']}"))
    sys.stdout.write(f"{device} has restarted\n")


def _become(words: Sequence[str], environment: Mapping[str, str]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(words[0], list(words), without_secrets(environment))  # noqa: S606


def _chosen(name: str, folder: Path | None, labs: Sequence[LabFolder]) -> LabFolder:
    """Select a lab: by name, by its fabric, or the only one."""
    if name:
        return lab_folder(name)
    if folder is not None:
        return lab_folder(open_project(folder).fabric.name)
    if len(labs) == 1:
        return labs[0]
    names = ", ".join(lab.name for lab in labs)
    raise LabError(
        Problem(f"several labs exist: {names}", "choose one with --lab") if labs else Problem("no lab runs", START)
    )


def running(name: str, folder: Path | None) -> LabFolder:
    lab = _chosen(name, folder, [one for one in all_labs() if one.is_alive])
    if not lab.is_alive:
        raise LabError(Problem(f"the lab {lab.name} does not run", START))
    return lab


def device_record(lab: LabFolder, device: str) -> Mapping[str, Any]:
    """What the lab has recorded about a device."""
    devices: Mapping[str, Mapping[str, Any]] = lab.record().get("devices", {})
    if not devices:
        raise LabError(Problem(f"the lab {lab.name} is still booting", "netkit lab up waits until it is up"))
    if device not in devices:
        known = ", ".join(list(devices)[:SHOWN]) + (" …" if len(devices) > SHOWN else "")
        raise LabError(Problem(f"the lab {lab.name} has no device {device!r}", f"it has {known}"))
    return devices[device]


TEXT_WIDTH = 110
LOADS = {"on": True, "off": False}


def break_(name: str, folder: Path | None, fault: str, place: str, options: Sequence[str]) -> None:
    if not fault or not place:
        raise UsageError(
            Problem("a fault and a place are required", "netkit lab break FAULT DEVICE[:PORT]; --list explains faults")
        )
    ask_keeper(running(name, folder), "break", fault=fault, place=place, options=list(options))
    sys.stdout.write(f"{fault} at {place}\n")


def list_faults(name: str, folder: Path | None) -> None:
    """Explain every fault, and list those active in a running lab."""
    for kind in CATALOG.values():
        sys.stdout.write(f"{kind.name}  ({', '.join(kind.targets)}; implemented by: {kind.maker})\n")
        sys.stdout.write(textwrap.fill(kind.text, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  ") + "\n")
        for option in kind.options:
            sys.stdout.write(f"    {option.name}={option.default}  {option.meaning}\n")
    if any(lab.is_alive for lab in all_labs()) and (name or folder or len(all_labs()) == 1):
        for fault in ask_keeper(running(name, folder), "faults")["faults"]:
            sys.stdout.write(f"active: {_fault_text(fault)}\n")


def heal(name: str, folder: Path | None, fault: str, place: str, *, everything: bool) -> None:
    lab = running(name, folder)
    active = ask_keeper(lab, "faults")["faults"]
    places = sorted({one["device"] for one in active}) if everything else [place]
    if not everything and not place:
        raise UsageError(Problem("a place is required", "netkit lab heal DEVICE[:PORT] [FAULT], or --all"))
    healed = [one for where in places for one in ask_keeper(lab, "heal", fault=fault, place=where)["healed"]]
    for one in healed:
        sys.stdout.write(f"{_fault_text(one)} is healed\n")
    if not healed:
        sys.stdout.write("nothing to heal\n")


def _fault_text(fault: Mapping[str, Any]) -> str:
    place = f"{fault['device']}:{fault['port']}" if fault["port"] else fault["device"]
    return f"{fault['name']} at {place}"


def incast(name: str, folder: Path | None, place: str, senders: int, seconds: float) -> None:
    """Cause congestion at one NIC: real packets, CE marks and CNPs."""
    flows = ask_keeper(running(name, folder), "incast", place=place, senders=senders, seconds=seconds)["flows"]
    sys.stdout.write(f"{len(flows)} NICs send to {place} at line rate for {seconds:g} s\n")


def calm(name: str, folder: Path | None) -> None:
    stopped = ask_keeper(running(name, folder), "calm")["stopped"]
    sys.stdout.write(f"{len(stopped)} flows stopped\n")


def load(name: str, folder: Path | None, state: str) -> None:
    """Switch the modelled job on or off."""
    if state not in LOADS:
        raise UsageError(Problem(f"{state!r} is neither on nor off", "netkit lab load on|off"))
    ask_keeper(running(name, folder), "load", is_on=LOADS[state])
    sys.stdout.write(f"load {state}\n")
