"""One deploy at a time for each fabric. The lock dies with its process, so none is ever left behind.

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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from netkit import private
from netkit.deploy.journal import unwritable
from netkit.errors import DeployError, Problem

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
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["run"] != run:
            return False
        if found["host"] != socket.gethostname():
            return None
        rows = map(str.split, LOCKS.read_text(encoding="ascii").splitlines())
        mine = (str(found["pid"]), str(file.stat().st_ino))
        return any(row[1] == "FLOCK" and (row[4], row[5].rpartition(":")[2]) == mine for row in rows)
    except FileNotFoundError:
        return False
    except (ValueError, LookupError, TypeError):  # empty: not held; half written: a process has just started
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
        found = json.loads(file.read_text(encoding="utf-8"))
        who = f"{found['user']} on {found['host']}, process {found['pid']}"
        return f"{who}, run {found['run']}, since {found['since']}"
    except (OSError, ValueError, LookupError, TypeError):
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
