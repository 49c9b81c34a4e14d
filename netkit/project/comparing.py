"""Compare many devices on all cores in batches, so that only a batch is held in memory."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

from netkit import plan as planning
from netkit.design import Fabric
from netkit.errors import ConfigError, NetkitError, Problem
from netkit.plan import Plan, Running, Unreachable
from netkit.plan.group import grouped
from netkit.platforms.config import Files
from netkit.project.processes import Names, ProcessPool, cores
from netkit.project.project import SILENT, Feedback

COMPARING = "comparing"
FEWEST = 64
"""Below this number of devices, starting processes takes longer than the comparison."""
AT_ONCE = 50
"""Devices per batch: prepared, compared and released before the next batch."""
Known = MutableMapping[str, str]
Read = Mapping[str, Running | Unreachable]
Sides = tuple[Read, Mapping[str, Files]]
"""Running and intended configurations."""


@dataclass(frozen=True, slots=True)
class Work:
    """Devices to compare; both configurations of a batch are requested when it is its turn."""

    fabric: Fabric
    names: Names
    sides: Callable[[Names], Sides]
    known: Known
    before: tuple[Fabric, ...] = ()
    """Earlier fabrics whose cables may still be in place."""
    others: planning.Others | None = None
    """Makes the part of the plan that a limit leaves out; called if routing changes."""
    is_part: bool = False
    """Leave the order to the caller."""
    explain: bool = False
    """List what would be removed as unexplained."""
    feedback: Feedback = SILENT
    processes: int = 0
    """As many as cores, if it is 0."""

    def parts(self) -> tuple[Names, ...]:
        """The devices of each batch."""
        processes = 1 if len(self.names) < FEWEST else self.processes or cores()
        count = max(processes, -(-len(self.names) // AT_ONCE))
        return tuple(self.names[start::count] for start in range(count))

    def answer(self, names: Names, _feedback: Feedback = SILENT) -> "Answer":
        """Make the plan of one batch."""
        pairs: dict[str, str] = {}
        try:
            running, intended = self.sides(names)
            known = ChainMap(pairs, self.known)
            plan = planning.make(self.fabric, running, intended, known=known, is_part=True, explain=self.explain)
        except NetkitError as error:
            return Answer(None, {}, type(error), error.problems)
        return Answer(plan, pairs)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one batch: a plan and the pairs found equal, or the problems."""

    plan: Plan | None
    pairs: Mapping[str, str]
    refusal: type[NetkitError] = NetkitError
    problems: tuple[Problem, ...] = ()


def make(work: Work) -> Plan:
    """Plan all devices, on all cores if they are many."""
    processes = 1 if len(work.names) < FEWEST else work.processes
    with (
        ProcessPool(work.parts(), work.answer, processes, COMPARING) as spread,
        work.feedback.progress(COMPARING, len(work.names)) as count,
    ):
        plans = list(_plans(work, spread.results(work.feedback), count))
    return _together(work, plans)


def _plans(work: Work, answers: Iterable[Answer], count: Callable[[], None]) -> Iterator[Plan]:
    """Yield the plans of batches; collect unreadable configurations and raise them together, other errors at once."""
    unread: list[Problem] = []
    for answer in answers:
        if answer.plan is None and not issubclass(answer.refusal, ConfigError):
            raise answer.refusal(answer.problems)
        unread.extend(answer.problems)
        work.known.update(answer.pairs)
        if answer.plan is not None:
            yield answer.plan
            for _ in (*answer.plan.devices, *answer.plan.unreachable):
                count()
    if unread:
        raise ConfigError(unread)


def joined(fabric: Fabric, names: Sequence[str], plans: Sequence[Plan]) -> Plan:
    """Join the plans of parts, in the order of the devices; without steps, which only the whole has."""
    devices = {device.name: device for plan in plans for device in plan.devices}
    unreachable = {one.name: one for plan in plans for one in plan.unreachable}
    in_order = tuple(devices[name] for name in names if name in devices)
    missed = tuple(unreachable[name] for name in names if name in unreachable)
    return replace(plans[0], devices=in_order, unreachable=missed, groups=grouped(fabric, in_order))


def _together(work: Work, plans: list[Plan]) -> Plan:
    """Merge the plans of batches into one, in the order of the devices."""
    plan = joined(work.fabric, work.names, plans)

    def sides(name: str) -> planning.Sides:
        return planning.sides_of(*work.sides((name,)))(name)

    return plan if work.is_part else planning.ordered(work.fabric, plan, sides, before=work.before, others=work.others)
