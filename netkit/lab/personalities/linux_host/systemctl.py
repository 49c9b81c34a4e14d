"""`systemctl` and `systemd-run`: their command lines and verbs."""

import fnmatch
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from netkit.lab.personalities.linux_host.units import NETWORKD, UnitError, Units, UnitState, full_name
from netkit.lab.personality import Call

WITH_VALUE = (
    "-p",
    "--property",
    "-t",
    "--type",
    "--state",
    "-n",
    "--lines",
    "-o",
    "--output",
    "--job-mode",
    "--root",
    "-s",
    "--signal",
    "--kill-who",
)
FLAGS = frozenset(
    [
        "-q",
        "--quiet",
        "--no-block",
        "--now",
        "--no-pager",
        "--no-legend",
        "--plain",
        "--all",
        "-a",
        "--system",
        "--no-ask-password",
        "--full",
        "-l",
        "--value",
        "--no-wall",
        "--force",
        "-f",
        "--runtime",
        "--no-reload",
        "--failed",
        "--wait",
    ]
)


class SystemctlArguments:
    """A parsed command line."""

    def __init__(self, words: Sequence[str]) -> None:
        self.flags: set[str] = set()
        self.properties: list[str] = []
        self.names: list[str] = []
        self.unknown = ""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            option, equals, value = word.partition("=")
            if option in WITH_VALUE:
                value = value if equals else (rest.pop(0) if rest else "")
                if option in {"-p", "--property"}:
                    self.properties += value.split(",")
            elif word in FLAGS:
                self.flags.add(word)
            elif word.startswith("-"):
                self.unknown = self.unknown or word
            else:
                self.names.append(word)
        self.verb = self.names.pop(0) if self.names else "list-units"

    @property
    def is_quiet(self) -> bool:
        return bool(self.flags & {"-q", "--quiet"})


def matching(units: Units, names: Sequence[str]) -> Iterator[str]:
    """Yield units by name; a pattern matches loaded units only."""
    for name in names:
        if any(char in name for char in "*?["):
            yield from (known for known in units.names() if fnmatch.fnmatchcase(known, name))
        else:
            yield full_name(name)


NOT_ACTIVE = 3
NO_SUCH_UNIT = 4


def properties(units: Units, name: str) -> Mapping[str, str]:
    state = units.state(name)
    found = {
        "Id": name,
        "Names": name,
        "LoadState": "loaded" if units.is_known(name) else "not-found",
        "ActiveState": state.active,
        "SubState": state.sub,
        "Result": state.result,
        "ExecMainStatus": str(state.status),
        "NeedDaemonReload": "no",
    }
    if not units.is_known(name):
        return found
    found["UnitFileState"] = units.is_enabled(name)
    found["Transient"] = "yes" if units.is_transient(name) else "no"
    return found | dict(_from_file(units, name))


def _from_file(units: Units, name: str) -> Iterator[tuple[str, str]]:
    try:
        unit = units.unit(name)
    except UnitError:
        return
    yield "FragmentPath", unit.path
    for key, values in unit.settings.items():
        yield key.partition(".")[2], " ".join(values)


def show(units: Units, arguments: SystemctlArguments, call: Call) -> int:
    if not arguments.names:
        call.out("Version=252 (252.38-1~deb12u1)\nSystemState=running\nVirtualization=none\n")
        return 0
    blocks = []
    for name in map(full_name, arguments.names):
        rows = properties(units, name)
        keys = arguments.properties or list(rows)
        if "--value" in arguments.flags:
            blocks.append("".join(f"{rows[key]}\n" for key in keys if key in rows))
        else:
            blocks.append("".join(f"{key}={rows[key]}\n" for key in keys if key in rows))
    call.out("\n".join(blocks))
    return 0


def status(units: Units, arguments: SystemctlArguments, call: Call) -> int:
    code = 0
    for name in map(full_name, arguments.names or [NETWORKD]):
        if not units.is_known(name):
            call.err(f"Unit {name} could not be found.\n")
            code = NO_SUCH_UNIT
            continue
        rows = properties(units, name)
        mark = {"active": "●", "failed": "×"}.get(rows["ActiveState"], "○")
        call.out(f"{mark} {name} - {rows.get('Description', name)}\n")
        path = rows.get("FragmentPath", "transient" if units.is_transient(name) else f"/lib/systemd/system/{name}")
        call.out(f"     Loaded: loaded ({path}; {rows['UnitFileState']})\n")
        detail = f"Result: {rows['Result']}" if rows["ActiveState"] == "failed" else rows["SubState"]
        call.out(f"     Active: {rows['ActiveState']} ({detail})\n")
        state = units.state(name)
        if state.output:
            call.out("\n" + "".join(f"{line}\n" for line in state.output.splitlines()[-10:]))
        code = code or (0 if rows["ActiveState"] == "active" else NOT_ACTIVE)
    return code


def list_units(units: Units, arguments: SystemctlArguments, call: Call) -> int:
    """Print the loaded units, or the waiting timers."""
    names = [name for name in dict.fromkeys(units.names()) if units.is_known(name)]
    if arguments.verb == "list-timers":
        names = [name for name in names if name.endswith(".timer") and units.state(name).active == "active"]
    if "--no-legend" not in arguments.flags:
        call.out("  UNIT LOAD ACTIVE SUB DESCRIPTION\n")
    for name in names:
        state = units.state(name)
        call.out(f"  {name} loaded {state.active} {state.sub} {name}\n")
    if "--no-legend" not in arguments.flags:
        call.out(f"\n{len(names)} loaded units listed.\n")
    return 0


def systemctl(units: Units, call: Call) -> int:
    if "--version" in call.arguments:
        call.out("systemd 252 (252.38-1~deb12u1)\n")
        return 0
    arguments = SystemctlArguments(call.arguments)
    if arguments.unknown:
        call.err(f"systemctl: unrecognized option '{arguments.unknown}'\n")
        return 1
    verb = VERBS.get(arguments.verb)
    if verb is None:
        call.err(f"Unknown command verb {arguments.verb}.\n")
        return 1
    if arguments.verb in NEEDS_NAME and not arguments.names:
        call.err("Too few arguments.\n")
        return 1
    return verb(units, arguments, call)


def _for_each(change: Callable[[Units, str], UnitState]) -> Callable[[Units, SystemctlArguments, Call], int]:
    def verb(units: Units, arguments: SystemctlArguments, call: Call) -> int:
        code = 0
        for name in matching(units, arguments.names):
            try:
                state = change(units, name)
            except UnitError as error:
                call.err(f"Failed to {arguments.verb} {name}: {error}\n")
                code = 5
                continue
            if state.active == "failed":
                call.err(
                    f"Job for {name} failed because the control process exited with error code.\n"
                    f'See "systemctl status {name}" and "journalctl -xeu {name}" for details.\n'
                )
                code = code or 1
        return code

    return verb


def _start(units: Units, name: str) -> UnitState:
    return units.start(name)


def _reload(units: Units, name: str) -> UnitState:
    return units.reload_unit(name)


def _stop(units: Units, name: str) -> UnitState:
    units.stop(name)
    return UnitState()


def _enable(units: Units, arguments: SystemctlArguments, call: Call) -> int:
    is_enabled = arguments.verb == "enable"
    for name in map(full_name, arguments.names):
        if not units.is_known(name):
            call.err(f"Failed to {arguments.verb} unit: Unit file {name} does not exist.\n")
            return 1
        units.enable(name, is_enabled=is_enabled)
    if "--now" in arguments.flags:
        return _for_each(_start if is_enabled else _stop)(units, arguments, call)
    return 0


def _is_state(units: Units, arguments: SystemctlArguments, call: Call) -> int:
    states = [units.state(full_name(name)).active for name in arguments.names]
    if not arguments.is_quiet:
        call.out("".join(f"{state}\n" for state in states))
    if arguments.verb == "is-active":
        return 0 if "active" in states else NOT_ACTIVE
    return 0 if "failed" in states else 1


def _is_enabled(units: Units, arguments: SystemctlArguments, call: Call) -> int:
    code = 0
    for name in map(full_name, arguments.names):
        if not units.is_known(name):
            call.err(f"Failed to get unit file state for {name}: No such file or directory\n")
            code = 1
            continue
        word = units.is_enabled(name)
        code = code or int(word == "disabled")
        if not arguments.is_quiet:
            call.out(f"{word}\n")
    return code


def _daemon_reload(units: Units, _arguments: SystemctlArguments, _call: Call) -> int:
    units.reload()
    return 0


def _reset_failed(units: Units, arguments: SystemctlArguments, _call: Call) -> int:
    for name in arguments.names or [""]:
        units.reset_failed(full_name(name) if name else "")
    return 0


def _is_system_running(_units: Units, _arguments: SystemctlArguments, call: Call) -> int:
    call.out("running\n")
    return 0


VERBS: Mapping[str, Callable[[Units, SystemctlArguments, Call], int]] = {
    "start": _for_each(_start),
    "restart": _for_each(lambda units, name: units.restart(name)),
    "try-restart": _for_each(
        lambda units, name: units.restart(name) if units.state(name).active == "active" else units.state(name)
    ),
    "reload": _for_each(_reload),
    "reload-or-restart": _for_each(_reload),
    "stop": _for_each(_stop),
    "enable": _enable,
    "disable": _enable,
    "is-active": _is_state,
    "is-failed": _is_state,
    "is-enabled": _is_enabled,
    "show": show,
    "status": status,
    "list-units": list_units,
    "list-timers": list_units,
    "daemon-reload": _daemon_reload,
    "reset-failed": _reset_failed,
    "is-system-running": _is_system_running,
}
NEEDS_NAME = frozenset(
    [
        "start",
        "restart",
        "try-restart",
        "reload",
        "reload-or-restart",
        "stop",
        "enable",
        "disable",
        "is-active",
        "is-failed",
        "is-enabled",
    ]
)


UNITS_S = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "sec": 1,
    "second": 1,
    "seconds": 1,
    "": 1,
    "m": 60,
    "min": 60,
    "minutes": 60,
    "h": 3600,
    "hr": 3600,
}
SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)")
RUN_FLAGS = frozenset(
    [
        "--collect",
        "-G",
        "--no-block",
        "--quiet",
        "-q",
        "--remain-after-exit",
        "-r",
        "--system",
        "--no-ask-password",
        "--on-clock-change",
    ]
)
RUN_WITH_VALUE = frozenset(
    [
        "--unit",
        "-u",
        "--description",
        "-p",
        "--property",
        "--timer-property",
        "--setenv",
        "-E",
        "--service-type",
        "--slice",
        "--uid",
        "--gid",
        "--nice",
        "--working-directory",
        "--on-active",
    ]
)


class SpanError(Exception):
    """An invalid time span."""


def seconds(text: str) -> float:
    """Parse a systemd time span such as `90`, `2min` or `1min 30s`; raise SpanError."""
    total, at = 0.0, 0
    while at < len(text.rstrip()):
        match = SPAN.match(text, at)
        if match is None or match[2] not in UNITS_S:
            raise SpanError(text)
        total += float(match[1]) * UNITS_S[match[2]]
        at = match.end()
    if not text.strip():
        raise SpanError(text)
    return total


@dataclass(slots=True)
class SystemdRunArguments:
    """A parsed command line."""

    command: list[str]
    options: dict[str, str] = field(default_factory=dict)
    environment: list[str] = field(default_factory=list)
    is_quiet: bool = False
    problem: str = ""


def parse(words: tuple[str, ...]) -> SystemdRunArguments:
    """Parse a command line; options end at the command."""
    request = SystemdRunArguments(list(words))
    rest = request.command
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if word == "--":
            break
        if word in RUN_FLAGS:
            request.is_quiet |= word in {"-q", "--quiet"}
        elif option in RUN_WITH_VALUE:
            if not equals:
                value = rest.pop(0) if rest else ""
            if option in {"--setenv", "-E"}:
                request.environment.append(value)
            request.options[option] = value
        else:
            request.problem = f"systemd-run: unrecognized option '{word}'"
            return request
    if not rest:
        request.problem = "Command line to execute required."
    return request


def systemd_run(units: Units, call: Call) -> int:
    request = parse(call.arguments)
    if request.problem:
        call.err(f"{request.problem}\n")
        return 1
    delay = request.options.get("--on-active")
    try:
        delay_s = None if delay is None else seconds(delay)
    except SpanError:
        call.err(f"Failed to parse timer value: {delay}\n")
        return 1
    unit = request.options.get("--unit") or request.options.get("-u") or f"run-r{uuid.uuid4().hex}"
    name = unit.removesuffix(".service").removesuffix(".timer")
    kind = "service" if delay_s is None else "timer"
    if units.is_transient(f"{name}.{kind}") and units.state(f"{name}.{kind}").active == "active":
        call.err(
            f"Failed to start transient {kind} unit: Unit {name}.{kind} was already loaded or has a fragment file.\n"
        )
        return 1
    environment = ["/usr/bin/env", *request.environment] if request.environment else []
    units.add_transient(name, delay_s, (*environment, *request.command))
    if not request.is_quiet:
        call.err(f"Running {kind} as unit: {name}.{kind}\n")
        if delay_s is not None:
            call.err(f"Will run service as unit: {name}.service\n")
    return 0
