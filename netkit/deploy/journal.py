"""A run on disk: what was to be done, what ran before, and every step before it happened.

The folder is its owner's alone: what a device ran before may hold hashes of passwords, and is needed to get it back.
"""

import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from netkit import plan as planning
from netkit.deploy import shape
from netkit.deploy.clock import CLOCK, Clock
from netkit.deploy.ledger import Ledger, lines
from netkit.deploy.shape import FAILED, DeviceOutcome, Options, Outcome, Phase, State
from netkit.errors import DeployError, NetkitError, Problem
from netkit.plan import Plan, Running
from netkit.platforms.config import Files

JOURNAL, PLAN, INTENDED, OWNER = "journal.jsonl", "plan.json", "intended.json", "owner.json"
OPTIONS, OUTCOME, BEFORE = "options.json", "outcome.json", "before"
UNDOES = "undoes.json"
SAMPLE, CONFIRMED, FINISHED = "sample", "confirmed", "finished"
Owner = Mapping[str, Files]


class JournalError(DeployError):
    """The journal cannot be written: what it would have announced must not happen."""

    exit_code = FAILED


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal."""

    at_s: float
    step: str
    device: str = ""
    wave: int = 0
    revert_s: int = 0
    note: str = ""
    outcome: DeviceOutcome | None = None


@dataclass(frozen=True, slots=True)
class Orders:
    """What a run was told."""

    plan: Plan
    intended: Mapping[str, Files]
    owner: Owner | None
    options: Options
    undoes: str = ""
    """The run that this one takes back."""


NAMES = tuple(item.name for item in fields(Entry))
ALL_FILES = dict[str, dict[str, str]]
REMEDY = "`netkit history` lists the runs"


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads a kind of thing; making one takes a while, and a deploy only writes."""
    return TypeAdapter(kind)


class Journal:
    """The folder of one run. Several threads may write."""

    def __init__(self, folder: Path, clock: Clock = CLOCK) -> None:
        self.folder, self.run, self._clock = folder, folder.name, clock
        self._ledger: Ledger | None = None
        self._broken: Problem | None = None
        self._opening = threading.Lock()

    @classmethod
    def new(cls, root: Path, clock: Clock = CLOCK) -> "Journal":
        """Return the journal of a run to come; nothing is written yet."""
        began = time.strftime("%Y%m%dT%H%M%S", time.gmtime(clock.wall_s()))
        return cls(root / f"{began}-{secrets.token_hex(2)}", clock)

    def start(self, orders: Orders) -> None:
        """Write down what is to be done; DeployError when that cannot be: then there is no such run."""
        try:
            self._start(orders)
        except JournalError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise DeployError(error.problems) from None

    def _start(self, orders: Orders) -> None:
        with self._written(self.folder):
            (self.folder / BEFORE).mkdir(mode=0o700, parents=True)
            self.folder.chmod(0o700)
        self._save(PLAN, planning.write(orders.plan))
        self._save(INTENDED, json.dumps({name: dict(files) for name, files in orders.intended.items()}))
        if orders.owner is not None:
            self._save(OWNER, json.dumps({name: dict(files) for name, files in orders.owner.items()}))
        if orders.undoes:
            self._save(UNDOES, json.dumps(orders.undoes))
        self._save(OPTIONS, json.dumps(asdict(orders.options)))

    def step(self, step: str, device: str = "", *, wave: int = 0, revert_s: int = 0, note: str = "") -> None:
        """Write down a step that is about to happen."""
        self._write(Entry(self._clock.wall_s(), step, device, wave, revert_s, note))

    def failed(self, outcome: DeviceOutcome) -> None:
        """Write down that a device failed, before it is known how it comes out."""
        self._write(Entry(self._clock.wall_s(), Phase.SETTLE, outcome.device, outcome.wave, outcome=outcome))

    def end(self, outcome: DeviceOutcome) -> None:
        """Write down how a device came out."""
        self._write(Entry(self._clock.wall_s(), Phase.END, outcome.device, outcome.wave, outcome=outcome))

    def finish(self, outcome: Outcome) -> None:
        """Write down how the run came out: there is nothing left to resume."""
        self._write(Entry(self._clock.wall_s(), FINISHED))
        self._save(OUTCOME, shape.write(outcome))
        self.close()

    def close(self) -> None:
        """Close the files."""
        if self._ledger is not None:
            self._ledger.close()
        self._ledger = None

    def keep(self, device: str, running: Running) -> None:
        """Keep what a device runs before it is changed."""
        found = {"files": dict(running.files), "version": running.version}
        self._save(f"{BEFORE}/{device}.json", json.dumps(found))

    def before(self, device: str) -> Running | None:
        """Return what a device ran before; None when it was never about to be changed."""
        file = self.folder / BEFORE / f"{device}.json"
        return _adapter(Running).validate_json(file.read_text(encoding="utf-8")) if file.exists() else None

    def orders(self) -> Orders:
        """Return what the run was told; DeployError when there is no such run."""
        try:
            plan = planning.read(self._text(PLAN), str(self.folder / PLAN))
            intended = _adapter(ALL_FILES).validate_json(self._text(INTENDED))
            has_owner = (self.folder / OWNER).exists()
            owner = _adapter(ALL_FILES).validate_json(self._text(OWNER)) if has_owner else None
            return Orders(plan, intended, owner, _adapter(Options).validate_json(self._text(OPTIONS)), self.undoes())
        except (OSError, ValidationError):
            raise DeployError(Problem(f"there is no run {self.run}, or not a whole one", REMEDY)) from None

    def undoes(self) -> str:
        """Return the run that this one takes back, if it does that and was told to the end what to do."""
        is_whole = (self.folder / UNDOES).exists() and (self.folder / OPTIONS).exists()
        return _adapter(str).validate_json(self._text(UNDOES)) if is_whole else ""

    def is_to_be_undone(self) -> bool:
        """Whether the run stopped for a failure, was told to take back then what it had done, and nobody has yet."""
        outcome, options = self.outcome(), self.orders().options
        if options.on_failure != "rollback" or outcome is None or not outcome.stopped:
            return False
        is_changed = any(one.wave and one.state is not State.AS_BEFORE for one in outcome.devices)
        others = (Journal(folder) for folder in self.folder.parent.glob("*/"))
        return is_changed and all(other.undoes() != self.run for other in others)

    def entries(self) -> tuple[Entry, ...]:
        """Return every whole line; a process that was killed may leave half of one."""
        file = self.folder / JOURNAL
        found = []
        for line in lines(file) if file.exists() else ():
            try:
                found.append(_adapter(Entry).validate_json(line))
            except ValidationError:
                continue
        return tuple(found)

    def outcome(self) -> Outcome | None:
        """Return how the run came out; None while it has not finished."""
        file = self.folder / OUTCOME
        return shape.read(file.read_text(encoding="utf-8"), str(file)) if file.exists() else None

    def _write(self, entry: Entry) -> None:
        plain = {name: value for name in NAMES if (value := getattr(entry, name)) or name == "at_s"}
        if entry.outcome is not None:
            plain["outcome"] = asdict(entry.outcome)
        with self._written(self.folder / JOURNAL):
            with self._opening:
                ledger = self._ledger = self._ledger or Ledger(self.folder / JOURNAL)
            ledger.add(json.dumps(plain))

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def _save(self, name: str, text: str) -> None:
        """Write a file whole or not at all, for nobody else to read."""
        file = self.folder / name
        partial = file.with_name(f".{file.name}")
        with self._written(file):
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)

    @contextmanager
    def _written(self, file: Path) -> Iterator[None]:
        """Tell of a file that cannot be written within a block; after that none is: what is there stays in order."""
        if self._broken is not None:
            raise JournalError(self._broken)
        try:
            yield
        except OSError as error:
            self._broken = unwritable(file, error)
            raise JournalError(self._broken) from None


def unwritable(file: Path, error: OSError) -> Problem:
    """Return what to say of a file of a run that cannot be written."""
    what = f"cannot be written: {(error.strerror or str(error)).lower()}"
    return Problem(
        what, "make room or check permissions, or choose another folder with $NETKIT_STATE_DIR", file=str(file)
    )


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A line of the history."""

    run: str
    fabric: str
    began_s: float
    outcome: Outcome | None
    """None: it has not finished, and can be resumed."""


def history(root: Path) -> tuple[RunSummary, ...]:
    """Return the runs kept in a folder, the newest first; what cannot be read is left out."""
    return tuple(_summaries(root))


def _summaries(root: Path) -> Iterator[RunSummary]:
    for folder in sorted(root.glob("*/"), reverse=True) if root.is_dir() else ():
        journal = Journal(folder)
        try:
            orders, outcome, entries = journal.orders(), journal.outcome(), journal.entries()
        except NetkitError:
            continue
        began_s = entries[0].at_s if entries else 0.0
        yield RunSummary(folder.name, orders.plan.fabric, began_s, outcome)
