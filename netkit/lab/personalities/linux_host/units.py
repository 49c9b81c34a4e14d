"""systemd units: their files and their states, and transient units of `systemd-run`."""

import contextlib
import re
import shlex
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from netkit.lab.entry import HungUpError, WireCall
from netkit.lab.node import Node, ProgramResult
from netkit.lab.personalities.linux_host import networkd
from netkit.lab.personality import Call

KNOWN: Mapping[str, frozenset[str]] = {
    "Unit": frozenset(
        [
            "Description",
            "Documentation",
            "BindsTo",
            "After",
            "Before",
            "Wants",
            "Requires",
            "StartLimitIntervalSec",
            "StartLimitBurst",
        ]
    ),
    "Service": frozenset(
        [
            "Type",
            "RemainAfterExit",
            "ExecStart",
            "ExecStop",
            "ExecReload",
            "Restart",
            "RestartSec",
            "TimeoutStartSec",
            "Environment",
        ]
    ),
    "Install": frozenset({"WantedBy"}),
}
TYPES = ("oneshot", "simple", "exec")


class UnitError(Exception):
    """A unit that does not exist or cannot be used."""


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A loaded unit file with its specifiers expanded."""

    name: str
    path: str
    text: str
    settings: Mapping[str, tuple[str, ...]]
    """`Section.Key` → values in order."""

    def first(self, key: str, default: str = "") -> str:
        return self.settings.get(key, (default,))[-1]

    @property
    def kind(self) -> str:
        return self.first("Service.Type", "simple")

    @property
    def remains(self) -> bool:
        return self.first("Service.RemainAfterExit") in {"yes", "true", "on", "1"}

    def commands(self, key: str = "Service.ExecStart") -> list[list[str]]:
        return [shlex.split(text.lstrip("-@+!:")) for text in self.settings.get(key, ())]


def template(name: str) -> str:
    """The file name of a unit: that of the template for an instance."""
    head, at, _ = name.partition("@")
    return f"{head}@.service" if at else name


def load(name: str, path: Path, shown_path: str, *, is_strict: bool = False) -> UnitFile:
    """Read a unit file; raise UnitError with every problem. Strictly, unknown settings are problems too."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise UnitError(f"Unit {name} not found.") from None
    instance = name.partition("@")[2].removesuffix(".service")
    settings: dict[str, list[str]] = {}
    problems = []
    for section, key, value in lines(text):
        if is_strict and (not key or key not in KNOWN.get(section, frozenset())):
            problems.append(f"{shown_path}: unknown line {key or value!r} in section [{section}]")
        filled = value.replace("%i", instance).replace("%I", instance).replace("%n", name).replace("%%", "%")
        settings.setdefault(f"{section}.{key}", []).append(filled)
    unit = UnitFile(name, shown_path, text, {key: tuple(values) for key, values in settings.items()})
    if not unit.commands():
        problems.append(f"{shown_path}: Service has no ExecStart= setting. Refusing.")
    if unit.kind not in TYPES:
        problems.append(f"{shown_path}: unknown type {unit.kind!r}; use one of {', '.join(TYPES)}")
    if problems:
        raise UnitError("\n".join(problems))
    return unit


def lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of each setting; a malformed line has an empty key."""
    head = ""
    for section, key, value in sections(text):
        if key:
            yield head, key, value
        elif value:
            yield head, "", value
        else:
            head = section


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield headers (section only), settings (key and value) and malformed lines (value only)."""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            yield line[1:-1], "", ""
            continue
        key, equals, value = line.partition("=")
        yield ("", key.strip(), value.strip()) if equals else ("", "", line)


HOME = "/run/netkit/unit"
SOCKET = f"{HOME}/node.sock"
PROGRAMS = f"{HOME}/bin"
PATH = f"{PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWN_CLIENT = "/run/netkit/bin/.client"
OWN_SOCKET = "/run/netkit/node.sock"
Answer = Callable[[Call], int]


@contextmanager
def answering(node: Node, programs: Sequence[str], answer: Answer) -> Iterator[None]:
    """Answer the NIC tools for programs that run in the node meanwhile."""
    _install_clients(node, programs)
    path = node.file(SOCKET)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(16)
        thread = threading.Thread(target=_serve, args=(listener, node, answer), daemon=True)
        thread.start()
        try:
            yield
        finally:
            # close() alone does not wake the thread.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _install_clients(node: Node, programs: Sequence[str]) -> None:
    folder = node.file(PROGRAMS)
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    client = folder / ".client"
    client.write_text(node.file(OWN_CLIENT).read_text(encoding="utf-8").replace(OWN_SOCKET, SOCKET), encoding="utf-8")
    client.chmod(0o755)
    for program in programs:
        (folder / program).symlink_to(".client")


def _serve(listener: socket.socket, node: Node, answer: Answer) -> None:
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return
        with line:
            try:
                call = WireCall(line, node.file("/"))
                call.end(answer(call))
            except HungUpError:
                continue


FOLDERS = ("/etc/systemd/system", "/run/systemd/system")
STARTED = "/run/netkit/units"
EARLY = "sysinit.target"
NETWORKD = "systemd-networkd.service"
ALWAYS_RUNNING = ("ssh", "sshd", "dbus", "chrony", "chronyd", "lldpd", "systemd-udevd", "systemd-journald", "rsyslog")
"""Services the lab does not run through systemd; they are reported as running."""
Runner = Callable[[list[str]], ProgramResult]
# Stopping it must also end its children, which a shell does only while it waits for background jobs.
BACKGROUND = """trap 'trap - TERM; kill 0; exit 143' TERM
sleep "$1" & wait $!
shift; : >"$0"
"$@" & wait $!
code=$?; echo "$code" >"$0"; exit "$code"
"""
SUFFIX = re.compile(r"\.(service|timer|target|socket|mount|device)\Z")


@dataclass(frozen=True, slots=True)
class UnitState:
    """The state of a unit."""

    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    status: int = 0
    output: str = ""


RUNNING = UnitState("active", "running")
EXITED = UnitState("active", "exited")
WAITING = UnitState("active", "waiting")
DEAD = UnitState()


def full_name(name: str) -> str:
    """Add `.service` to a name without a suffix."""
    return name if SUFFIX.search(name) else f"{name}.service"


class Units:
    """All units of a host."""

    def __init__(self, node: Node, runner: Runner) -> None:
        self._node = node
        self._runner = runner
        self._loaded: dict[str, UnitFile] = {}
        self._states: dict[str, UnitState] = {}
        self._transient: dict[str, tuple[str, ...]] = {}
        self._disabled: set[str] = set()

    def power_up(self) -> None:
        self._loaded, self._states, self._transient = {}, {}, {}

    def start_early(self) -> None:
        """Start the units wanted by sysinit.target, which run before the network."""
        for file in sorted(self._node.file(FOLDERS[0]).glob("*.service")):
            with contextlib.suppress(UnitError):
                if EARLY in self.unit(file.name).settings.get("Install.WantedBy", ()):
                    self.restart(file.name)

    def reload(self) -> None:
        """Forget the loaded unit files."""
        self._loaded = {}

    def unit(self, name: str) -> UnitFile:
        """Load a unit file; raise UnitError."""
        if name not in self._loaded:
            files = [f"{folder}/{template(name)}" for folder in FOLDERS]
            file = next((file for file in files if self._node.file(file).exists()), files[0])
            self._loaded[name] = load(name, self._node.file(file), file)
        return self._loaded[name]

    def is_known(self, name: str) -> bool:
        return (
            self._is_always_running(name)
            or name in self._transient
            or name == NETWORKD
            or any(self._node.file(f"{folder}/{template(name)}").exists() for folder in FOLDERS)
        )

    def is_transient(self, name: str) -> bool:
        """Whether the unit was created by `systemd-run`."""
        return name in self._transient

    def names(self) -> Iterator[str]:
        yield NETWORKD
        yield from (f"{name}.service" for name in ALWAYS_RUNNING)
        yield from self._transient
        yield from (name for name in self._states if not self._is_always_running(name) and name not in self._transient)

    def state(self, name: str) -> UnitState:
        if name == NETWORKD:
            return RUNNING if self._node.is_running(networkd.NAME) else self._states.get(name, DEAD)
        if name in self._transient:
            return self._transient_state(name)
        if self._is_always_running(name):
            return self._states.get(name, RUNNING)
        known = self._states.get(name, DEAD)
        return DEAD if known == RUNNING and not self._node.is_running(name) else known

    def start(self, name: str) -> UnitState:
        """Start a unit unless it is active; raise UnitError if it does not exist."""
        return self.state(name) if self.state(name).active == "active" else self.restart(name)

    def restart(self, name: str) -> UnitState:
        """Restart a unit; raise UnitError if it does not exist."""
        if name == NETWORKD:
            networkd.restart(self._node)
        elif self._is_always_running(name):
            self._states[name] = RUNNING
        else:
            self._states[name] = self._run(self.unit(name))
        return self.state(name)

    def reload_unit(self, name: str) -> UnitState:
        if name == NETWORKD:
            networkd.control(self._node, "reload")
            return self.state(name)
        return self.restart(name)

    def stop(self, name: str) -> None:
        """Stop a unit; raise UnitError if it does not exist."""
        if not self.is_known(name):
            raise UnitError(f"Failed to stop {name}: Unit {name} not loaded.")
        if name == NETWORKD:
            networkd.stop(self._node)
        elif name in self._transient:
            self._end_transient(name)
        else:
            self._node.end(name)
        self._states[name] = DEAD

    def remember(self, name: str, state: UnitState) -> None:
        """Record the state of a unit that was started elsewhere."""
        self._states[name] = state

    def reset_failed(self, name: str) -> None:
        """Reset the failed state of one unit, or of all."""
        for unit in list(self._states):
            if name in {"", unit} and self.state(unit).active == "failed":
                del self._states[unit]

    def enable(self, name: str, *, is_enabled: bool) -> None:
        if is_enabled:
            self._disabled.discard(name)
        else:
            self._disabled.add(name)

    def is_enabled(self, name: str) -> str:
        """The state that `systemctl is-enabled` prints."""
        if name in self._transient:
            return "transient"
        if "@" in name:
            return "static"
        return "disabled" if name in self._disabled else "enabled"

    def add_transient(self, name: str, delay_s: float | None, command: tuple[str, ...]) -> None:
        """Run a command in the background, with a delay as a timer and its service."""
        service = f"{name}.service"
        marker = f"{STARTED}/{service}"
        self._node.file(STARTED).mkdir(parents=True, exist_ok=True)
        self._node.file(marker).unlink(missing_ok=True)
        self._transient[service] = command
        if delay_s is not None:
            self._transient[f"{name}.timer"] = command
        self._node.spawn(service, "/bin/sh", "-c", BACKGROUND, marker, f"{delay_s or 0:g}", *command)

    def _transient_state(self, name: str) -> UnitState:
        service = f"{name.removesuffix('.timer').removesuffix('.service')}.service"
        marker = self._node.file(f"{STARTED}/{service}")
        has_started, is_running = marker.exists(), self._node.is_running(service)
        if name.endswith(".timer"):
            return WAITING if is_running and not has_started else DEAD
        if is_running:
            return RUNNING if has_started else DEAD
        code = marker.read_text(encoding="utf-8").strip() if has_started else ""
        return UnitState("failed", "failed", "exit-code", int(code)) if code.isdecimal() and int(code) else DEAD

    def _end_transient(self, name: str) -> None:
        base = name.removesuffix(".timer").removesuffix(".service")
        if name.endswith(".service") and self.state(f"{base}.timer") == WAITING:
            return  # the timer still starts it
        if name.endswith(".timer") and self._transient_state(f"{base}.service").active == "active":
            # The timer has fired; the service it started continues.
            self._transient.pop(name, None)
            return
        self._node.end(f"{base}.service")
        for suffix in ("timer", "service"):
            self._transient.pop(f"{base}.{suffix}", None)

    def _is_always_running(self, name: str) -> bool:
        return name.removesuffix(".service") in ALWAYS_RUNNING

    def _run(self, unit: UnitFile) -> UnitState:
        condition = unit.first("Unit.ConditionFileIsExecutable")
        if condition and not self._node.file(condition).exists():
            return DEAD
        if unit.kind != "oneshot":
            self._node.spawn(unit.name, *unit.commands()[0])
            return RUNNING
        for command in unit.commands():
            result = self._runner(command)
            self._node.log(f"{unit.name}: {' '.join(command)}: exit code {result.exit_code}")
            if result.exit_code != 0:
                break
        return outcome(unit, result)


def outcome(unit: UnitFile, result: ProgramResult) -> UnitState:
    """The state of a oneshot unit from the result of its last command."""
    if result.exit_code != 0:
        return UnitState("failed", "failed", "exit-code", result.exit_code, result.stdout + result.stderr)
    active = ("active", "exited") if unit.remains else ("inactive", "dead")
    return UnitState(*active, output=result.stdout + result.stderr)
