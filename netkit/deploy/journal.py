"""A run on disk: its orders, what the devices ran before, and every step before it happened.

Only the owner can read the folder: the old configurations may hold password hashes, and are needed for a rollback.
"""

import errno
import json
import os
import re
import secrets
import shutil
import threading
import time
from calendar import timegm
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from netkit import plan as planning
from netkit import private
from netkit.deploy import model, seal
from netkit.deploy.approval import Approval, Provenance
from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.gate import RunMemory
from netkit.deploy.model import FAILED, ConfigState, DeviceOutcome, Options, Outcome, Phase, Seconds, WallTime, Whole
from netkit.errors import DeployError, NetkitError, Problem
from netkit.plan import Plan, Running
from netkit.platforms.config import Files


class Ledger:
    """A file that many threads append lines to; one fsync serves all lines that are waiting."""

    def __init__(self, file: Path) -> None:
        self._handle = private.open_file(file, os.O_WRONLY | os.O_APPEND)
        self._adding, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0
        self._is_broken = False
        if os.fstat(self._handle).st_size:  # a line that a killed process left half written announced nothing
            os.ftruncate(self._handle, private.read_bytes(file).rfind(b"\n") + 1)

    def add(self, line: str) -> None:
        """Write a line and return once it is on disk; if that fails, raise OSError for it and for every later line.

        A disk that took less than it was given may have lost more, and reports the error only once.
        """
        try:
            self._append(line.encode() + b"\n")
        except OSError:
            self._is_broken = True
            raise

    def _append(self, line: bytes) -> None:
        with self._adding:
            if self._is_broken or os.write(self._handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._written += 1
            mine = self._written
        with self._syncing:
            if self._synced >= mine:
                return
            reached = self._written
            os.fsync(self._handle)
            self._synced = reached

    def close(self) -> None:
        os.close(self._handle)


def _json(value: object) -> str:
    """JSON that every parser reads: an argument that is not UTF-8 has lone surrogates, which become question marks."""
    return json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()


def lines(file: Path) -> Iterator[str]:
    with open(file, encoding="utf-8", errors="replace", opener=private.regular) as stream:
        yield from stream


NAMED = "%Y%m%dT%H%M%S"
JOURNAL, PLAN, INTENDED, OWNER = "journal.jsonl", "plan.json", "intended.json", "owner.json"
OPTIONS, OUTCOME, BEFORE = "options.json", "outcome.json", "before"
UNDOES = "undoes.json"
PROVENANCE, APPROVALS = "provenance.json", "approvals"
SAMPLE, STRATEGY, CONFIRMED, FINISHED, STAGE = "sample", "strategy", "confirmed", "finished", "stage"
MEMORY = "memory"
"""The note is what gates remember of the run so far."""
WAVE = "wave"
"""A device's wave begins; the note is the number of waves."""
NUMBER = re.compile(r"[0-9]{1,6}")
"""The note of a stage or a wave."""
Owner = Mapping[str, Files]


class JournalError(DeployError):
    """The journal cannot be written, so the step it would have announced must not happen."""

    exit_code = FAILED


class LeaseLostError(JournalError):
    """Another machine may change this fabric by now, so nothing may be written to a device or to the journal."""


Lease = Callable[[], None]
"""Returns while this process may change the fabric, and raises LeaseLostError from then on."""


def unlimited() -> None:
    """Return: the lease of a deploy on one machine, where a lock is enough."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of a journal."""

    at_s: WallTime
    step: str
    device: str = ""
    wave: int = 0
    revert_s: Whole = 0
    note: str = ""
    outcome: DeviceOutcome | None = None
    steady_s: Seconds = 0.0
    boot: str = ""
    """With `revert_s`: the time by the monotonic clock, and the boot it counts from."""


@dataclass(frozen=True, slots=True)
class Orders:
    """The inputs of a run."""

    plan: Plan
    intended: Mapping[str, Files]
    owner: Owner | None
    options: Options
    undoes: str = ""
    """The run that this one rolls back."""


NAMES = tuple(item.name for item in fields(JournalEntry))
ALL_FILES = dict[str, dict[str, str]]
REMEDY = "`netkit history` lists the runs"
DAMAGED = "devices revert an unconfirmed change by themselves: wait for that, and make a new plan"
PARTIAL_LINE = "EOF while parsing"


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Cache the adapter of a type: building one is slow, and a deploy only writes."""
    return TypeAdapter(kind)


class Journal:
    """The folder of one run. Several threads may write."""

    def __init__(self, folder: Path, clock: DeployClock = CLOCK) -> None:
        self.folder, self.run, self._clock = folder, folder.name, clock
        self.lease: Lease = unlimited
        """Asked before each entry, and before each write to a device."""
        self._ledger: Ledger | None = None
        self._broken: Problem | None = None
        self._opening = threading.Lock()

    @classmethod
    def new(cls, root: Path, clock: DeployClock = CLOCK) -> "Journal":
        """Name a new run; nothing is written yet."""
        began_s = clock.wall_s()
        newest = next((folder.name for folder in run_folders(root)), "")
        with suppress(ValueError):  # names stay in order even when the clock was set back
            began_s = max(began_s, 1 + timegm(time.strptime(newest.partition("-")[0], NAMED)))
        return cls(root / f"{time.strftime(NAMED, time.gmtime(began_s))}-{secrets.token_hex(2)}", clock)

    def start(self, orders: Orders, provenance: Provenance | None = None) -> None:
        """Write the orders of the run; if that fails, raise DeployError and leave no run behind."""
        try:
            self._start(orders)
            if provenance is not None:
                self._save(PROVENANCE, _json([provenance.plain()]))
                self._claim(provenance)
        except DeployError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise DeployError(error.problems) from None

    def resumed(self, provenance: Provenance) -> None:
        """Record who resumes the run, or raise DeployError: nothing has been changed then.

        A damaged record of earlier starts must not leave devices half done.
        """
        earlier = known_provenance(self)
        try:
            self._save(PROVENANCE, _json([one.plain() for one in (*earlier, provenance)]))
        except DeployError as error:
            raise DeployError(error.problems) from None

    def provenance(self) -> tuple[Provenance, ...]:
        """The starts of the run, first to last; empty if an older netkit wrote it."""
        file = self.folder / PROVENANCE
        try:
            text = private.read_text(file) if self._has(PROVENANCE) else "[]"
            return _adapter(tuple[Provenance, ...]).validate_json(text)  # type: ignore[no-any-return]
        except (OSError, ValueError):
            raise DeployError(Problem("lacks the author of the run", REMEDY, file=str(file))) from None

    def _claim(self, provenance: Provenance) -> None:
        """Mark an approval as used; raise DeployError if an earlier run used it. The mark outlives the run's folder."""
        if provenance.approval is None:
            return
        file = claim_of(self.folder.parent, provenance.approval)
        with self._reporting(file):
            file.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                refuse_used(self.folder.parent, provenance.approval)
                return
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(self.run)
                    stream.flush()
                    os.fsync(stream.fileno())
            except OSError:  # no run begins, so the approval is not used
                file.unlink()
                raise

    def _start(self, orders: Orders) -> None:
        with self._reporting(self.folder):
            private.make_folder(self.folder.parent)
            self.folder.mkdir(mode=0o700)
            (self.folder / BEFORE).mkdir(mode=0o700)
        self._save(PLAN, planning.write(orders.plan))
        intended = json.dumps({name: dict(files) for name, files in orders.intended.items()})
        # What a rollback intends is what devices ran, with their secrets in clear.
        self._save(INTENDED, self._sealed(INTENDED, intended) if orders.undoes else intended)
        if orders.owner is not None:
            self._save(OWNER, json.dumps({name: dict(files) for name, files in orders.owner.items()}))
        if orders.undoes:
            self._save(UNDOES, json.dumps(orders.undoes))
        self._save(OPTIONS, json.dumps(asdict(orders.options)))

    def step(self, step: str, device: str = "", *, wave: int = 0, revert_s: int = 0, note: str = "") -> None:
        """Record a step that is about to happen."""
        steady_s, boot = (self._clock.steady_s(), self._clock.boot_id()) if revert_s else (0.0, "")
        self._write(JournalEntry(self._clock.wall_s(), step, device, wave, revert_s, note, None, steady_s, boot))

    def failed(self, outcome: DeviceOutcome) -> None:
        """Record that a device failed, before its outcome is known."""
        self._write(JournalEntry(self._clock.wall_s(), Phase.SETTLE, outcome.device, outcome.wave, outcome=outcome))

    def end(self, outcome: DeviceOutcome) -> None:
        self._write(JournalEntry(self._clock.wall_s(), Phase.END, outcome.device, outcome.wave, outcome=outcome))

    def finish(self, outcome: Outcome) -> None:
        """Record the outcome of the run: nothing is left to resume."""
        self._write(JournalEntry(self._clock.wall_s(), FINISHED))
        self._save(OUTCOME, model.write(outcome))
        self.close()

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
        self._ledger = None

    def keep(self, device: str, running: Running) -> None:
        """Keep what a device runs before it is changed."""
        found = {"files": dict(running.files), "version": running.version}
        name = f"{BEFORE}/{device}.json"
        self._save(name, self._sealed(name, json.dumps(found)))

    def _sealed(self, name: str, text: str) -> str:
        with self._reporting(self.folder.parent / seal.KEY):
            return seal.sealed(text, f"{self.run}/{name}", self.folder.parent)

    def before(self, device: str) -> Running | None:
        """What a device ran before; None if the run never read it."""
        name = f"{BEFORE}/{device}.json"
        return self._valid(Running, name) if self._has(name) else None

    def orders(self) -> Orders:
        """The inputs of the run; DeployError when there is no such run."""
        if not self.folder.is_dir():
            raise DeployError(Problem(f"there is no run {self.run}", REMEDY))
        plan = planning.read(self._text(PLAN), str(self.folder / PLAN))
        intended = self._valid(ALL_FILES, INTENDED)
        owner = self._valid(ALL_FILES, OWNER) if self._has(OWNER) else None
        names = {device.name for device in plan.devices}
        for name, files in ((INTENDED, intended), (OWNER, owner)):
            if files is not None and not files.keys() <= names:
                raise self._damaged(name)
        return Orders(plan, intended, owner, self._valid(Options, OPTIONS), self.undoes())

    def undoes(self) -> str:
        """The run that this one rolls back; empty if it does not, or if its orders were not fully written."""
        return self._valid(str, UNDOES) if self._has(UNDOES) and self._has(OPTIONS) else ""

    def drained(self) -> frozenset[str]:
        """The devices that the run, or a rollback of it, drained and may not have given their traffic back."""
        found: set[str] = set()
        for run in (self, *(other for other in self._newer() if other.is_undoing(self.run))):
            with suppress(DeployError):
                for entry in run.entries():
                    outcome = entry.outcome if entry.step == Phase.END else None
                    if entry.step == Phase.DRAIN:
                        found.add(entry.device)
                    elif outcome and outcome.state is not ConfigState.UNKNOWN:
                        is_left = outcome.state is ConfigState.INTENDED and outcome.stops_all  # not undrained
                        found -= set() if is_left else {entry.device}
        return frozenset(found)

    def is_to_be_undone(self) -> bool:
        """Whether the run failed, has `on_failure: rollback`, and is not rolled back yet."""
        outcome, options = self.outcome(), self.orders().options
        if options.on_failure != "rollback" or outcome is None or not outcome.stopped:
            return False
        return outcome.has_changes and not any(other.is_undoing(self.run) for other in self._newer())

    def superseded(self) -> str:
        """The later run after which every device that this unfinished run left half done or untouched is as intended.

        Empty while one of them may still be drained, and for a run that has finished.
        """
        if self.outcome() is not None or self.drained():
            return ""
        orders = self.orders()
        limit = orders.options.limit
        left = {one.name for one in orders.plan.changed if limit is None or one.name in limit}
        ended = {entry.device: entry.outcome.state for entry in self.entries() if entry.outcome is not None}
        left -= {name for name, state in ended.items() if state in {ConfigState.INTENDED, ConfigState.AS_BEFORE}}
        for other in self._newer():
            with suppress(DeployError):
                outcome = other.outcome()
                left -= (
                    {one.device for one in outcome.devices if one.state is ConfigState.INTENDED} if outcome else set()
                )
            if orders.plan.changed and not left:
                return other.run
        return ""

    def is_undoing(self, run: str) -> bool:
        """Whether this run rolls another one back; False if it is damaged."""
        try:
            return self.undoes() == run
        except DeployError:
            return False

    def gone_back(self) -> frozenset[str]:
        """The devices on which the latest readable run is a rollback of this one."""
        found: set[str] = set()
        for other in self._newer():
            with suppress(DeployError):
                devices = {entry.device for entry in other.entries() if entry.wave}
                found = found | devices if other.is_undoing(self.run) else found - devices
        return frozenset(found)

    def _newer(self) -> Iterator["Journal"]:
        return map(Journal, reversed([one for one in run_folders(self.folder.parent) if one.name > self.run]))

    def entries(self) -> tuple[JournalEntry, ...]:
        """Every complete line; a killed process may leave a partial one. Other damage raises DeployError."""
        found = []
        try:
            for number, line in enumerate(lines(self.folder / JOURNAL) if self._has(JOURNAL) else (), 1):
                try:
                    found.append(_adapter(JournalEntry).validate_json(line.rstrip("\0\n ")))
                except ValidationError as error:
                    is_half = not line.endswith("\n") or not line.strip("\0\n ") or PARTIAL_LINE in str(error)
                    if not is_half:
                        raise self._damaged(JOURNAL, number) from None
                else:
                    if found[-1].step == STAGE and not NUMBER.fullmatch(found[-1].note):
                        raise self._damaged(JOURNAL, number)
        except OSError as error:
            raise self._unreadable(JOURNAL, error) from None
        return tuple(found)

    def memory(self) -> RunMemory:
        """What gates remember of the run."""
        found = RunMemory()
        notes = [entry.note for entry in self.entries() if entry.step == MEMORY]
        try:
            for note in notes[-1:]:
                found.restore(note)
        except ValueError:
            raise self._damaged(JOURNAL) from None
        return found

    def outcome(self) -> Outcome | None:
        """The outcome; None while the run has not finished."""
        return model.read(self._text(OUTCOME), str(self.folder / OUTCOME)) if self._has(OUTCOME) else None

    def _write(self, entry: JournalEntry) -> None:
        plain = {name: value for name in NAMES if (value := getattr(entry, name)) or name == "at_s"}
        if entry.outcome is not None:
            plain["outcome"] = asdict(entry.outcome)
        with self._reporting(self.folder / JOURNAL):
            with self._opening:
                ledger = self._ledger = self._ledger or Ledger(self.folder / JOURNAL)
            ledger.add(_json(plain))

    def _has(self, name: str) -> bool:
        """Whether the run has a file; DeployError if that cannot be seen, as in a folder of another account."""
        try:
            (self.folder / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._unreadable(name, error) from None
        except ValueError:  # not a possible file name
            raise self._damaged(name) from None
        return True

    @property
    def has_begun(self) -> bool:
        """Whether it has, or may have, written more than its orders."""
        try:
            return self._has(JOURNAL) or self._has(OUTCOME)
        except DeployError:
            return True

    def _text(self, name: str) -> str:
        try:
            return private.read_text(self.folder / name)
        except OSError as error:
            raise self._unreadable(name, error) from None
        except ValueError:  # not text, or not a possible file name
            raise self._damaged(name) from None

    def _valid(self, kind: Any, name: str) -> Any:
        """Parse a file as the given type; raise DeployError if it is not valid."""
        try:
            return _adapter(kind).validate_json(seal.opened(self._text(name), f"{self.run}/{name}", self.folder.parent))
        except seal.SealError as error:
            raise self._damaged(name, why=str(error)) from None
        except (ValidationError, RecursionError):
            raise self._damaged(name) from None

    def _unreadable(self, name: str, error: OSError) -> DeployError:
        return self._damaged(name, why=f"cannot be read: {(error.strerror or str(error)).lower()}")

    def _damaged(self, name: str, line: int = 0, why: str = "is damaged") -> DeployError:
        return DeployError(Problem(why, DAMAGED, file=str(self.folder / name), line=line))

    def _save(self, name: str, text: str) -> None:
        """Write a file atomically, readable by its owner only."""
        file = self.folder / name
        partial = file.with_name(f".{file.name}")
        with self._reporting(file):
            handle = private.open_file(partial, os.O_WRONLY | os.O_TRUNC)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)

    @contextmanager
    def _reporting(self, file: Path) -> Iterator[None]:
        """Report a file that cannot be written inside the block; after that nothing more is written."""
        if self._broken is not None:
            raise JournalError(self._broken)
        self.lease()
        try:
            yield
        except OSError as error:
            self._broken = unwritable(file, error)
            raise JournalError(self._broken) from None


def unwritable(file: Path, error: OSError) -> Problem:
    """The problem to report for a file of a run that cannot be written."""
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
    """None: the run has not finished, and can be resumed."""
    provenance: tuple[Provenance, ...] = ()
    """Its start, and each time it was resumed."""
    superseded: str = ""
    """The later run because of which this unfinished one need not be resumed."""
    damage: NetkitError | None = None
    """Why a run that had begun cannot be read; the other fields are then meaningless."""


def claim_of(runs: Path, approval: Approval) -> Path:
    """The file that records which run used an approval."""
    return runs.with_name(APPROVALS) / approval.id


def refuse_used(runs: Path, approval: Approval) -> None:
    """Raise DeployError when a run has already used this approval."""
    file = claim_of(runs, approval)
    if file.exists():
        run = private.read_text(file, "replace")
        what = f"the approval of {approval.approver} was used by run {run}"
        raise DeployError(Problem(what, "an approval is for one run: have the plan approved again"))


def known_provenance(journal: Journal) -> tuple[Provenance, ...]:
    """The starts of a run; empty if their record is damaged, as the run itself is still usable."""
    try:
        return journal.provenance()
    except DeployError:
        return ()


def run_folders(root: Path) -> list[Path]:
    """The folders of the runs, newest first: their names begin with a date.

    DeployError if they cannot be listed, so that none is overlooked.
    """
    try:
        return sorted((one for one in root.iterdir() if one.name[:1].isdigit() and one.is_dir()), reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        what = f"cannot be listed: {(error.strerror or str(error)).lower()}"
        raise DeployError(Problem(what, "check its permissions", file=str(root))) from None


def history(root: Path) -> tuple[RunSummary, ...]:
    """The runs in a folder, newest first; one that cannot be read is listed with its damage."""
    return tuple(_summaries(root))


def _summaries(root: Path) -> Iterator[RunSummary]:
    for folder in run_folders(root):
        journal = Journal(folder)
        try:
            orders, outcome, entries = journal.orders(), journal.outcome(), journal.entries()
            superseded = journal.superseded()
        except NetkitError as error:
            if journal.has_begun:
                yield RunSummary(folder.name, "", 0.0, None, damage=error)
            continue
        began_s = entries[0].at_s if entries else 0.0
        yield RunSummary(folder.name, orders.plan.fabric, began_s, outcome, known_provenance(journal), superseded)
