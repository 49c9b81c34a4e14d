"""A run on disk: what was to be done, what ran before, and every step before it happened.

The folder is its owner's alone: what a device ran before may hold hashes of passwords, and is needed to get it back.
"""

import json
import os
import secrets
import shutil
import threading
import time
from calendar import timegm
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from netkit import plan as planning
from netkit import private
from netkit.deploy import model, seal
from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.ledger import Ledger, lines
from netkit.deploy.model import FAILED, LONGEST_S, ConfigState, DeviceOutcome, Options, Outcome, Phase, Seconds, Whole
from netkit.deploy.provenance import Approval, Provenance
from netkit.errors import DeployError, NetkitError, Problem
from netkit.plan import Plan, Running
from netkit.platforms.config import Files

NAMED = "%Y%m%dT%H%M%S"
JOURNAL, PLAN, INTENDED, OWNER = "journal.jsonl", "plan.json", "intended.json", "owner.json"
OPTIONS, OUTCOME, BEFORE = "options.json", "outcome.json", "before"
UNDOES = "undoes.json"
PROVENANCE, APPROVALS = "provenance.json", "approvals"
SAMPLE, STRATEGY, CONFIRMED, FINISHED, STAGE = "sample", "strategy", "confirmed", "finished", "stage"
WAVE = "wave"
"""A device's wave begins; the note says how many waves there are."""
Owner = Mapping[str, Files]


class JournalError(DeployError):
    """The journal cannot be written: what it would have announced must not happen."""

    exit_code = FAILED


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of a journal."""

    at_s: Annotated[float, Field(gt=-LONGEST_S, lt=LONGEST_S, allow_inf_nan=False)]
    """By the wall clock, wherever it was set to."""
    step: str
    device: str = ""
    wave: int = 0
    revert_s: Whole = 0
    note: str = ""
    outcome: DeviceOutcome | None = None
    steady_s: Seconds = 0.0
    boot: str = ""
    """With `revert_s`: the time by a clock that nobody can set, and which start of the machine that counts from."""


@dataclass(frozen=True, slots=True)
class Orders:
    """The inputs of a run."""

    plan: Plan
    intended: Mapping[str, Files]
    owner: Owner | None
    options: Options
    undoes: str = ""
    """The run that this one takes back."""


NAMES = tuple(item.name for item in fields(JournalEntry))
ALL_FILES = dict[str, dict[str, str]]
REMEDY = "`netkit history` lists the runs"
DAMAGED = "devices take back by themselves what is not confirmed: wait for that, and make a new plan"
HALF = "EOF while parsing"


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads a kind of thing; making one takes a while, and a deploy only writes."""
    return TypeAdapter(kind)


class Journal:
    """The folder of one run. Several threads may write."""

    def __init__(self, folder: Path, clock: DeployClock = CLOCK) -> None:
        self.folder, self.run, self._clock = folder, folder.name, clock
        self._ledger: Ledger | None = None
        self._broken: Problem | None = None
        self._opening = threading.Lock()

    @classmethod
    def new(cls, root: Path, clock: DeployClock = CLOCK) -> "Journal":
        """Return the journal of a run to come; nothing is written yet."""
        began_s = clock.wall_s()
        newest = max((folder.name for folder in root.glob("*-*/")), default="")
        with suppress(ValueError):  # the newest run is the last by its name, also when the clock was put back
            began_s = max(began_s, 1 + timegm(time.strptime(newest.partition("-")[0], NAMED)))
        return cls(root / f"{time.strftime(NAMED, time.gmtime(began_s))}-{secrets.token_hex(2)}", clock)

    def start(self, orders: Orders, provenance: Provenance | None = None) -> None:
        """Write down what is to be done; DeployError when that cannot be: then there is no such run."""
        try:
            self._start(orders)
            if provenance is not None:
                self._save(PROVENANCE, json.dumps([provenance.plain()]))
                self._claim(provenance)
        except DeployError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise DeployError(error.problems) from None

    def resumed(self, provenance: Provenance) -> None:
        """Write down who resumes the run; a damaged record of who started it must not leave devices half done."""
        earlier = known_provenance(self)
        self._save(PROVENANCE, json.dumps([one.plain() for one in (*earlier, provenance)]))

    def provenance(self) -> tuple[Provenance, ...]:
        """Return who began the run and who resumed it; empty where an older netkit did."""
        file = self.folder / PROVENANCE
        try:
            text = file.read_text(encoding="utf-8") if file.exists() else "[]"
            return _adapter(tuple[Provenance, ...]).validate_json(text)  # type: ignore[no-any-return]
        except (OSError, ValueError):
            raise DeployError(Problem("does not say who began the run", REMEDY, file=str(file))) from None

    def _claim(self, provenance: Provenance) -> None:
        """Use an approval up: DeployError when an earlier run did. The claim outlives the folder of its run."""
        if provenance.approval is None:
            return
        file = claim_of(self.folder.parent, provenance.approval)
        with self._written(file):
            file.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                refuse_used(self.folder.parent, provenance.approval)
            else:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(self.run)
                    stream.flush()
                    os.fsync(stream.fileno())

    def _start(self, orders: Orders) -> None:
        with self._written(self.folder):
            private.make_folder(self.folder.parent)
            self.folder.mkdir(mode=0o700)
            (self.folder / BEFORE).mkdir(mode=0o700)
        self._save(PLAN, planning.write(orders.plan))
        intended = json.dumps({name: dict(files) for name, files in orders.intended.items()})
        # What an undo intends is what devices ran, with their secrets in clear.
        self._save(INTENDED, self._sealed(INTENDED, intended) if orders.undoes else intended)
        if orders.owner is not None:
            self._save(OWNER, json.dumps({name: dict(files) for name, files in orders.owner.items()}))
        if orders.undoes:
            self._save(UNDOES, json.dumps(orders.undoes))
        self._save(OPTIONS, json.dumps(asdict(orders.options)))

    def step(self, step: str, device: str = "", *, wave: int = 0, revert_s: int = 0, note: str = "") -> None:
        """Write down a step that is about to happen."""
        steady_s, boot = (self._clock.steady_s(), self._clock.boot_id()) if revert_s else (0.0, "")
        self._write(JournalEntry(self._clock.wall_s(), step, device, wave, revert_s, note, None, steady_s, boot))

    def failed(self, outcome: DeviceOutcome) -> None:
        """Write down that a device failed, before it is known how it comes out."""
        self._write(JournalEntry(self._clock.wall_s(), Phase.SETTLE, outcome.device, outcome.wave, outcome=outcome))

    def end(self, outcome: DeviceOutcome) -> None:
        """Write down how a device came out."""
        self._write(JournalEntry(self._clock.wall_s(), Phase.END, outcome.device, outcome.wave, outcome=outcome))

    def finish(self, outcome: Outcome) -> None:
        """Write down how the run came out: there is nothing left to resume."""
        self._write(JournalEntry(self._clock.wall_s(), FINISHED))
        self._save(OUTCOME, model.write(outcome))
        self.close()

    def close(self) -> None:
        """Close the files."""
        if self._ledger is not None:
            self._ledger.close()
        self._ledger = None

    def keep(self, device: str, running: Running) -> None:
        """Keep what a device runs before it is changed."""
        found = {"files": dict(running.files), "version": running.version}
        name = f"{BEFORE}/{device}.json"
        self._save(name, self._sealed(name, json.dumps(found)))

    def _sealed(self, name: str, text: str) -> str:
        with self._written(self.folder.parent / seal.KEY):
            return seal.sealed(text, f"{self.run}/{name}", self.folder.parent)

    def before(self, device: str) -> Running | None:
        """Return what a device ran before; None when it was never about to be changed."""
        name = f"{BEFORE}/{device}.json"
        return self._valid(Running, name) if (self.folder / name).exists() else None

    def orders(self) -> Orders:
        """Return the inputs of the run; DeployError when there is no such run."""
        if not self.folder.is_dir():
            raise DeployError(Problem(f"there is no run {self.run}", REMEDY))
        plan = planning.read(self._text(PLAN), str(self.folder / PLAN))
        intended = self._valid(ALL_FILES, INTENDED)
        owner = self._valid(ALL_FILES, OWNER) if (self.folder / OWNER).exists() else None
        names = {device.name for device in plan.devices}
        for name, files in ((INTENDED, intended), (OWNER, owner)):
            if files is not None and not files.keys() <= names:
                raise self._damaged(name)
        return Orders(plan, intended, owner, self._valid(Options, OPTIONS), self.undoes())

    def undoes(self) -> str:
        """Return the run that this one takes back, if it does that and was told to the end what to do."""
        is_whole = (self.folder / UNDOES).exists() and (self.folder / OPTIONS).exists()
        return self._valid(str, UNDOES) if is_whole else ""

    def is_to_be_undone(self) -> bool:
        """Whether the run stopped for a failure, was told to take back then what it had done, and nobody has yet."""
        outcome, options = self.outcome(), self.orders().options
        if options.on_failure != "rollback" or outcome is None or not outcome.stopped:
            return False
        is_changed = any(one.wave and one.state is not ConfigState.AS_BEFORE for one in outcome.devices)
        return is_changed and not any(other.is_undoing(self.run) for other in self._newer())

    def is_undoing(self, run: str) -> bool:
        """Whether the run takes another one back; one that is damaged does not, as far as anybody knows."""
        try:
            return self.undoes() == run
        except DeployError:
            return False

    def gone_back(self) -> frozenset[str]:
        """Return the devices of which the last that was done, as far as that can be read, is to take this run back."""
        found: set[str] = set()
        for other in self._newer():
            with suppress(DeployError):
                devices = {entry.device for entry in other.entries() if entry.wave}
                found = found | devices if other.is_undoing(self.run) else found - devices
        return frozenset(found)

    def _newer(self) -> Iterator["Journal"]:
        runs = sorted(folder for folder in self.folder.parent.glob("*-*/") if folder.name > self.run)
        return map(Journal, runs)

    def entries(self) -> tuple[JournalEntry, ...]:
        """Return every whole line; a process that was killed may leave half of one. DeployError for any other."""
        file = self.folder / JOURNAL
        found = []
        try:
            for number, line in enumerate(lines(file) if file.exists() else (), 1):
                try:
                    found.append(_adapter(JournalEntry).validate_json(line.rstrip("\0\n ")))
                except ValidationError as error:
                    is_half = not line.endswith("\n") or not line.strip("\0\n ") or HALF in str(error)
                    if not is_half:
                        raise self._damaged(JOURNAL, number) from None
        except OSError as error:
            raise self._damaged(JOURNAL, why=f"cannot be read: {error.strerror}") from None
        return tuple(found)

    def outcome(self) -> Outcome | None:
        """Return how the run came out; None while it has not finished."""
        file = self.folder / OUTCOME
        return model.read(self._text(OUTCOME), str(file)) if file.exists() else None

    def _write(self, entry: JournalEntry) -> None:
        plain = {name: value for name in NAMES if (value := getattr(entry, name)) or name == "at_s"}
        if entry.outcome is not None:
            plain["outcome"] = asdict(entry.outcome)
        with self._written(self.folder / JOURNAL):
            with self._opening:
                ledger = self._ledger = self._ledger or Ledger(self.folder / JOURNAL)
            ledger.add(json.dumps(plain))

    def _text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except OSError as error:
            raise self._damaged(name, why=f"cannot be read: {(error.strerror or str(error)).lower()}") from None
        except ValueError:  # no text, or a name that can be none of a file
            raise self._damaged(name) from None

    def _valid(self, kind: Any, name: str) -> Any:
        """Return what a file holds; DeployError when it is not of a kind all through."""
        try:
            return _adapter(kind).validate_json(seal.opened(self._text(name), f"{self.run}/{name}", self.folder.parent))
        except seal.SealError as error:
            raise self._damaged(name, why=str(error)) from None
        except (ValidationError, RecursionError):
            raise self._damaged(name) from None

    def _damaged(self, name: str, line: int = 0, why: str = "is damaged") -> DeployError:
        return DeployError(Problem(why, DAMAGED, file=str(self.folder / name), line=line))

    def _save(self, name: str, text: str) -> None:
        """Write a file whole or not at all, for nobody else to read."""
        file = self.folder / name
        partial = file.with_name(f".{file.name}")
        with self._written(file):
            handle = private.open_file(partial, os.O_WRONLY | os.O_TRUNC)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)

    @contextmanager
    def _written(self, file: Path) -> Iterator[None]:
        """Report a file that cannot be written inside the block; after that nothing more is written."""
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
    provenance: tuple[Provenance, ...] = ()
    """Who began it, and who resumed it."""
    damage: NetkitError | None = None
    """Why the run cannot be read, though it had begun; then nothing else of it need be true."""


def claim_of(runs: Path, approval: Approval) -> Path:
    """Return the file that says which run used an approval."""
    return runs.with_name(APPROVALS) / approval.id


def refuse_used(runs: Path, approval: Approval) -> None:
    """Raise DeployError when a run has used an approval."""
    file = claim_of(runs, approval)
    if file.exists():
        run = file.read_text(encoding="utf-8", errors="replace")
        what = f"the approval of {approval.approver} was used by run {run}"
        raise DeployError(Problem(what, "an approval is for one run: have the plan approved again"))


def known_provenance(journal: Journal) -> tuple[Provenance, ...]:
    """Return who began a run and who resumed it; empty where that is damaged: the run itself is whole."""
    try:
        return journal.provenance()
    except DeployError:
        return ()


def history(root: Path) -> tuple[RunSummary, ...]:
    """Return the runs kept in a folder, the newest first; one that cannot be read is there with its damage."""
    return tuple(_summaries(root))


def _summaries(root: Path) -> Iterator[RunSummary]:
    for folder in sorted(root.glob("*/"), reverse=True) if root.is_dir() else ():
        journal = Journal(folder)
        try:
            orders, outcome, entries = journal.orders(), journal.outcome(), journal.entries()
        except NetkitError as error:
            if (folder / JOURNAL).exists() or (folder / OUTCOME).exists():  # without them it was killed before it began
                yield RunSummary(folder.name, "", 0.0, None, damage=error)
            continue
        began_s = entries[0].at_s if entries else 0.0
        yield RunSummary(folder.name, orders.plan.fabric, began_s, outcome, known_provenance(journal))
