"""A user of a lab, with a separate state folder, cache and set of secrets."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.command import NETKIT, ROOT, Done, environment, run, start
from tests.lab.running import RunningLab, intent, write_fabric

PATIENCE_S = 900
LASTING = {"deploy", "rollback"}
"""Verbs that leave threads and connections to be ended with their interpreter."""


@dataclass(frozen=True)
class Site:
    """A lab, with the state folder and cache of one user."""

    lab: RunningLab
    home: Path
    has_forks: bool = True
    """Whether these verbs run in forks too: faster, but without the exit of an interpreter, and not beside threads."""

    @property
    def changes(self) -> dict[str, Any]:
        """The environment variables that point netkit at this user's folders."""
        return {
            "NETKIT_LAB_DIR": str(self.lab.home),
            "NETKIT_STATE_DIR": str(self.home / "state"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            **{f"NETKIT_SECRET_{name}": f"{name}-of-a-test" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")},
        }

    @property
    def environment(self) -> dict[str, str]:
        return environment(**self.changes)

    def words(self, verb: str, *options: str | Path) -> list[str]:
        """The arguments of a command on the lab."""
        return [*NETKIT, verb, *map(str, options), "--fabric", str(self.lab.fabric), f"--lab={self.lab.name}"]

    def netkit(self, verb: str, *options: str | Path) -> Done:
        return self.real(self.lab.fabric, verb, *options, f"--lab={self.lab.name}")

    def real(self, fabric: Path, verb: str, *options: str | Path) -> Done:
        """Run a command on a fabric whose devices are reached as its own access.yaml says."""
        way = start if verb in LASTING and not self.has_forks else run
        return way(verb, *options, "--fabric", fabric, timeout_s=PATIENCE_S, **self.changes)

    def started(self, verb: str, *options: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(verb, *options),
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def runs(self) -> list[Path]:
        """The run folders in the state of the user."""
        return sorted((self.home / "state" / "small" / "labs" / self.lab.name / "runs").glob("*/"))

    def location(self, device: str) -> str:
        """The location that the running configuration of a switch has."""
        documents = json.loads(self.lab.shell(device, "nv config show -o json"))
        found = next(one["set"] for one in documents if "set" in one)
        return str(found["system"]["snmp-server"]["system-location"])

    def move(self, location: str) -> None:
        """Change the location of the fabric in the intent."""
        values = intent()
        values["services"]["snmp"]["location"] = location
        write_fabric(self.lab.fabric, values)
