"""What udev starts for the NICs at boot, and what a driver does when it is loaded again.

All hosts of a fabric run the same script on NICs alike. It really runs for the first of them; the others, if nothing
that goes into it differs, take over what it did: booting a large lab would otherwise take minutes.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netkit.lab.node import ProgramResult
from netkit.lab.personalities.linux_host import sysfs, udev
from netkit.lab.personalities.linux_host.machine import HostMachine, RailCard, VolatileNicSettings
from netkit.lab.personalities.linux_host.sysfs import SysfsTree
from netkit.lab.personalities.linux_host.unit_file import UnitError, UnitFile
from netkit.lab.personalities.linux_host.units import Units, outcome

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


def outcome_of(machine: HostMachine, card: RailCard) -> udev.UdevOutcome:
    """Return what udev's rules make of a rail NIC."""
    rules = udev.read(machine.node.file("/etc/udev/rules.d"))
    return udev.apply(rules, udev.network_device(card.interface, card.pci))


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
