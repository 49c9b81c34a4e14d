"""udev rules for the rail NICs: their names and the units to start.

The lab's interfaces have their rail names from the start; the rules are evaluated for the name they would assign.
"""

import contextlib
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
RAIL = "ENV{NETKIT_RAIL}"
WANTS = "ENV{SYSTEMD_WANTS}"
Device = Mapping[str, str]
Token = tuple[str, str, str]


class RuleError(Exception):
    """An invalid rule."""


@dataclass(frozen=True, slots=True)
class UdevOutcome:
    """The result of the rules for a device."""

    name: str
    rail: str
    wants: tuple[str, ...]
    runs: tuple[str, ...]


def rules(text: str, file: str = "rules") -> tuple[tuple[Token, ...], ...]:
    """Parse a rules file; raise RuleError with every problem."""
    found, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            tokens = tuple(_tokens(line))
            if not tokens or not all(map(_is_known, tokens)):
                problems.append(f"{file}:{number}: cannot be read: {line}")
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


def apply(rules: Sequence[Sequence[Token]], device: Device) -> UdevOutcome:
    state: dict[str, str] = {}
    runs: list[str] = []
    goto = ""
    for tokens in rules:
        if goto and ("LABEL", "=", goto) not in tokens:
            continue
        goto = ""
        if all(_matches({**device, **state}, token) for token in tokens):
            goto = _assign(state, runs, tokens, device)
    return UdevOutcome(state.get("NAME", ""), state.get(RAIL, ""), tuple(state.get(WANTS, "").split()), tuple(runs))


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


def _matches(device: Device, token: Token) -> bool:
    key, operator, value = token
    if operator not in {"==", "!="}:
        return True
    if key.startswith("ATTR") and key not in device:
        return False  # a missing attribute matches nothing
    texts = device.get(key, "").split() if key == "KERNELS" else [device.get(key, "")]
    is_match = any(fnmatch.fnmatchcase(text, glob) for text in texts for glob in value.split("|"))
    return is_match == (operator == "==")


def network_device(interface: str, pci: str, action: str = "add") -> Device:
    """A rail NIC's interface as udev sees it."""
    return {
        "ACTION": action,
        "SUBSYSTEM": "net",
        "KERNEL": interface,
        "KERNELS": f"0000:{pci.split(':')[1]}:01.0 {pci}",
        "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/net/{interface}",
        "ATTR{phys_port_name}": "p0",
    }


def function_of(pci: str) -> Device:
    """A sub-function of a rail NIC: it has the same PCI address in its path."""
    device = network_device("eth9", pci)
    return {**device, "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/mlx5_core.sf.4/net/eth9"}


def representor_of(pci: str) -> Device:
    """The representor of a virtual function of a rail NIC."""
    return {**network_device("eth9", pci), "ATTR{phys_port_name}": "pf0vf3"}


def rdma_device(rdma: str, pci: str) -> Device:
    """A rail NIC's RDMA device as udev sees it."""
    return {
        "ACTION": "add",
        "SUBSYSTEM": "infiniband",
        "KERNEL": rdma,
        "KERNELS": f"0000:{pci.split(':')[1]}:01.0 {pci}",
        "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/infiniband/{rdma}",
    }


def read(folder: Path) -> tuple[tuple[Token, ...], ...]:
    """Read the rules of a folder in order; invalid files are skipped."""
    found: list[tuple[Token, ...]] = []
    for file in sorted(folder.glob("*.rules")):
        try:
            found += rules(file.read_text(encoding="utf-8"), file.name)
        except RuleError:
            continue
    return tuple(found)


Runner = Callable[[list[str]], ProgramResult]
UnitInputs = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class UnitEffects:
    """The effects of starting the units of all NICs of a host."""

    results: Mapping[str, ProgramResult]
    states: Mapping[str, VolatileNicSettings]
    files: tuple[tuple[str, str], ...]


TIMED_OUT = 124
_effects: dict[UnitInputs, UnitEffects] = {}
_effects_lock = threading.Lock()


def outcome_of(machine: HostMachine, card: RailCard) -> UdevOutcome:
    rules = read(machine.node.file("/etc/udev/rules.d"))
    return apply(rules, network_device(card.interface, card.pci))


def wanted_units(machine: HostMachine) -> dict[str, RailCard]:
    """The units that the udev rules start for the rail NICs."""
    return {unit: card for card in machine.cards.values() for unit in outcome_of(machine, card).wants}


def start_units(machine: HostMachine, tree: SysfsTree, units: Units, run: Runner) -> None:
    """Start the units for NICs that just appeared.

    Hosts that differ in nothing the units read share one run: a boot of many hosts would spend minutes on them.
    """
    loaded = {}
    for name in wanted_units(machine):
        try:
            loaded[name] = units.unit(name)
        except UnitError as error:
            machine.node.log(f"{name}: {error}")
    if not loaded:
        return
    inputs = _inputs(machine, loaded)
    with _effects_lock:
        effects = _effects.get(inputs)
        if effects is None:
            effects = _run_units(machine, tree, loaded, run)
            if all(result.exit_code != TIMED_OUT for result in effects.results.values()):
                _effects[inputs] = effects
    for interface, state in effects.states.items():
        machine.cards[interface].state = state
    tree.files.write(effects.files, is_forced=True)
    for name, result in effects.results.items():
        units.remember(name, outcome(loaded[name], result))
        if result.exit_code != 0:
            machine.node.log(f"{name}: exit code {result.exit_code}: {(result.stdout + result.stderr).strip()}")


def _inputs(machine: HostMachine, loaded: Mapping[str, UnitFile]) -> UnitInputs:
    """Everything the units depend on; after power-up the firmware determines the NIC settings."""
    names = sorted(loaded)
    programs = {command[0] for unit in loaded.values() for command in unit.commands() if command}
    texts = []
    for program in sorted(programs):
        with contextlib.suppress(OSError):
            path = machine.node.file(program)
            texts.append((program, path.stat().st_mode, path.read_text(encoding="utf-8", errors="replace")))
    cards = tuple(
        (card.interface, card.pci, card.rdma, card.state, *sysfs.settings(card, machine.firmware, machine.family))
        for card in machine.cards.values()
    )
    return (tuple((name, loaded[name].text) for name in names), tuple(texts), cards)


def _run_units(machine: HostMachine, tree: SysfsTree, loaded: Mapping[str, UnitFile], run: Runner) -> UnitEffects:
    results = {}
    for name, unit in loaded.items():
        for command in unit.commands():
            results[name] = run(command)
            if results[name].exit_code != 0:
                break
    files = [
        file for card in machine.cards.values() for file, _ in sysfs.settings(card, machine.firmware, machine.family)
    ]
    states = {card.interface: card.state for card in machine.cards.values()}
    return UnitEffects(results, states, tuple((file, tree.files.read(file)) for file in files))
