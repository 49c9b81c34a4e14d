"""Starts a lab's keeper in the background, so that it outlives the command.

The keeper runs in its own PID and mount namespaces: when the init process there ends, the kernel kills all others, and
their network namespaces and mounts go with them.
"""

import os
import pwd
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from netkit.errors import LabError, NetkitError, Problem
from netkit.lab import namespace_holder
from netkit.lab.folder import INIT, LOG, LabJob, began_at
from netkit.lab.personality import FIND_ON
from netkit.private import without_secrets

ACCOUNTS = 65535


def start(job: LabJob, run: Callable[[LabJob], None]) -> None:
    """Start the keeper of a lab in the background, as the second process of a new PID namespace."""
    is_root = os.geteuid() == 0
    ready, ready_write = os.pipe()
    mapped, mapped_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        os.close(mapped_write)
        _detach(job, run, ready_write, mapped, is_root=is_root)
    os.close(ready_write)
    os.close(mapped)
    with os.fdopen(ready, "rb") as pipe, os.fdopen(mapped_write, "wb") as mapping:
        if pipe.read(1) == b"u" and not is_root:
            # Map the accounts FRR and sshd need in an unprivileged lab, from this user's subordinate IDs.
            name = pwd.getpwuid(os.getuid()).pw_name
            for tool, own, file in (
                ("newuidmap", os.getuid(), "/etc/subuid"),
                ("newgidmap", os.getgid(), "/etc/subgid"),
            ):
                first, size = _range(Path(file), name, os.getuid())
                words = [tool, str(pid), "0", str(own), "1", "1", str(first), str(size)]
                done = subprocess.run(words, env=without_secrets(), capture_output=True, text=True, check=False)  # noqa: S603
                if done.returncode != 0:
                    raise LabError(
                        Problem(f"{tool} maps no accounts for {name}: {done.stderr.strip()}", f"check {file}")
                    )
        mapping.write(b"m")
        mapping.flush()
        pipe.read()
    os.waitpid(pid, 0)


def _detach(job: LabJob, run: Callable[[LabJob], None], ready: int, mapped: int, *, is_root: bool) -> None:
    """Become the lab's own process tree; never returns."""
    try:
        os.setsid()
        log = job.folder.path / LOG
        null = os.open(os.devnull, os.O_RDWR)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, target in ((null, 0), (out, 1), (out, 2)):
            os.dup2(descriptor, target)
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), FIND_ON])
        if not is_root:
            namespace_holder.unshare(namespace_holder.CLONE_NEWUSER)
        os.write(ready, b"u")
        os.read(mapped, 1)
        if not is_root:
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        namespace_holder.unshare(namespace_holder.CLONE_NEWPID | namespace_holder.CLONE_NEWNS)
        recorded, recorded_write = os.pipe()
        init = os.fork()
        if init == 0:
            os.close(ready)
            os.close(recorded_write)
            if os.read(recorded, 1):  # the pid is recorded as the outer namespace sees it
                _be_init(job, run)
            os._exit(1)  # a lab without a record could not be ended
        (job.folder.path / INIT).write_text(f"{init} {began_at(init)}\n", encoding="ascii")
        os.write(recorded_write, b"w")
        os._exit(0)
    except BaseException:  # a child must not continue in its parent's code
        traceback.print_exc()
        os._exit(1)


def _range(file: Path, name: str, uid: int) -> tuple[int, int]:
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        owner, first, size = line.split(":")
        if owner in {name, str(uid)} and int(size) >= ACCOUNTS:
            return int(first), ACCOUNTS
    option = f"--add-{file.name}s"  # --add-subuids, --add-subgids
    remedy = f"as root: usermod {option} 100000-{100000 + ACCOUNTS} {name}, or another range that is free"
    raise LabError(Problem(f"{file} does not assign {ACCOUNTS} subordinate IDs to {name}", remedy))


def _be_init(job: LabJob, run: Callable[[LabJob], None]) -> None:
    """Reap orphans of the lab; the kernel kills everything else when this process ends. Never returns."""
    os.closerange(3, 256)
    namespace_holder.set_process_name("netkit-lab-init")
    keeper = os.fork()
    if keeper == 0:
        try:
            run(job)
        except NetkitError as error:
            sys.stderr.write(f"{error}\n")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(1)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        try:
            pid, _ = os.wait()
        except ChildProcessError:
            break
        if pid == keeper:
            break
    os._exit(0)
