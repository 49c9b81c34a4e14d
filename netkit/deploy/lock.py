"""One deploy at a time for each fabric, and what the last ones did. The lock dies with its process.

Each account has a lock file beside its runs, which names the holder. Accounts that share the folder of a fabric also
lock the folder itself: read access is enough, and nothing is written that another account would have to trust.
"""

import fcntl
import getpass
import json
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from netkit import private
from netkit.deploy.approval import Provenance
from netkit.deploy.journal import (
    JOURNAL,
    NUMBER,
    OUTCOME,
    PROVENANCE,
    WAVE,
    Journal,
    JournalEntry,
    known_provenance,
    unwritable,
)
from netkit.deploy.model import DeviceOutcome, Outcome, Phase
from netkit.errors import DeployError, NetkitError, Problem

UNSAFE = re.compile(r"[^\w.-]")
LOCKS = Path("/proc/locks")
REMEDY = "wait until it has ended, or end it"


class LockedError(DeployError):
    """Another deploy is changing this fabric."""


@contextmanager
def lock_fabric(folder: Path, fabric: str, run: str) -> Iterator[None]:
    """Hold the lock of a fabric; LockedError names the current holder."""
    file = folder / f"{UNSAFE.sub('_', fabric)}.lock"
    handle = _open(file)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(Problem(f"{fabric} is being deployed by {_holder(file)}", REMEDY)) from None
        try:
            _write(handle, _description_of_this_process(run))
        except OSError as error:
            raise DeployError(unwritable(file, error)) from None
        yield
        with suppress(OSError):  # a file that is left with its text is not locked
            _write(handle, "")
    finally:
        os.close(handle)


@contextmanager
def lock_shared_folder(shared: Path, folder: Path, fabric: str) -> Iterator[None]:
    """Lock the folder of a fabric, which several accounts may share; `folder` is as for `lock_fabric`."""
    handle = os.open(shared, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with lock_fabric(folder, fabric, ""):  # names the holder, if it is the same account
                who = f"{fabric} is being deployed from {shared} by {_process_holding(handle)}"
                raise LockedError(Problem(who, REMEDY)) from None
        except OSError:
            pass  # some network file systems cannot lock a folder; digests and timers of the devices still protect
        yield
    finally:
        os.close(handle)


def is_running(folder: Path, fabric: str, run: str) -> bool | None:
    """Whether a run holds the lock of a fabric now, without touching it; None if this machine cannot see that."""
    file = folder / f"{UNSAFE.sub('_', fabric)}.lock"
    try:
        found = json.loads(private.read_text(file))
        if found["run"] != run:
            return False
        if found["host"] != socket.gethostname():
            return None
        rows = map(str.split, LOCKS.read_text(encoding="ascii").splitlines())
        mine = (str(found["pid"]), str(file.stat().st_ino))
        return any(row[1] == "FLOCK" and (row[4], row[5].rpartition(":")[2]) == mine for row in rows)
    except FileNotFoundError:
        return False
    except (ValueError, LookupError, TypeError, RecursionError):  # empty: not held; half written: just started
        return False
    except OSError:
        return None


def _open(file: Path) -> int:
    try:
        private.make_folder(file.parent)
        return private.open_file(file, os.O_RDWR)
    except OSError as error:
        raise DeployError(unwritable(file, error)) from None


def _write(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


def _description_of_this_process(run: str) -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    return json.dumps({"user": user, "pid": os.getpid(), "host": socket.gethostname(), "run": run, "since": since})


def _holder(file: Path) -> str:
    try:
        found = json.loads(private.read_text(file))
        who = f"{found['user']} on {found['host']}, process {found['pid']}"
        return f"{who}, run {found['run']}, since {found['since']}"
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return "a process that has just started"


def _process_holding(handle: int) -> str:
    """Name the process that has locked an open folder, as far as the kernel shows it to this account."""
    found = os.fstat(handle)
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    with suppress(OSError, LookupError, StopIteration):
        rows = map(str.split, LOCKS.read_text(encoding="ascii").splitlines())
        pid = next(row[4] for row in rows if row[1] == "FLOCK" and place in row)
        return f"{Path('/proc', pid).owner()}, process {pid}"
    return "another account"


MOST_NAMED = 20
Mark = tuple[tuple[int, int], ...]
"""Size and time of a run's files: while they are the same, so is the content."""


@dataclass(frozen=True, slots=True)
class RecentRun:
    """The state or the outcome of a run."""

    run: str
    began_s: float = 0.0
    stepped_s: float = 0.0
    """The time of the last step in the journal."""
    provenance: tuple[Provenance, ...] = ()
    outcome: Outcome | None = None
    """None: the run has not finished."""
    is_running: bool | None = False
    """None: it has not finished, and this machine does not know whether it is running."""
    superseded: str = ""
    """The later run by which all devices of this unfinished one were changed."""
    wave: int = 0
    waves: int = 0
    """Of an unfinished run, if known."""
    results: Mapping[str, int] = field(default_factory=dict)
    """Result → how many devices."""
    busy: tuple[str, ...] = ()
    """Devices that have started and not ended."""
    damage: str = ""
    """Why it cannot be read."""


@dataclass(slots=True)
class RecentRuns:
    """The last runs on a fabric, each read again only when its files have changed."""

    folder: Path
    fabric: str
    _known: dict[str, tuple[Mark, RecentRun]] = field(default_factory=dict)

    def read(self, most: int) -> tuple[RecentRun, ...]:
        """The last runs, newest first."""
        found = dict(self._found(most))
        self._known = found
        return tuple(one for _, one in found.values())

    def _found(self, most: int) -> Iterator[tuple[str, tuple[Mark, RecentRun]]]:
        left = most
        for folder in sorted(self.folder.glob("*/"), reverse=True) if self.folder.is_dir() else ():
            if not left:
                return
            mark = _mark(folder)
            has_begun = any(size for size, _ in mark[:2])
            runs = False if mark[1][0] else is_running(self.folder, self.fabric, folder.name)
            if not has_begun and not runs:
                continue  # it was killed before it began
            left -= 1
            known = self._known.get(folder.name)
            if known is not None and known[0] == mark and known[1].outcome is not None:
                yield folder.name, known
            else:
                yield folder.name, (mark, _read(folder, runs=runs))


def _mark(folder: Path) -> Mark:
    found = []
    for name in (JOURNAL, OUTCOME, PROVENANCE):
        try:
            stat = (folder / name).stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _read(folder: Path, *, runs: bool | None) -> RecentRun:
    journal = Journal(folder)
    try:
        entries, outcome = journal.entries(), journal.outcome()
        superseded = journal.superseded() if outcome is None and runs is False else ""
    except NetkitError as error:
        return RecentRun(folder.name, damage=str(error))
    ended, begun = _progress(entries)
    last = next((one for one in reversed(entries) if one.step == WAVE), None)
    is_open = outcome is None
    devices = tuple(ended.values()) if outcome is None else outcome.devices
    return RecentRun(
        folder.name,
        began_s=entries[0].at_s if entries else 0.0,
        stepped_s=entries[-1].at_s if entries else 0.0,
        provenance=known_provenance(journal),
        outcome=outcome,
        is_running=runs if is_open else False,
        superseded=superseded,
        wave=last.wave if is_open and last is not None else 0,
        waves=int(last.note) if is_open and last is not None and NUMBER.fullmatch(last.note) else 0,
        results=Counter(str(one.result) for one in devices),
        busy=begun[:MOST_NAMED] if is_open else (),
    )


def _progress(entries: Sequence[JournalEntry]) -> tuple[dict[str, DeviceOutcome], tuple[str, ...]]:
    """The outcomes so far, and the devices that have started and not ended."""
    ended: dict[str, DeviceOutcome] = {}
    begun: dict[str, None] = {}
    for entry in entries:
        if entry.step == WAVE:
            begun[entry.device] = None
            ended.pop(entry.device, None)  # its second stage
        elif entry.step == Phase.END and entry.outcome is not None:
            ended[entry.device] = entry.outcome
            begun.pop(entry.device, None)
    return ended, tuple(begun)
