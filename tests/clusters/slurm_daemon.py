"""Debian's slurmctld and munged as ordinary processes on loopback, in their own folder, without a slurmd.

Nodes are cloud nodes that are powered down: the controller schedules on them without resolving or contacting any, and
reads gres.conf for them as a slurmd would.
"""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOOLS = ("munged", "slurmctld", "scontrol", "sbatch", "sinfo")
MISSING = [tool for tool in TOOLS if not shutil.which(tool, path=PATH)]
if MISSING and os.environ.get("CI"):
    raise RuntimeError(f"the files of Slurm must be tried on a real slurmctld; not installed: {', '.join(MISSING)}")
needs_slurmctld = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
START_S, COMMAND_S, STOP_S = 60, 30, 20
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={slurmd_port}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
PrivateData=cloud
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=3600
TreeWidth=65533
Include fabric.conf
NodeName=DEFAULT State=CLOUD
Include nodes.conf
"""


@dataclass(frozen=True)
class Controller:
    """A running slurmctld."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf"), "HOME": str(self.folder)}
        return subprocess.run(
            command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=COMMAND_S, check=False
        )

    def ask(self, *command: str) -> str:
        """Run a command that must succeed, and return its output."""
        done = self.run(*command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}{self.log}"
        return done.stdout

    def names(self, hostlist: str) -> list[str]:
        """Expand a hostlist as Slurm does."""
        return self.ask("scontrol", "show", "hostnames", hostlist).split()

    @property
    def log(self) -> str:
        return (self.folder / "slurmctld.log").read_text(encoding="utf-8")


@contextmanager
def controller(files: Mapping[str, str]) -> Iterator[Controller]:
    """Run a controller with the files of a cluster beside its slurm.conf."""
    with tempfile.TemporaryDirectory(prefix="netkit-slurm-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # munge clients must be able to enter the folder of its socket
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        host, (port, slurmd_port) = socket.gethostname().partition(".")[0], _free_ports()
        config = CONFIG.format(folder=folder, host=host, port=port, slurmd_port=slurmd_port, user=getpass.getuser())
        (folder / "slurm.conf").write_text(config, encoding="utf-8")
        files_of_munge = (f"--{kind}-file={folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed"))
        _start(stack, folder, "munged", "--foreground", f"--socket={folder}/munge.socket", *files_of_munge)
        running = Controller(folder)
        _wait((folder / "munge.socket").exists, folder)
        daemon = _start(stack, folder, "slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        _wait(lambda: daemon.poll() is not None or "UP" in running.run("scontrol", "ping").stdout, folder)
        assert daemon.poll() is None, _said(folder)
        _wait(lambda: "UNKNOWN" not in running.ask("scontrol", "show", "nodes"), folder)
        yield running


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def _start(stack: ExitStack, folder: Path, *command: str) -> subprocess.Popen[bytes]:
    out = stack.enter_context((folder / f"{command[0]}.out").open("wb"))
    program = shutil.which(command[0], path=PATH)
    assert program
    environment = {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    daemon = subprocess.Popen(
        [program, *command[1:]], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
    )
    stack.callback(_stop, daemon)
    return daemon


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(STOP_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _wait(is_done: Callable[[], bool], folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while not is_done():
        assert time.monotonic() < deadline, _said(folder)
        time.sleep(0.1)


def _said(folder: Path) -> str:
    return "".join(file.read_text(errors="replace") for file in [*folder.glob("*.out"), *folder.glob("*.log")])
