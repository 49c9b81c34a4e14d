"""Run playbooks with ansible-runner on any number of hosts."""

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
TIMEOUT_S = 900
CONFIG = """[defaults]
host_key_checking = true
retry_files_enabled = false
# By default Ansible polls a thousand times a second, which costs as much CPU time as a module.
internal_poll_interval = 0.02
"""


@dataclass(slots=True)
class HostResult:
    """The result of a run on one host."""

    device: str
    is_changed: bool = False
    strategy: str = ""
    """Whether its rails changed together or one by one, and why."""
    differences: list[Mapping[str, str]] = field(default_factory=list)
    failure: str = ""
    is_unreachable: bool = False
    is_seen: bool = False

    def error(self) -> NetkitError | None:
        """Convert a failure to an error."""
        if self.is_unreachable:
            return AccessError(Problem(f"{self.device}: {self.failure}", "check its address, account and host key"))
        return DeviceError(Problem(f"{self.device}: {self.failure}", "")) if self.failure else None


def shipped_playbooks() -> Path:
    """Locate netkit's own playbooks: in the wheel, or at the top of a checkout."""
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
    """Run a playbook on hosts, given with their inventory variables; `checks` are options such as `--check --diff`.

    Files of a user's folders (`own`) replace or extend netkit's; the first folder takes precedence.
    """
    results = {name: HostResult(name) for name in hosts}
    with tempfile.TemporaryDirectory(prefix="netkit-ansible-") as place:
        folder = Path(place)
        project = folder / "project"
        for source in (shipped_playbooks(), *reversed(own)):
            try:
                shutil.copytree(source, project, ignore_dangling_symlinks=True, dirs_exist_ok=True)
            except OSError as error:
                what = f"the playbooks in {source} cannot be copied: {error.strerror or error}"
                raise DeviceError(Problem(what, "make all of them readable, and free some disk space")) from None
        (project / "ansible.cfg").write_text(CONFIG, encoding="utf-8")
        inventory = {"platform_linux": {"hosts": {name: dict(variables) for name, variables in hosts.items()}}}
        options = {"playbook": playbook, "extravars": dict(extra), "inventory": inventory}
        outcome = _run(folder, options, results, checks=checks, password=password)
    for result in results.values():
        if not result.is_seen and not result.failure:
            result.failure = f"the run ended before its turn: {outcome}"
    return results


def _run(
    folder: Path, options: Mapping[str, object], results: Mapping[str, HostResult], *, checks: str, password: str
) -> str:
    """Run ansible-playbook; return its exit status."""
    import ansible_runner  # noqa: PLC0415 (takes half a second, which only a deploy to hosts needs)

    def keep(event: Mapping[str, Any]) -> bool:
        _note(event, results)
        return False  # do not write events to disk

    words = f"{checks}{' --ask-pass' * bool(password)}".strip()
    runner = ansible_runner.interface.init_runner(
        private_data_dir=str(folder),
        cmdline=words or None,
        passwords={ASKED: password} if password else None,
        suppress_env_files=True,
        suppress_output_file=True,
        forks=min(len(results), MOST_FORKS),
        timeout=TIMEOUT_S,
        quiet=True,
        event_handler=keep,
        cancel_callback=lambda: False,  # otherwise it handles the signals of this program
        **options,
    )
    runner.config.env = _environment(runner.config.env, folder)
    status, code = runner.run()
    return f"ansible-playbook ends with {code} ({status})"


def _environment(given: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Select the environment variables Ansible needs, and no others: the runner writes them to disk."""
    passed = {name: value for name, value in given.items() if name in PASSED_ON or name.startswith(OURS)}
    # The ansible-playbook installed with netkit, before any other on the path.
    path = os.pathsep.join([str(Path(sys.executable).parent), passed.get("PATH", os.defpath)])
    if shutil.which("ansible-playbook", path=path) is None:
        raise DeviceError(Problem("ansible-playbook is not installed beside netkit", "pip install ansible-core"))
    own = {"LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(folder / "project" / "ansible.cfg")}
    return {**passed, **own, "PATH": path, "ANSIBLE_HOME": str(folder / "home")}


def _note(event: Mapping[str, Any], results: Mapping[str, HostResult]) -> None:
    """Update a host's result from an event."""
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
            # The final statistics tell which hosts failed, and which recovered.
            for name, one in results.items():
                one.is_seen = name in data.get("processed", {})
                if one.is_seen and name not in data.get("failures", {}) and name not in data.get("dark", {}):
                    one.failure = ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
