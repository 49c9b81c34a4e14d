"""The right to change a fabric: held by one process on any machine, and proven again before each write.

Whoever is the only consumer of the fabric's queue at the broker holds the lease. The broker gives it to the next one
once the connection of the holder is gone. Each holder writes a higher number beside the runs of the fabric, so that one
who lost the lease without noticing is stopped by the number too. Between the last proof and the write itself nothing
can stop a process; there the timers of the devices protect, and the comparison with the plan before each change.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from netkit import private
from netkit.deploy.apply import never
from netkit.deploy.journal import LeaseLostError, unwritable
from netkit.errors import DeployError, Problem
from netkit.fleet.link import BrokerLink, InUseError, LinkError
from netkit.fleet.settings import FleetError

PATIENCE_S = 15.0
"""How long the broker may take to prove that the lease is still held."""
PULSE_S = 5.0
"""The lease is proven at least so often, which also keeps the connection alive."""
RETRY_S = 1.0
FILE = "lease"
REMEDY = "wait until it has ended: `netkit fleet status` shows which worker changes it"
Connect = Callable[[float], BrokerLink]
"""Opens a link whose broker has so long to answer."""


class HeldElsewhereError(FleetError):
    """Another process holds the lease."""


class FabricLease:
    """A lease that is held until the end of a block."""

    def __init__(
        self,
        connect: Connect,
        queue: str,
        fabric: str,
        *,
        wait_s: float,
        runs: Path | None = None,
        is_stopping: Callable[[], bool] = never,
    ) -> None:
        """Take the lease, waiting for its holder so long; `runs` is the folder whose runs it protects."""
        self._is_stopping = is_stopping
        self._fabric, self._queue = fabric, queue
        self._proving = threading.Lock()
        self._proven_s = float("-inf")
        self._lost: LeaseLostError | None = None
        self._is_over = threading.Event()
        self._link = self._taken(connect, time.monotonic() + wait_s)
        self._file = runs.parent / FILE if runs else None
        try:
            self.number = 0 if self._file is None else _next_number(self._file)
        except BaseException:
            self._link.__exit__()
            raise
        os.register_at_fork(after_in_child=self._forget)
        self._pulse = threading.Thread(target=self._keep, daemon=True)
        self._pulse.start()

    def _taken(self, connect: Connect, until_s: float) -> BrokerLink:
        while True:
            try:
                link = connect(PATIENCE_S)
                try:
                    link.occupy(self._queue)
                except BaseException:
                    link.__exit__()
                    raise
                return link
            except InUseError:
                if time.monotonic() > until_s or self._is_stopping():
                    what = f"{self._fabric} is being changed by another worker or coordinator"
                    raise HeldElsewhereError(Problem(what, REMEDY)) from None
            except LinkError as error:
                if time.monotonic() > until_s or self._is_stopping():
                    what = f"the broker does not give the lease of {self._fabric}: {error}"
                    raise FleetError(Problem(what, "see its log")) from None
            time.sleep(RETRY_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        with self._proving:
            self._lost = self._lost or self._loss("it was given back")
            self._link.__exit__()
        self._pulse.join()

    def check(self) -> None:
        """Prove that the lease is still held; LeaseLostError once it is not. Several threads may ask.

        A proof that began after this was called is as good as one of its own.
        """
        asked_s = time.monotonic()
        with self._proving:
            if self._lost is None and self._proven_s <= asked_s:
                self._prove()
            if self._lost is not None:
                raise LeaseLostError(self._lost.problems)

    def _prove(self) -> None:
        began_s = time.monotonic()
        try:
            if self._link.consumers(self._queue) != 1:
                self._lost = self._loss("the broker does not know its holder any more")
            elif self._file is not None and (number := _number(self._file)) != self.number:
                self._lost = self._loss(f"{self._file} has the number {number} of a later holder")
        except (LinkError, DeployError, OSError) as error:
            self._lost = self._loss(str(error))
        self._proven_s = began_s

    def _loss(self, why: str) -> LeaseLostError:
        what = f"the lease of {self._fabric} is lost, so nothing more was written: {why}"
        return LeaseLostError(Problem(what, "the next worker continues the run; or netkit deploy --resume --fleet DIR"))

    def _keep(self) -> None:
        while not self._is_over.wait(PULSE_S):
            with suppress(LeaseLostError):
                self.check()

    def _forget(self) -> None:
        """Leave the connection to the process that holds the lease, in a child that inherited it."""
        with suppress(Exception):
            self._link.detach()


def _number(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0
    except ValueError:
        raise DeployError(Problem("is damaged", "remove it while no run changes the fabric", file=str(file))) from None


def _next_number(file: Path) -> int:
    """Write a higher number than any earlier holder."""
    try:
        private.make_folder(file.parent)
        number = _number(file) + 1
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        with os.fdopen(private.open_file(partial, os.O_WRONLY | os.O_TRUNC), "w", encoding="ascii") as stream:
            stream.write(str(number))
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError as error:
        raise DeployError(unwritable(file, error)) from None
    return number
