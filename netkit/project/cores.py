"""Compare many devices on all cores in batches, so that only a batch is held in memory."""

import multiprocessing
import os
import signal
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from netkit import plan as planning
from netkit.design import Fabric
from netkit.errors import ConfigError, NetkitError, PlanError, Problem
from netkit.plan import Plan, Running, Unreachable
from netkit.plan.group import grouped
from netkit.platforms.config import Files
from netkit.project.feedback import SILENT, Feedback

FEWEST = 64
"""Below this number of devices, starting processes takes longer than the comparison."""
AT_ONCE = 50
"""Devices per batch: prepared, compared and released before the next batch."""
Known = MutableMapping[str, str]
Names = tuple[str, ...]
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
    others: Callable[[], Plan] | None = None
    """Makes the part of the plan that a limit leaves out; called if routing changes."""
    is_part: bool = False
    """Leave the order to the caller."""
    feedback: Feedback = SILENT

    def answer(self, names: Names) -> "Answer":
        """Make the plan of one batch."""
        pairs: dict[str, str] = {}
        try:
            running, intended = self.sides(names)
            plan = planning.make(self.fabric, running, intended, known=ChainMap(pairs, self.known), is_part=True)
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
    with work.feedback.progress("comparing", len(work.names)) as count, _answers(work) as answers:
        plans = list(_plans(work, answers, count))
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


@contextmanager
def _answers(work: Work) -> Iterator[Iterator[Answer]]:
    """Yield the answers of all batches in order, and end every process afterwards."""
    cores = len(os.sched_getaffinity(0))
    count = max(cores, -(-len(work.names) // AT_ONCE))
    parts = [work.names[start::count] for start in range(count)]
    if len(work.names) < FEWEST or cores == 1:
        yield map(work.answer, parts)
        return
    processes = multiprocessing.get_context("fork")  # the work is inherited and need not be pickled
    started: list[tuple[BaseProcess, Connection]] = []
    try:
        for start in range(cores):
            receiver, sender = processes.Pipe(duplex=False)
            open_here = [*(other for _, other in started), receiver]
            arguments = work, parts[start::cores], sender, open_here
            process = processes.Process(target=_answer, args=arguments, daemon=True)
            process.start()
            sender.close()
            started.append((process, receiver))
        yield (_received(started[number % cores][1]) for number in range(count))
    finally:
        for worker, receiver in started:
            receiver.close()
            worker.kill()
            worker.join()


def _answer(work: Work, parts: list[Names], sender: Connection, receivers: list[Connection]) -> None:
    """Run in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    for receiver in receivers:  # left open, they would keep this process blocked after the parent has died
        receiver.close()
    for part in parts:
        sender.send(work.answer(part))


def _received(receiver: Connection) -> Answer:
    try:
        answer = receiver.recv()
    except EOFError:
        raise PlanError(Problem("a process that compares configurations died", "check for lack of memory")) from None
    if not isinstance(answer, Answer):
        raise TypeError(answer)
    return answer


def _together(work: Work, plans: list[Plan]) -> Plan:
    """Merge the plans of batches into one, in the order of the devices."""
    devices = {device.name: device for plan in plans for device in plan.devices}
    unreachable = {one.name: one for plan in plans for one in plan.unreachable}
    in_order = tuple(devices[name] for name in work.names if name in devices)
    plan = replace(
        plans[0],
        devices=in_order,
        unreachable=tuple(unreachable[name] for name in work.names if name in unreachable),
        groups=grouped(work.fabric, in_order),
    )

    def sides(name: str) -> planning.Sides:
        return planning.sides_of(*work.sides((name,)))(name)

    return plan if work.is_part else planning.ordered(work.fabric, plan, sides, before=work.before, others=work.others)
