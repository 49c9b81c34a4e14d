"""Driver of GPU hosts: files are staged over SSH, applied by the playbooks, then confirmed or rolled back.

`playbooks/files/netkit-change` makes the change on the host, and reverts it without confirmation: by a timer, or when
the host boots.
"""

import difflib
import math
import os
import shlex
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.config import Files
from netkit.platforms.driver import Candidate, RailState, SessionState
from netkit.platforms.linux import install, rails
from netkit.platforms.linux.facts.command import slowness
from netkit.platforms.linux.model import with_left
from netkit.platforms.ownership import OWN_RULES
from netkit.platforms.secrets import SecretResolver
from netkit.platforms.ssh import SshLine, SshTarget
from netkit.platforms.view import Reply

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
OURS = ("ANSIBLE_", "AWX_", "RUNNER_", "PEXPECT")
ASKED = r"SSH password:\s*?$"
MOST_FORKS = 16
TIMEOUT_S = 900
STEP_SHARE = 0.6
"""The part of the time until hosts revert that one step may take: a host that hangs leaves the others the rest."""
CONFIG = """[defaults]
host_key_checking = true
retry_files_enabled = false
# By default Ansible polls a thousand times a second, which costs as much CPU time as a module.
internal_poll_interval = 0.02
task_timeout = {step_s}
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
    is_hung: bool = False
    """Whether a step has not ended in time: what it changed, or still will, is not known."""
    is_seen: bool = False

    def error(self) -> NetkitError | None:
        """Convert a failure to an error."""
        if self.is_unreachable:
            return AccessError(Problem(f"{self.device}: {self.failure}", "check its address, account and host key"))
        if self.is_hung:
            remedy = "check its log and its disk; one that is only slow needs a longer --confirm-within"
            return AccessError(Problem(f"{self.device}: {self.failure}", remedy))
        return DeviceError(Problem(f"{self.device}: {self.failure}", "")) if self.failure else None


def shipped_playbooks() -> Path:
    """Locate netkit's own playbooks: in the wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent.parent
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
    step_s: int = TIMEOUT_S,
) -> dict[str, HostResult]:
    """Run a playbook on hosts, given with their inventory variables; `checks` are options such as `--check --diff`.

    A host that does not end a task within `step_s` fails, and does not hold up the others any longer.
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
        (project / "ansible.cfg").write_text(CONFIG.format(step_s=step_s), encoding="utf-8")
        inventory = {"platform_linux": {"hosts": {name: dict(variables) for name, variables in hosts.items()}}}
        limits = {"timeout": max(TIMEOUT_S, 2 * step_s), "forks": min(len(hosts), MOST_FORKS)}
        options = {"playbook": playbook, "extravars": dict(extra), "inventory": inventory, **limits}
        outcome = _run(folder, options, results, checks=checks, password=password)
    for result in results.values():
        if not result.is_seen and not result.failure:
            result.failure = f"the run ended before this host: {outcome}"
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
        quiet=True,
        event_handler=keep,
        cancel_callback=lambda: False,  # without it, it handles the signals of this program
        **options,
    )
    runner.config.env = _environment(runner.config.env, folder)
    try:
        status, code = runner.run()
    finally:
        _end_ssh(folder)
    return f"ansible-playbook ends with {code} ({status})"


def _end_ssh(folder: Path) -> None:
    """End the SSH clients that a run has left: after the time limit of a task, one waits as long as its host hangs."""
    mark = os.fsencode(f"ANSIBLE_HOME={folder / 'home'}")
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if (process / "comm").read_bytes() == b"ssh\n" and mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGTERM)


def _environment(given: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Select the environment variables Ansible needs, and no others: the runner writes them to disk."""
    passed = {name: value for name, value in given.items() if name in PASSED_ON or name.startswith(OURS)}
    own = {"LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(folder / "project" / "ansible.cfg")}
    path = _search_path(passed.get("PATH", os.defpath))
    return {**passed, **own, "PATH": path, "ANSIBLE_HOME": str(folder / "home")}


def _search_path(given: str) -> str:
    """The search path of programs, with the ansible-playbook installed with netkit before any other."""
    path = os.pathsep.join([str(Path(sys.executable).parent), given])
    if shutil.which("ansible-playbook", path=path) is None:
        raise DeviceError(Problem("ansible-playbook is not installed beside netkit", "pip install ansible-core"))
    return path


def _note(event: Mapping[str, Any], results: Mapping[str, HostResult]) -> None:
    """Update a host's result from an event."""
    data = event.get("event_data") or {}
    result, answer = results.get(data.get("host", "")), data.get("res") or {}
    match event.get("event"), result:
        case "runner_on_unreachable", HostResult():
            result.is_unreachable, result.failure = True, _one_line(str(answer.get("msg", "cannot be reached")))
        case "runner_on_failed", HostResult():
            result.failure = _one_line(str(answer.get("msg", "failed")))
            result.is_hung |= "timedout" in answer
        case "runner_on_ok", HostResult():
            result.is_changed |= bool(answer.get("changed"))
            if answer.get("traffic"):
                how = "all rails in one step" if answer.get("at_once") else "rail by rail"
                result.strategy = f"{how}: {_one_line(str(answer['traffic']))}"
            found = answer.get("diff") or []
            result.differences += found if isinstance(found, list) else [found]
        case "playbook_on_stats", _:
            # The final statistics show which hosts failed, and which recovered.
            for name, one in results.items():
                one.is_seen = name in data.get("processed", {})
                if one.is_seen and name not in data.get("failures", {}) and name not in data.get("dark", {}):
                    one.failure, one.is_hung = "", False


def _one_line(text: str) -> str:
    return " ".join(text.split())


APPLY = "hosts-apply.yml"
RAIL_TASKS = "tasks/rail.yml"
STAGED = "/etc/netkit/staged.json"
STATE = "/etc/netkit/change"
UNCONFIRMED_S = 300
"""After this time the host reverts a change without an explicit timer that is not complete."""
SLOWEST_S = 600
WAITS = ("pending", "back")


class LinuxDriver:
    """One GPU host. Not thread-safe."""

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        options = optional_args or {}
        self.target = SshTarget.of(hostname, username, password, timeout, options)
        self.device = self.target.device
        folders = map(Path, options.get("playbooks") or ())
        self.own_playbooks = tuple(folder for folder in folders if folder.resolve() != shipped_playbooks())
        self._line = SshLine(self.target)
        self._secrets = SecretResolver(options.get("secrets"))
        self._files: Files | None = None
        self._change = self._strategy = ""

    def open(self) -> None:
        self._line.open()

    def close(self) -> None:
        self._line.close()

    def is_alive(self) -> dict[str, bool]:
        return {"is_alive": self._line.is_alive}

    def running_files(self) -> Mapping[str, str | None]:
        """Read netkit's files, by the names under which it renders them; None for an absent file."""
        return install.running(self._run(install.read_command()), self.device)

    def os_version(self) -> str:
        """Read the version of the distribution, else of the kernel."""
        release = "/etc/os-release"
        return self._run(f'[ -r {release} ] && . {release}; echo "${{VERSION_ID:-$(uname -r)}}"').strip()

    def sessions(self) -> tuple[SessionState, ...]:
        """Nothing: a host has no BGP sessions."""
        return ()

    def rail_states(self, far: Mapping[str, Sequence[str]], mtu_bytes: int = 0) -> tuple[RailState, ...]:
        """Read the state of the rails its files describe, and which addresses of `far` answer on which interface."""
        found = rails.described({name: text for name, text in self.running_files().items() if text is not None})
        printed = self._run("/bin/sh", stdin=rails.health_script(found, far, mtu_bytes))
        return rails.rail_states(printed, found, far, self.device)

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Run commands and return a reply to each, in order."""
        shell = install.as_root("/bin/sh", self.target.user)
        return shell_batch.ask(self._line, commands, shell=shell, slowness=slowness)

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage files on the host for the playbook, without applying them."""
        files = with_left(candidate.files, self.running_files() if OWN_RULES in candidate.files else {})
        filled = {name: self._secrets.text(text) for name, text in files.items()}
        text = install.staged(install.entries(filled, self.device), self._secrets.values)
        self._run(install.stage_command(STAGED), stdin=text)
        self._files = files

    def compare_config(self) -> str:
        """Run the playbook in check mode and return its diff."""
        result = _play((self,), {self.device: self.variables()}, checks="--check --diff")[self.device]
        error = self.failure(result)
        if error is not None:
            raise error
        lines: list[str] = []
        for one in result.differences:
            before, after = (one[side].splitlines(keepends=True) for side in ("before", "after"))
            lines += difflib.unified_diff(before, after, one["before_header"], one["after_header"])
        return self._secrets.hidden("".join(line if line.endswith("\n") else f"{line}\n" for line in lines))

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply and verify; with `revert_in`, the host itself reverts after that many seconds unless confirmed."""
        del message  # a host has no change log
        for error in (check_together((self,)) or commit_together((self,), revert_in)).values():
            raise error

    def strategy(self) -> str:
        """Describe whether the last change handled all rails together or one by one, and why."""
        return self._strategy

    def is_applied(self) -> bool:
        """Whether the change that waits for its confirmation was applied completely."""
        return self._run(f"if [ -e {STATE}/applied ]; then echo yes; fi").strip() == "yes"

    def check_in_step(self, others: Sequence["LinuxDriver"]) -> Mapping[str, NetkitError]:
        """Run a user's own playbooks in check mode on this host and on others; return the errors by device."""
        return check_together((self, *others))

    def commit_in_step(
        self, others: Sequence["LinuxDriver"], revert_in: int | None = None
    ) -> Mapping[str, NetkitError]:
        """Apply what is staged on this host and on others, one rail at a time; return the errors by device."""
        return commit_together((self, *others), revert_in)

    def has_pending_commit(self) -> bool:
        """Whether a change waits for its confirmation."""
        return self._state()[0] in WAITS

    def confirm_commit(self) -> None:
        """Keep the change. Its files are already where a boot finds them."""
        state, change = ("pending", self._change) if self._change else self._state()
        if state == "pending":
            self._run(f"/bin/sh {STATE}/program confirm {shlex.quote(change)}")
        elif state in WAITS:
            what = f"{self.device}: a change is being reverted, and cannot be confirmed"
            raise DeviceError(Problem(what, "wait for it, then deploy again"))

    def discard_config(self) -> None:
        """Discard the staged files."""
        self._files = None
        self._run(f"rm -f {STAGED}")

    def rollback(self) -> None:
        """Revert a change that waits for its confirmation, else the last one of this object."""
        state, change = self._state()
        if state not in WAITS and (state, change) != ("confirmed", self._change):
            return
        program = f"/bin/sh {STATE}/program"
        begin = "" if state in WAITS else f"{program} back >/dev/null && "
        self._run(f"{begin}{program} undo", timeout_s=SLOWEST_S)
        self._change = ""

    def drain(self) -> None:
        """Do nothing: jobs decide which rails they use."""

    def undrain(self) -> None:
        """Do nothing, like `drain`."""

    def variables(self) -> dict[str, object]:
        """Build the inventory variables of this host."""
        if self._files is None:
            raise DeviceError(Problem(f"{self.device}: nothing is staged", "load a candidate first"))
        wanted = rails.as_variables(rails.configured(self._files)) if rails.has_rails(self._files) else []
        return {**install.variables(self.target), "netkit_staged": STAGED, "netkit_rails": wanted}

    def begin_change(self) -> str:
        """Start a change and return its ID."""
        self._change = uuid.uuid4().hex
        return self._change

    def end_change(self, result: HostResult) -> NetkitError | None:
        self._files, self._strategy = None, result.strategy
        error = self.failure(result)
        if error is not None or not result.is_changed:
            self._change = ""
        return error

    def failure(self, result: HostResult) -> NetkitError | None:
        """The error of a run, with the secrets of this host masked."""
        result.failure = self._secrets.hidden(result.failure)
        return result.error()

    def _state(self) -> tuple[str, str]:
        """Read the state and the ID of the host's last change."""
        program = f"{STATE}/program"
        words = self._run(f"if [ -e {program} ]; then /bin/sh {program} state; else echo none; fi").split()
        return words[0], " ".join(words[1:])

    def _run(self, command: str, timeout_s: float | None = None, stdin: str = "") -> str:
        done = self._line.run(install.as_root(command, self.target.user), timeout_s, stdin)
        if done.exit_code != 0:
            why = self._secrets.hidden(done.output.splitlines()[-1] if done.output else f"exit code {done.exit_code}")
            raise DeviceError(Problem(f"{self.device}: {why}", "check the host by hand"))
        return done.stdout


def check_together(drivers: Sequence[LinuxDriver]) -> dict[str, NetkitError]:
    """Run a user's own playbooks in check mode on several hosts; return the errors by device.

    Staging has found out whether a host can run netkit's own, which would take a second run of Ansible.
    """
    if not any(driver.own_playbooks for driver in drivers):
        _common_password(drivers)
        _search_path(os.environ.get("PATH", os.defpath))
        return {}
    results = _play(drivers, {driver.device: driver.variables() for driver in drivers}, checks="--check")
    errors = {driver.device: driver.failure(results[driver.device]) for driver in drivers}
    return {device: error for device, error in errors.items() if error is not None}


def commit_together(drivers: Sequence[LinuxDriver], revert_in: int | None = None) -> dict[str, NetkitError]:
    """Apply what is staged on several hosts in one run, one rail at a time on all; return the errors by device.

    One run of Ansible for all is cheaper than one for each. With `revert_in` each waits for its confirmation.
    """
    variables = {
        driver.device: {
            **driver.variables(),
            "netkit_change": driver.begin_change(),
            "netkit_revert_in": revert_in or UNCONFIRMED_S,
            "netkit_confirm": not revert_in,
        }
        for driver in drivers
    }
    results = _play(drivers, variables, revert_in=revert_in or UNCONFIRMED_S)
    errors = {driver.device: driver.end_change(results[driver.device]) for driver in drivers}
    return {device: error for device, error in errors.items() if error is not None}


def _play(
    drivers: Sequence[LinuxDriver],
    variables: Mapping[str, Mapping[str, object]],
    *,
    checks: str = "",
    revert_in: int = UNCONFIRMED_S,
) -> dict[str, HostResult]:
    """Run the playbook on hosts, all in one batch."""
    password = _common_password(drivers)
    own = tuple(dict.fromkeys(folder for driver in drivers for folder in driver.own_playbooks))
    hosts = {driver.device: variables[driver.device] for driver in drivers}
    extra: dict[str, object] = {"netkit_batch": ["100%"]}
    shipped = (shipped_playbooks() / RAIL_TASKS).read_bytes()  # a copy may be unchanged
    steps = [folder / RAIL_TASKS for folder in own if (folder / RAIL_TASKS).exists()]
    if any(file.read_bytes() != shipped for file in steps):  # a user's steps have to run for each rail
        extra["netkit_at_once"] = "never"
    # Connecting and noticing a dead connection take the time limit each, and are reported as such.
    step_s = math.ceil(max(STEP_SHARE * revert_in, *(2 * driver.target.timeout_s + 1 for driver in drivers)))
    return play(APPLY, hosts, extra, checks=checks, password=password, own=own, step_s=step_s)


def _common_password(drivers: Sequence[LinuxDriver]) -> str:
    """The password of all hosts; Ansible asks for one only."""
    password, *others = {driver.target.password for driver in drivers}
    if others:
        raise DeviceError(Problem("hosts with different passwords cannot change together", "use SSH keys"))
    return password


DRIVER = LinuxDriver
