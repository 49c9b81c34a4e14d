"""Nodes of a running lab as faults see them, entered from outside: faster than a command of netkit for each step."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from netkit.design import Fabric
from netkit.lab.layout import lay_out
from netkit.lab.namespace_holder import TOOLS
from netkit.lab.node import ProgramResult
from tests.lab.running import PATIENCE_S, RunningLab

OWN_USER = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]


@dataclass(frozen=True)
class Place:
    network: str


@dataclass
class OutsideBench:
    """A node, entered from outside the lab."""

    name: str
    pid: int
    """The process that holds its namespaces, as the machine numbers it."""
    kernel_names: Mapping[str, str]
    holder: Place
    folder: Path

    def file(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def run(self, *command: str, stdin: str = "", timeout_s: float = PATIENCE_S) -> ProgramResult:
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), *OWN_USER, "-m", "-u", "-n", "--", *command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=max(timeout_s, PATIENCE_S),
            env={"PATH": TOOLS, "LC_ALL": "C.UTF-8"},
            check=False,
        )
        return ProgramResult(done.returncode, done.stdout, done.stderr)

    def out(self, *command: str) -> str:
        """Run a command that must succeed."""
        done = self.run(*command)
        assert done.exit_code == 0, f"{self.name}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def spawn(self, name: str, *command: str) -> None:
        script = 'echo $$ > "/tmp/$0"; exec "$@"'
        self.out("sh", "-c", f'setsid sh -c \'{script}\' "$0" "$@" >/dev/null 2>&1 </dev/null &', name, *command)

    def end(self, name: str) -> None:
        wait = 'until [ -s "/tmp/$0" ]; do sleep 0.1; done'
        self.out("sh", "-c", f'{wait}; kill $(cat "/tmp/$0"); rm "/tmp/$0"', name)


def benches(lab: RunningLab, fabric: Fabric, folder: Path) -> dict[str, OutsideBench]:
    """All nodes of a lab; faults save their healing steps in `folder`."""
    record = json.loads((lab.home / lab.name / "lab.json").read_text())
    specs, holders = lay_out(fabric, "127.64").nodes, _holders(lab)
    return {
        name: OutsideBench(
            name, holders[name], specs[name].kernel_names, Place(f"/proc/{row['pid']}/ns/net"), folder / name
        )
        for name, row in record["devices"].items()
    }


def _holders(lab: RunningLab) -> dict[str, int]:
    """The processes that hold the namespaces of a lab's nodes, by node."""
    first = (lab.home / lab.name / "init.pid").read_text().split()[0]
    space, found = Path(f"/proc/{first}/ns/pid").readlink(), {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
                if title.startswith("lab:") and (entry / "ns/pid").readlink() == space:
                    found[title.removeprefix("lab:")] = int(entry.name)
            except OSError:
                continue
    return found
