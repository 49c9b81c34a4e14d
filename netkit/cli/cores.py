"""Comparing many devices on every core: reading large configurations is what a plan of new files costs."""

import multiprocessing
import os
import signal
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from netkit import plan as planning
from netkit.design import Fabric
from netkit.errors import ConfigError, PlanError, Problem
from netkit.plan import Plan, Running, Unreachable
from netkit.plan.group import grouped
from netkit.platforms.config import Files

FEWEST = 64
"""Fewer devices are compared sooner than processes start."""
Known = MutableMapping[str, str]
Read = Mapping[str, Running | Unreachable]


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be compared."""

    fabric: Fabric
    running: Read
    intended: Mapping[str, Files]
    known: Known

    def share(self, names: tuple[str, ...]) -> "Work":
        """Return the part of the work that is about some devices."""
        running = {name: self.running[name] for name in names if name in self.running}
        return replace(self, running=running, intended={name: self.intended[name] for name in names})

    def plan(self) -> Plan:
        """Return the plan, made here."""
        return planning.make(self.fabric, self.running, self.intended, known=self.known)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process has to say: a plan and the pairs it found equal, or what is wrong."""

    plan: Plan | None
    pairs: Mapping[str, str]
    problems: tuple[Problem, ...] = ()


def make(work: Work) -> Plan:
    """Return the plan of all devices, made on every core when they are many."""
    names, cores = tuple(work.intended), len(os.sched_getaffinity(0))
    if len(names) < FEWEST or cores == 1:
        return work.plan()
    shares = [names[start::cores] for start in range(cores)]
    answers = _answers([work.share(share) for share in shares])
    problems = [problem for answer in answers for problem in answer.problems]
    if problems:
        raise ConfigError(problems)
    for answer in answers:
        work.known.update(answer.pairs)
    return _together(work, [answer.plan for answer in answers if answer.plan])


def _answers(shares: list[Work]) -> list[Answer]:
    processes = multiprocessing.get_context("fork")  # what is to be compared is there already, and need not be sent
    started = []
    for share in shares:
        receiver, sender = processes.Pipe(duplex=False)
        process = processes.Process(target=_answer, args=(share, sender), daemon=True)
        process.start()
        sender.close()
        started.append((process, receiver))
    answers = [_received(receiver) for _, receiver in started]
    for process, _ in started:
        process.join()
    return answers


def _answer(share: Work, sender: Connection) -> None:
    """Run in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked ends this one
    before = set(share.known)
    try:
        plan = share.plan()
    except ConfigError as error:
        sender.send(Answer(None, {}, error.problems))
        return
    sender.send(Answer(plan, {pair: said for pair, said in share.known.items() if pair not in before}))


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
    ordered = tuple(devices[name] for name in work.intended if name in devices)
    return replace(
        plans[0],
        devices=ordered,
        unreachable=tuple(missed[name] for name in work.intended if name in missed),
        groups=grouped(work.fabric, ordered),
    )
