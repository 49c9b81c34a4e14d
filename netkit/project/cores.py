"""Comparing many devices on every core, some at a time: what is rendered and read for them is held no longer."""

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
"""Fewer devices are compared sooner than processes start."""
AT_ONCE = 50
"""So many devices a process prepares, compares and forgets before it takes the next ones."""
Known = MutableMapping[str, str]
Names = tuple[str, ...]
Read = Mapping[str, Running | Unreachable]
Sides = tuple[Read, Mapping[str, Files]]
"""What devices run, and what they should."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be compared; both sides of some devices are asked for when it is their turn."""

    fabric: Fabric
    names: Names
    sides: Callable[[Names], Sides]
    known: Known
    before: tuple[Fabric, ...] = ()
    """Fabrics whose cables may still be there."""
    others: Callable[[], Plan] | None = None
    """The part of the plan that a limit leaves out; asked where routing changes."""
    is_part: bool = False
    """Whether the order is left to others."""
    feedback: Feedback = SILENT

    def answer(self, names: Names) -> "Answer":
        """Return the part of the plan that is about some devices."""
        pairs: dict[str, str] = {}
        try:
            running, intended = self.sides(names)
            plan = planning.make(self.fabric, running, intended, known=ChainMap(pairs, self.known), is_part=True)
        except NetkitError as error:
            return Answer(None, {}, type(error), error.problems)
        return Answer(plan, pairs)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of some devices: a plan and the pairs that were found equal, or what is wrong."""

    plan: Plan | None
    pairs: Mapping[str, str]
    refusal: type[NetkitError] = NetkitError
    problems: tuple[Problem, ...] = ()


def make(work: Work) -> Plan:
    """Return the plan of all devices, made on every core when they are many."""
    with work.feedback.progress("comparing", len(work.names)) as count, _answers(work) as answers:
        plans = list(_plans(work, answers, count))
    return _together(work, plans)


def _plans(work: Work, answers: Iterable[Answer], count: Callable[[], None]) -> Iterator[Plan]:
    """Yield the plans of parts; configurations that cannot be read are reported together, anything else at once."""
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
    """Yield the answers of all parts in their order, and leave no process behind."""
    cores = len(os.sched_getaffinity(0))
    count = max(cores, -(-len(work.names) // AT_ONCE))
    parts = [work.names[start::count] for start in range(count)]
    if len(work.names) < FEWEST or cores == 1:
        yield map(work.answer, parts)
        return
    processes = multiprocessing.get_context("fork")  # what is to be compared is there already, and need not be sent
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
    """Run in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked ends this one
    for receiver in receivers:  # held open here, they would keep this process waiting when that one is gone
        receiver.close()
    for part in parts:
        sender.send(work.answer(part))


def _received(receiver: Connection) -> Answer:
    try:
        answer = receiver.recv()
    except EOFError:
        raise PlanError(Problem("a process that compares configurations died", "is there enough memory?")) from None
    if not isinstance(answer, Answer):
        raise TypeError(answer)
    return answer


def _together(work: Work, plans: list[Plan]) -> Plan:
    """Return plans of parts as the plan of all, in the order of the devices."""
    devices = {device.name: device for plan in plans for device in plan.devices}
    missed = {one.name: one for plan in plans for one in plan.unreachable}
    in_turn = tuple(devices[name] for name in work.names if name in devices)
    plan = replace(
        plans[0],
        devices=in_turn,
        unreachable=tuple(missed[name] for name in work.names if name in missed),
        groups=grouped(work.fabric, in_turn),
    )

    def sides(name: str) -> planning.Sides:
        return planning.sides_of(*work.sides((name,)))(name)

    return plan if work.is_part else planning.ordered(work.fabric, plan, sides, before=work.before, others=work.others)
