"""The verbs of `netkit lab` that break and heal, and those that make traffic or end it."""

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netkit.cli.lab.booted import running
from netkit.errors import Problem, UsageError
from netkit.lab.faults import CATALOG
from netkit.lab.folder import all_labs, ask_keeper

TEXT_WIDTH = 110
LOADS = {"on": True, "off": False}


def break_(name: str, folder: Path | None, fault: str, place: str, options: Sequence[str]) -> None:
    """Make a fault."""
    if not fault or not place:
        raise UsageError(
            Problem("what shall break, and where?", "netkit lab break FAULT DEVICE[:PORT]; --list explains")
        )
    ask_keeper(running(name, folder), "break", fault=fault, place=place, options=list(options))
    sys.stdout.write(f"{fault} at {place}\n")


def list_faults(name: str, folder: Path | None) -> None:
    """Explain every fault, and say which are active in a lab when one runs."""
    for kind in CATALOG.values():
        sys.stdout.write(f"{kind.name}  ({', '.join(kind.targets)}; acted out by: {kind.maker})\n")
        sys.stdout.write(textwrap.fill(kind.text, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  ") + "\n")
        for option in kind.options:
            sys.stdout.write(f"    {option.name}={option.default}  {option.meaning}\n")
    if any(lab.is_alive for lab in all_labs()) and (name or folder or len(all_labs()) == 1):
        for fault in ask_keeper(running(name, folder), "faults")["faults"]:
            sys.stdout.write(
                f"active: {fault['name']} at {fault['device']}{':' * bool(fault['port'])}{fault['port']}\n"
            )


def heal(name: str, folder: Path | None, fault: str, place: str, *, everything: bool) -> None:
    """End faults."""
    lab = running(name, folder)
    active = ask_keeper(lab, "faults")["faults"]
    places = sorted({one["device"] for one in active}) if everything else [place]
    if not everything and not place:
        raise UsageError(Problem("what shall heal?", "netkit lab heal DEVICE[:PORT] [FAULT], or --all"))
    healed = [one for where in places for one in ask_keeper(lab, "heal", fault=fault, place=where)["healed"]]
    for one in healed:
        sys.stdout.write(f"{_shown(one)} is healed\n")
    if not healed:
        sys.stdout.write("nothing to heal\n")


def _shown(fault: Mapping[str, Any]) -> str:
    place = f"{fault['device']}:{fault['port']}" if fault["port"] else fault["device"]
    return f"{fault['name']} at {place}"


def incast(name: str, folder: Path | None, place: str, senders: int, seconds: float) -> None:
    """Make congestion at one NIC: real packets, CE marks and CNPs."""
    flows = ask_keeper(running(name, folder), "incast", place=place, senders=senders, seconds=seconds)["flows"]
    sys.stdout.write(f"{len(flows)} NICs send to {place} at line rate for {seconds:g} s\n")


def calm(name: str, folder: Path | None) -> None:
    """End congestion."""
    stopped = ask_keeper(running(name, folder), "calm")["stopped"]
    sys.stdout.write(f"{len(stopped)} flows stopped\n")


def load(name: str, folder: Path | None, state: str) -> None:
    """Let the modelled job run or rest."""
    if state not in LOADS:
        raise UsageError(Problem(f"{state!r} is neither on nor off", "netkit lab load on|off"))
    ask_keeper(running(name, folder), "load", is_on=LOADS[state])
    sys.stdout.write(f"load {state}\n")
