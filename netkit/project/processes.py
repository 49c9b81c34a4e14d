"""Spread work on many devices over processes, since one interpreter keeps one core busy."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, cast

from netkit.errors import NetkitError, Problem
from netkit.project.project import Count, Feedback

LEAST = 24
"""Devices per process: with fewer, starting it takes longer than it saves."""
Names = tuple[str, ...]
T = TypeVar("T")
Work = Callable[[Names, Feedback], T]


class ProcessError(NetkitError):
    """A process ended before its work was done."""


class _Here:
    """Whether this process is one of those that share work: it starts no others."""

    is_part = False


def cores() -> int:
    """How many cores this process may use."""
    return 1 if _Here.is_part else len(os.sched_getaffinity(0))


def divided(names: Sequence[str], processes: int, least: int = 0) -> tuple[Names, ...]:
    """Divide devices into as many parts as there are processes for them; neighbours in the list stay together.

    A part has `LEAST` devices or more, or as many as `least`.
    """
    most = 1 if _Here.is_part else processes or cores()
    count = max(1, min(most, len(names) // (least or LEAST)))
    size, more = divmod(len(names), count)
    ends = [number * size + min(number, more) for number in range(count + 1)]
    return tuple(tuple(names[start:end]) for start, end in pairwise(ends))


@dataclass(frozen=True, slots=True)
class _Message:
    """What a process reports: progress, a note, the result of a part, or why there is none."""

    kind: Literal["count", "note", "result", "refusal", "defect"]
    number: int = 0
    content: Any = None


class ProcessPool(Generic[T]):
    """Parts of some work, each done in one of several processes; all end with the context.

    Of what the work reports, the progress of `title` is counted.

    The processes are forks, so what they need is not pickled, but what they return is. Enter this context before any
    that starts a thread.
    """

    def __init__(self, parts: Sequence[Names], work: Work[T], processes: int, title: str) -> None:
        self._parts, self._work, self._title = parts, work, title
        self._number = min(len(parts), 1 if _Here.is_part else processes or cores())
        self._started: dict[Connection, BaseProcess] = {}

    def __enter__(self) -> Self:
        if self._number > 1:
            numbered = list(enumerate(self._parts))
            for start in range(self._number):
                self._start(numbered[start :: self._number])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for receiver, process in self._started.items():
            receiver.close()
            process.kill()
            process.join()

    def _start(self, parts: Sequence[tuple[int, Names]]) -> None:
        processes = multiprocessing.get_context("fork")
        receiver, sender = processes.Pipe(duplex=False)
        inherited = (*self._started, receiver)
        process = processes.Process(
            target=_serve, args=(self._work, parts, _Sending(sender, self._title), inherited), daemon=True
        )
        process.start()
        sender.close()
        self._started[receiver] = process

    def results(self, feedback: Feedback, count: Count = lambda: None) -> Iterator[T]:
        """Yield the result of each part, in the order of the parts; the first error in this order ends all."""
        if not self._started:
            here = _Counting(feedback, count, self._title)
            yield from (self._work(names, here) for names in self._parts)
            return
        found: dict[int, _Message] = {}
        messages = self._messages()
        for number in range(len(self._parts)):
            while number not in found:
                message = next(messages, None)
                if message is None:
                    raise ProcessError(Problem("a process of netkit died", "check for lack of memory"))
                if message.kind == "count":
                    count()
                elif message.kind == "note":
                    feedback.note(message.content)
                else:
                    found[message.number] = message
            yield _content(found.pop(number))

    def _messages(self) -> Iterator[_Message]:
        """Yield what any process sends until all have ended, or one has died."""
        running = dict(self._started)
        while running:
            for receiver in cast("list[Connection]", wait(list(running))):
                try:
                    yield receiver.recv()
                except EOFError:
                    running.pop(receiver).join()


class _Counting(Feedback):
    """The feedback of work whose progress the caller shows."""

    def __init__(self, feedback: Feedback, count: Count, title: str) -> None:
        self._feedback, self._count, self._title = feedback, count, title

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Count]:
        if title == self._title:
            yield self._count
        else:
            with self._feedback.progress(title, total) as count:
                yield count

    def note(self, line: str) -> None:
        self._feedback.note(line)


class _Sending(Feedback):
    """Sends feedback from any thread of a process to the one that started it."""

    def __init__(self, sender: Connection, title: str) -> None:
        self._sender, self._title, self._lock = sender, title, threading.Lock()

    def send(self, message: _Message) -> None:
        with self._lock, suppress(BrokenPipeError):  # the reader has what it wants
            self._sender.send(message)

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Count]:
        del total
        yield (lambda: self.send(_Message("count"))) if title == self._title else (lambda: None)

    def note(self, line: str) -> None:
        self.send(_Message("note", content=line))


def _content(message: _Message) -> Any:
    """The result of a part, or raise its error."""
    if message.kind == "refusal":
        refusal, problems = message.content
        raise refusal(problems)
    if message.kind == "defect":
        raise message.content
    return message.content


def _serve(
    work: Work[Any], parts: Iterable[tuple[int, Names]], feedback: _Sending, inherited: Iterable[Connection]
) -> None:
    """Run in a separate process."""
    _Here.is_part = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    for receiver in inherited:  # left open, they would keep a process blocked after the parent has died
        receiver.close()
    for number, names in parts:
        try:
            message = _Message("result", number, work(names, feedback))
        except NetkitError as error:
            message = _Message("refusal", number, (type(error), error.problems))
        except Exception as error:
            defect = RuntimeError(f"{type(error).__name__}: {error}")  # not every error can be pickled
            defect.add_note(traceback.format_exc())
            message = _Message("defect", number, defect)
        feedback.send(message)
