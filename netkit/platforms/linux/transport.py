"""Playbooks, run by ansible-runner on any number of hosts at once."""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.errors import AccessError, DeviceError, NetkitError, Problem

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
OURS = ("ANSIBLE_", "AWX_", "RUNNER_", "PEXPECT")
ASKED = r"SSH password:\s*?$"
MOST_FORKS = 16
PATIENCE_S = 900
CONFIG = """[defaults]
host_key_checking = true
retry_files_enabled = false
# Ansible looks a thousand times a second whether a host has answered: as much processor time as a module takes.
internal_poll_interval = 0.02
"""


@dataclass(slots=True)
class HostResult:
    """What became of a host in a run."""

    device: str
    is_changed: bool = False
    strategy: str = ""
    """Whether its rails changed at once or one by one, and why."""
    differences: list[Mapping[str, str]] = field(default_factory=list)
    failure: str = ""
    is_unreachable: bool = False
    is_seen: bool = False

    def error(self) -> NetkitError | None:
        """Return what went wrong, if anything did."""
        if self.is_unreachable:
            return AccessError(Problem(f"{self.device}: {self.failure}", "check its address, account and host key"))
        return DeviceError(Problem(f"{self.device}: {self.failure}", "")) if self.failure else None


def shipped_playbooks() -> Path:
    """Return the folder of the playbooks that come with netkit: in the wheel, or at the top of a checkout."""
    package = Path(__file__).parent.parent.parent
    inside = package / "shipped" / "playbooks"
    return inside if inside.is_dir() else package.parent / "playbooks"


def play(
    playbook: str,
    hosts: Mapping[str, Mapping[str, object]],
    extra: Mapping[str, object],
    *,
    checks: str = "",
    password: str = "",
    own: Sequence[Path] = (),
) -> dict[str, HostResult]:
    """Run a playbook on hosts, by the inventory variables of each; `checks` are options such as `--check --diff`.

    Of a user's own folders each file comes in the place of netkit's, or beside it; those of the first come first.
    """
    results = {name: HostResult(name) for name in hosts}
    with tempfile.TemporaryDirectory(prefix="netkit-ansible-") as place:
        folder = Path(place)
        project = folder / "project"
        for source in (shipped_playbooks(), *reversed(own)):
            _copy(source, project)
        (project / "ansible.cfg").write_text(CONFIG, encoding="utf-8")
        options = {"playbook": playbook, "extravars": dict(extra), "inventory": _inventory(hosts)}
        said = _run(folder, options, results, checks=checks, password=password)
    for result in results.values():
        if not result.is_seen and not result.failure:
            result.failure = f"its turn never came: {said}"
    return results


def _copy(source: Path, project: Path) -> None:
    try:
        shutil.copytree(source, project, ignore_dangling_symlinks=True, dirs_exist_ok=True)
    except OSError as error:
        what = f"the playbooks in {source} cannot be copied: {error.strerror or error}"
        raise DeviceError(Problem(what, "make all of them readable, and leave room for them")) from None


def _run(
    folder: Path, options: Mapping[str, object], results: Mapping[str, HostResult], *, checks: str, password: str
) -> str:
    """Run ansible-playbook; return the last it said."""
    import ansible_runner  # noqa: PLC0415 (half a second that only a deploy to hosts needs)

    def keep(event: Mapping[str, Any]) -> bool:
        _note(event, results)
        return False  # nothing of it goes to disk

    words = f"{checks}{' --ask-pass' * bool(password)}".strip()
    runner = ansible_runner.interface.init_runner(
        private_data_dir=str(folder),
        cmdline=words or None,
        passwords={ASKED: password} if password else None,
        suppress_env_files=True,
        suppress_output_file=True,
        forks=min(len(results), MOST_FORKS),
        timeout=PATIENCE_S,
        quiet=True,
        event_handler=keep,
        cancel_callback=lambda: False,  # else it takes the signals of this program
        **options,
    )
    runner.config.env = _environment(runner.config.env, folder)
    status, code = runner.run()
    return f"ansible-playbook ends with {code} ({status})"


def _inventory(hosts: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    return {"platform_linux": {"hosts": {name: dict(variables) for name, variables in hosts.items()}}}


def _environment(given: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return what Ansible needs of an environment and nothing more: the runner writes it down."""
    passed = {name: value for name, value in given.items() if name in PASSED_ON or name.startswith(OURS)}
    # The ansible-playbook that came with netkit, whatever else is on the path.
    path = os.pathsep.join([str(Path(sys.executable).parent), passed.get("PATH", os.defpath)])
    if shutil.which("ansible-playbook", path=path) is None:
        raise DeviceError(Problem("ansible-playbook is not installed beside netkit", "pip install ansible-core"))
    own = {"LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(folder / "project" / "ansible.cfg")}
    return {**passed, **own, "PATH": path, "ANSIBLE_HOME": str(folder / "home")}


def _note(event: Mapping[str, Any], results: Mapping[str, HostResult]) -> None:
    """Take from an event what it says of a host."""
    data = event.get("event_data") or {}
    result, answer = results.get(data.get("host", "")), data.get("res") or {}
    match event.get("event"), result:
        case "runner_on_unreachable", HostResult():
            result.is_unreachable, result.failure = True, _one_line(str(answer.get("msg", "cannot be reached")))
        case "runner_on_failed", HostResult():
            result.failure = _one_line(str(answer.get("msg", "failed")))
        case "runner_on_ok", HostResult():
            result.is_changed |= bool(answer.get("changed"))
            if answer.get("traffic"):
                how = "all rails in one step" if answer.get("at_once") else "rail by rail"
                result.strategy = f"{how}: {_one_line(str(answer['traffic']))}"
            found = answer.get("diff") or []
            result.differences += found if isinstance(found, list) else [found]
        case "playbook_on_stats", _:
            _settle(data, results)


def _settle(stats: Mapping[str, Any], results: Mapping[str, HostResult]) -> None:
    """Take from the last event which hosts failed in the end, and which only for a while."""
    for name, result in results.items():
        result.is_seen = name in stats.get("processed", {})
        if result.is_seen and name not in stats.get("failures", {}) and name not in stats.get("dark", {}):
            result.failure = ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
