"""The folder of a running lab, its record lab.json, and requests to its keeper."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from netkit.design.fabric import Fabric
from netkit.errors import LabError, Problem

RECORD = "lab.json"
INIT = "init.pid"
CONTROL = "control"
LOG = "keeper.log"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}\Z")
LONGEST_SOCKET_PATH = 100
ENDING_S = 30.0


def home() -> Path:
    """The folder that holds the labs of this user."""
    if chosen := os.environ.get("NETKIT_LAB_DIR"):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/run/netkit-lab")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime, "netkit-lab") if runtime else Path(f"/tmp/netkit-lab-{os.geteuid()}")  # noqa: S108


@dataclass(frozen=True, slots=True)
class LabFolder:
    """The folder of one lab."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def control(self) -> Path:
        """The socket the keeper listens on."""
        return self.path / CONTROL

    @property
    def key(self) -> Path:
        """The private key that opens the nodes."""
        return self.path / "key"

    @property
    def ssh_config(self) -> Path:
        """The client configuration with an entry for each node."""
        return self.path / "ssh_config"

    def record(self) -> Mapping[str, Any]:
        """Read lab.json; empty if it is missing or unreadable."""
        try:
            found = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) and isinstance(found.get("devices"), dict) else {}

    def write(self, record: Mapping[str, Any]) -> None:
        """Replace lab.json, which other commands read."""
        draft = self.path / f"{RECORD}.draft"
        draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        draft.replace(self.path / RECORD)

    def init(self) -> int:
        """The pid of the lab's init process, whose end ends the lab; 0 if it has ended."""
        try:
            number, began = (self.path / INIT).read_text(encoding="ascii").split()
            pid = int(number)
        except (OSError, ValueError):
            return 0
        return pid if began_at(pid) == began else 0

    @property
    def is_alive(self) -> bool:
        return self.init() != 0

    def end(self) -> None:
        """Kill every process of the lab, and remove its folder."""
        pid = self.init()
        if pid:
            os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + ENDING_S
            while self.init() and time.monotonic() < deadline:
                time.sleep(0.02)
        shutil.rmtree(self.path, ignore_errors=True)

    def last_words(self) -> str:
        """The last line of the keeper's log."""
        try:
            lines = (self.path / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return ""
        return next((line for line in reversed(lines) if line.strip()), "")


def began_at(pid: int) -> str:
    """The start time of a process in clock ticks, which differs when a pid is reused; empty if it has ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] == "Z" else words[19]


def lab_folder(name: str) -> LabFolder:
    """The folder of a lab by name, whether it exists or not."""
    if not NAME.match(name):
        raise LabError(Problem(f"{name!r} is not a valid name for a lab", "use letters, digits, dots and dashes"))
    folder = LabFolder(home() / name)
    if len(str(folder.control)) > LONGEST_SOCKET_PATH:
        raise LabError(
            Problem(f"{folder.path} is too long for the path of a socket", "set NETKIT_LAB_DIR to a shorter folder")
        )
    return folder


def all_labs() -> tuple[LabFolder, ...]:
    """The labs of this user, running or left behind."""
    if not home().is_dir():
        return ()
    return tuple(LabFolder(path) for path in sorted(home().iterdir()) if path.is_dir())


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock of all labs: starting and ending one changes what they share."""
    home().mkdir(parents=True, exist_ok=True, mode=0o755)
    if os.geteuid() not in {0, home().stat().st_uid}:
        raise LabError(Problem(f"{home()} belongs to another user", "set NETKIT_LAB_DIR to a folder of your own"))
    with (home() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class LabJob:
    """The fabric, the initial configuration of its devices, and the lab's folder."""

    fabric: Fabric
    files: Mapping[str, Mapping[str, str]]
    """Device → rendered files; a device without any starts with factory defaults."""
    folder: LabFolder
    fabric_folder: str
    patience_s: float = 90.0
    promised: Fabric | None = None
    """The fabric that the files configure, if it differs from `fabric`."""
    is_rendered: bool = False
    """Whether the files are as rendered from the intent, so that nothing else runs on the devices."""


PATIENCE_S = 900.0
HUNG_UP = '{"error": ["the lab ended before it answered"]}'


def ask_keeper(folder: LabFolder, verb: str, **details: Any) -> Mapping[str, Any]:
    """Send a request to the keeper and return its answer; raise LabError with its error."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_S)
        try:
            line.connect(str(folder.control))
            with line.makefile("rw", encoding="utf-8") as stream:
                stream.write(json.dumps({"verb": verb, **details}) + "\n")
                stream.flush()
                answer = json.loads(stream.readline() or HUNG_UP)
        except FileNotFoundError:
            raise LabError(Problem(f"the lab {folder.name} is not up yet", "netkit lab up waits until it is")) from None
        except (OSError, ValueError) as error:
            raise LabError(
                Problem(f"the lab {folder.name} does not answer: {error}", "netkit lab down, then up")
            ) from None
    if "error" in answer:
        raise LabError([Problem(text) for text in answer["error"]])
    return cast("Mapping[str, Any]", answer)
