"""udev's rules for the rail NICs: what they name each, and which units they want started for it.

The lab's interfaces bear their rail names from the start; a rule decides whether the NIC is taken for that rail.
"""

import fnmatch
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netkit.lab.node import ProgramResult
from netkit.lab.personalities.linux_host import sysfs
from netkit.lab.personalities.linux_host.machine import HostMachine, RailCard, VolatileNicSettings
from netkit.lab.personalities.linux_host.sysfs import SysfsTree
from netkit.lab.personalities.linux_host.units import UnitError, UnitFile, Units, outcome

TOKEN = re.compile(r'\s*([A-Z]+(?:\{[\w.]+\})?)\s*(==|!=|\+=|:=|=)\s*"([^"]*)"\s*(,|$)')
MATCHES = frozenset({"ACTION", "SUBSYSTEM", "KERNEL", "KERNELS", "DEVPATH", "DRIVERS", "NAME"})
ASSIGNMENTS = frozenset({"NAME", "GOTO", "LABEL", "TAG", "RUN"})
MARK = "ENV{NETKIT_RAIL}"
WANTS = "ENV{SYSTEMD_WANTS}"
Device = Mapping[str, str]
Token = tuple[str, str, str]


class RuleError(Exception):
    """A rule cannot be read; the text says which and why."""


@dataclass(frozen=True, slots=True)
class UdevOutcome:
    """What rules make of a device."""

    name: str
    rail: str
    wants: tuple[str, ...]
    runs: tuple[str, ...]


def rules(text: str, file: str = "rules") -> tuple[tuple[Token, ...], ...]:
    """Return the rules of a file; raises RuleError with all that is wrong."""
    found, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            tokens = tuple(_tokens(line))
            broken = not tokens or any(not _is_known(token) for token in tokens)
            problems += [f"{file}:{number}: cannot be read: {line}"] * broken
            found.append(tokens)
    labels = {value for tokens in found for key, _, value in tokens if key == "LABEL"}
    for tokens in found:
        problems += [f"{file}: no LABEL {value}" for key, _, value in tokens if key == "GOTO" and value not in labels]
    if problems:
        raise RuleError("\n".join(problems))
    return tuple(found)


def _tokens(line: str) -> Iterator[Token]:
    at = 0
    while at < len(line.rstrip()):
        match = TOKEN.match(line, at)
        if match is None:
            yield "", "", ""
            return
        yield match[1], match[2], match[3]
        at = match.end()


def _is_known(token: Token) -> bool:
    key, operator, _ = token
    head = key.partition("{")[0]
    if operator in {"==", "!="}:
        return key in MATCHES or head in {"ENV", "ATTR", "ATTRS"}
    return key in ASSIGNMENTS or head == "ENV"


def apply(found: Sequence[Sequence[Token]], device: Device) -> UdevOutcome:
    """Return what rules make of a device."""
    state: dict[str, str] = {}
    runs: list[str] = []
    goto = ""
    for tokens in found:
        if goto and ("LABEL", "=", goto) not in tokens:
            continue
        goto = ""
        if all(_holds({**device, **state}, token) for token in tokens):
            goto = _assign(state, runs, tokens, device)
    return UdevOutcome(state.get("NAME", ""), state.get(MARK, ""), tuple(state.get(WANTS, "").split()), tuple(runs))


def _assign(state: dict[str, str], runs: list[str], tokens: Sequence[Token], device: Device) -> str:
    goto = ""
    for key, operator, value in tokens:
        if operator in {"==", "!="} or key == "LABEL":
            continue
        filled = re.sub(r"\$env\{(\w+)\}", lambda match: state.get(f"ENV{{{match[1]}}}", ""), value)
        filled = filled.replace("%k", device["KERNEL"])
        if key == "GOTO":
            goto = value
        elif key == "RUN":
            runs.append(filled)
        else:
            state[key] = f"{state[key]} {filled}" if operator == "+=" and key in state else filled
    return goto


def _holds(device: Device, token: Token) -> bool:
    key, operator, value = token
    if operator not in {"==", "!="}:
        return True
    if key.startswith("ATTR") and key not in device:
        return False  # a file that cannot be read matches nothing
    there = device.get(key, "").split() if key == "KERNELS" else [device.get(key, "")]
    return any(fnmatch.fnmatchcase(text, glob) for text in there for glob in value.split("|")) == (operator == "==")


def network_device(interface: str, pci: str, action: str = "add") -> Device:
    """Return a rail NIC's interface as udev sees it."""
    return {
        "ACTION": action,
        "SUBSYSTEM": "net",
        "KERNEL": interface,
        "KERNELS": f"0000:{pci.split(':')[1]}:01.0 {pci}",
        "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/net/{interface}",
        "ATTR{phys_port_name}": "p0",
    }


def function_of(pci: str) -> Device:
    """Return a sub-function of a rail NIC as udev sees it: it hangs below the same PCI address."""
    device = network_device("eth9", pci)
    return {**device, "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/mlx5_core.sf.4/net/eth9"}


def representor_of(pci: str) -> Device:
    """Return the representor of a virtual function of a rail NIC as udev sees it."""
    return {**network_device("eth9", pci), "ATTR{phys_port_name}": "pf0vf3"}


def rdma_device(rdma: str, pci: str, action: str = "add") -> Device:
    """Return a rail NIC's RDMA device as udev sees it."""
    return {
        "ACTION": action,
        "SUBSYSTEM": "infiniband",
        "KERNEL": rdma,
        "KERNELS": f"0000:{pci.split(':')[1]}:01.0 {pci}",
        "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/infiniband/{rdma}",
    }


def read(folder: Path) -> tuple[tuple[Token, ...], ...]:
    """Return the rules of a folder in order; files that cannot be read count as empty, as udev skips bad lines."""
    found: list[tuple[Token, ...]] = []
    for file in sorted(folder.glob("*.rules")):
        try:
            found += rules(file.read_text(encoding="utf-8"), file.name)
        except RuleError:
            continue
    return tuple(found)


Runner = Callable[[list[str]], ProgramResult]
Before = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class After:
    """What starting the units of all NICs did."""

    done: Mapping[str, ProgramResult]
    states: Mapping[str, VolatileNicSettings]
    files: tuple[tuple[str, str], ...]


TIMED_OUT = 124
_seen: dict[Before, After] = {}
_seeing = threading.Lock()


def outcome_of(machine: HostMachine, card: RailCard) -> UdevOutcome:
    """Return what udev's rules make of a rail NIC."""
    rules = read(machine.node.file("/etc/udev/rules.d"))
    return apply(rules, network_device(card.interface, card.pci))


def wanted_units(machine: HostMachine) -> dict[str, RailCard]:
    """Return the units that udev's rules want started for the rail NICs."""
    return {unit: card for card in machine.cards.values() for unit in outcome_of(machine, card).wants}


def start_units(machine: HostMachine, tree: SysfsTree, units: Units, run: Runner) -> None:
    """Start what udev wants for NICs that just appeared."""
    loaded = {}
    for name in wanted_units(machine):
        try:
            loaded[name] = units.unit(name)
        except UnitError as error:
            machine.node.log(f"{name}: {error}")
    if not loaded:
        return
    before = _before(machine, loaded)
    with _seeing:
        after = _seen.get(before)
        if after is None:
            after = _really(machine, tree, loaded, run)
            if all(done.exit_code != TIMED_OUT for done in after.done.values()):
                _seen[before] = after
    for interface, state in after.states.items():
        machine.cards[interface].state = state
    tree.files.write(after.files, is_forced=True)
    _note(machine, units, loaded, after)


def _before(machine: HostMachine, loaded: Mapping[str, UnitFile]) -> Before:
    """Return all that goes into what the units do; NICs were just powered up, so their firmware tells how they are."""
    names = sorted(loaded)
    programs = {command[0] for unit in loaded.values() for command in unit.commands() if command}
    texts = tuple((program, _text(machine, program)) for program in sorted(programs))
    cards = tuple(
        (card.interface, card.pci, card.rdma, card.state, *sysfs.settings(card, machine.firmware))
        for card in machine.cards.values()
    )
    return (tuple((name, loaded[name].text) for name in names), texts, cards)


def _text(machine: HostMachine, program: str) -> str:
    try:
        path = machine.node.file(program)
        return f"{path.stat().st_mode:o} {path.read_text(encoding='utf-8', errors='replace')}"
    except OSError:
        return ""


def _really(machine: HostMachine, tree: SysfsTree, loaded: Mapping[str, UnitFile], run: Runner) -> After:
    done = {}
    for name, unit in loaded.items():
        for command in unit.commands():
            done[name] = run(command)
            if done[name].exit_code != 0:
                break
    files = [file for card in machine.cards.values() for file, _ in sysfs.settings(card, machine.firmware)]
    states = {card.interface: card.state for card in machine.cards.values()}
    return After(done, states, tuple((file, tree.files.read(file)) for file in files))


def _note(machine: HostMachine, units: Units, loaded: Mapping[str, UnitFile], after: After) -> None:
    for name, done in after.done.items():
        units.remember(name, outcome(loaded[name], done))
        if done.exit_code != 0:
            machine.node.log(f"{name}: exit code {done.exit_code}: {(done.stdout + done.stderr).strip()}")
