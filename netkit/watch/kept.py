"""A connection to one device that is kept for as long as it is watched, and made anew when it is lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from netkit.errors import NetkitError
from netkit.facts import Sample
from netkit.watch.feed import Condition, Listener

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
GREETING = threading.BoundedSemaphore(32)
"""So many log in at a time: a login costs more than many answers."""
HANG_UP_S = 2.0


LONGEST_QUEUE_S = 3.0
"""After so long a device logs in all the same: those before it may hang."""


@contextmanager
def _greeting() -> Iterator[None]:
    """Wait for a turn to log in."""
    has_turn = GREETING.acquire(timeout=LONGEST_QUEUE_S)
    try:
        yield
    finally:
        if has_turn:
            GREETING.release()


class Opened(Protocol):
    """What can be opened and hung up on."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Hang up; what is being asked ends."""


Line = TypeVar("Line", bound=Opened)
LineTaken_contra = TypeVar("LineTaken_contra", bound=Opened, contravariant=True)


class NoAnswerError(Exception):
    """A device is connected, and tells no counters."""


class Talk(Protocol[LineTaken_contra]):
    """What is done over a connection: it brings samples until it is told to stop, or fails."""

    device: str

    def over(self, line: LineTaken_contra, listener: Listener, stopped: threading.Event) -> None:
        """Bring samples of the device."""


class Kept(Generic[Line]):
    """The feed of one device. Whatever happens on it happens in its own thread."""

    def __init__(self, talk: Talk[Line], connect: Callable[[], Line]) -> None:
        self._talk, self._connect = talk, connect
        self._wait_s = FIRST_WAIT_S
        self._line: Line | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, listener: Listener) -> None:
        """Begin; returns at once."""
        name = f"watch {self._talk.device}"
        self._thread = threading.Thread(target=self._run, args=(_Heard(listener, self._well),), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and hang up; what is being asked ends too."""
        self._stopped.set()
        if self._line is not None:
            with suppress(Exception):
                self._line.close()

    def join(self, timeout_s: float = HANG_UP_S) -> None:
        """Wait until the thread has ended, but not for ever."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _well(self) -> None:
        self._wait_s = FIRST_WAIT_S

    def _run(self, listener: Listener) -> None:
        device = self._talk.device
        while not self._stopped.is_set():
            try:
                self._once(listener)
            except NetkitError as error:
                why = "; ".join(problem.message.removeprefix(f"{device}: ") for problem in error.problems)
                self._lost(listener, why)
            except NoAnswerError as error:
                self._lost(listener, str(error))
            except Exception as error:  # of one device; the others are none the worse for it
                self._lost(listener, f"reading it failed: {type(error).__name__}: {error}")

    def _lost(self, listener: Listener, why: str) -> None:
        if self._stopped.is_set():
            return
        listener.tell(self._talk.device, Condition("gone", why, again_s=self._wait_s))
        self._stopped.wait(self._wait_s)
        self._wait_s = min(LONGEST_WAIT_S, self._wait_s * 2)

    def _once(self, listener: Listener) -> None:
        """Connect, and talk for as long as it stands."""
        line = self._line = self._connect()
        try:
            listener.tell(self._talk.device, Condition())
            with _greeting():
                if self._stopped.is_set():
                    return
                line.open()
            self._talk.over(line, listener, self._stopped)
        finally:
            with suppress(Exception):
                line.close()


class _Heard:
    """The listener, and whoever wants to know that a device is well again."""

    def __init__(self, listener: Listener, well: Callable[[], None]) -> None:
        self._listener, self._well = listener, well

    def deliver(self, device: str, sample: Sample) -> None:
        """Pass on counters of a device."""
        self._well()
        self._listener.deliver(device, sample)

    def tell(self, device: str, condition: Condition) -> None:
        """Pass on how it goes with a device."""
        self._listener.tell(device, condition)
