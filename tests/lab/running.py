"""Labs for tests: each in its own folder, so that they do not collide, and taken down whatever happens."""

import contextlib
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.errors import LabError
from netkit.lab import personality
from tests.command import Done, run
from tests.intents import BASE

PATIENCE_S = 300


def _lacks() -> str:
    try:
        personality.check()
    except LabError as error:
        return str(error)
    allowed = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], check=False).returncode == 0
    return "" if allowed or os.geteuid() != 0 else "this kernel allows no namespaces"


LACKS = _lacks()
if LACKS and os.environ.get("CI"):
    raise RuntimeError(f"labs must run here: {LACKS}")
needs_lab = pytest.mark.skipif(bool(LACKS), reason=LACKS or "labs run here")


@dataclass(frozen=True)
class RunningLab:
    """A running lab, reached as a user reaches it."""

    name: str
    home: Path
    fabric: Path

    def netkit(self, *arguments: str | Path, stdin: str = "", timeout_s: float = PATIENCE_S) -> Done:
        """Run netkit with this lab's folder."""
        return run(*arguments, stdin=stdin, timeout_s=timeout_s, NETKIT_LAB_DIR=str(self.home))

    def lab(self, verb: str, *arguments: str | Path, stdin: str = "") -> Done:
        """Run a verb of `netkit lab` on this lab."""
        return self.netkit("lab", verb, "--lab", self.name, *arguments, stdin=stdin)

    def run(self, device: str, *command: str, stdin: str = "") -> str:
        """Run a command on a node, bypassing its management; it must succeed."""
        done = self.lab("exec", device, "--", *command, stdin=stdin)
        assert done.returncode == 0, f"{device}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def ssh(self, device: str, command: str, stdin: str = "") -> Done:
        """Run a command on a node over SSH."""
        config = self.home / self.name / "ssh_config"
        return subprocess.run(
            ["ssh", "-F", str(config), device, command],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )

    def shell(self, device: str, command: str, stdin: str = "") -> str:
        """Run a command on a node over SSH; it must succeed."""
        done = self.ssh(device, command, stdin)
        assert done.returncode == 0, f"{device}: {command}: {done.stdout}{done.stderr}"
        return done.stdout


def intent(**changes: Any) -> dict[str, Any]:
    """A small intent for a lab: 2 leaves, 2 spines, 4 hosts with 2 rails, with slow and steady BFD."""
    values = copy.deepcopy(BASE)
    values["units"] = [{"unit": 1, "hosts": 2}]
    values["ceilings"] = {"units": 1, "hosts_per_unit": 4, "spines": 4}
    values["routing"] = {"bfd": {"interval_ms": 1000, "multiplier": 3}}
    return {**values, **changes}


def on_platform(platform: str, values: Mapping[str, Any], *, model: str = "", version: str = "") -> dict[str, Any]:
    """An intent whose switches run a platform."""
    changed = copy.deepcopy(dict(values))
    for tier in changed["switches"].values():
        tier["platform"] = platform
        tier.update({"model": model} if model else {}, **({"version": version} if version else {}))
    return changed


def write_fabric(folder: Path, values: Mapping[str, Any]) -> Path:
    """Write an intent as a fabric folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fabric.yaml").write_text(yaml.safe_dump(dict(values), sort_keys=False), encoding="utf-8")
    return folder


@contextmanager
def lab_home() -> Iterator[Path]:
    """Give labs their own folder, short enough for socket paths, and take down what is left in it."""
    home = Path(tempfile.mkdtemp(prefix="nkl"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        done = run("lab", "down", "--all", timeout_s=PATIENCE_S, NETKIT_LAB_DIR=str(home))
        shutil.rmtree(home, ignore_errors=True)
        if done.returncode != 0:
            sys.stderr.write(done.stdout + done.stderr)


@contextmanager
def running(fabric: Path, *options: str, name: str = "t", exit_code: int = 0) -> Iterator[RunningLab]:
    """Boot a fabric for the length of a block."""
    with lab_home() as home:
        lab = RunningLab(name, home, fabric)
        done = lab.netkit("lab", "up", "--fabric", fabric, "--lab", name, *options)
        logs = "" if done.returncode == exit_code else keeper_log(home / name)
        assert done.returncode == exit_code, done.stdout + done.stderr + logs
        yield lab


def keeper_log(folder: Path) -> str:
    """The end of a keeper's log."""
    with contextlib.suppress(OSError):
        return (folder / "keeper.log").read_text(encoding="utf-8", errors="replace")[-4000:]
    return ""


def until(is_done: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Poll until a condition holds."""
    deadline = time.monotonic() + patience_s
    while not is_done():
        assert time.monotonic() < deadline, f"not within {patience_s:g} s: {what}"
        time.sleep(0.2)


def until_clean(check: Callable[..., Done]) -> None:
    """Check until all devices of a busy machine answer, and no check fails; otherwise show what the last one found."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := json.loads(check("--window", "5", "--format", "json").stdout))["verdict"] != "clean":
        heads = [cause["head"] for cause in found["causes"]]
        texts = [f"{head['check']} {head['device']} {head['place']}: {head['text']}" for head in heads]
        assert time.monotonic() < deadline, "\n".join([found["verdict"], *map(str, found["unreached"]), *texts])
