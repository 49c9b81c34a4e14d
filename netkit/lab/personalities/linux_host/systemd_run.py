"""`systemd-run`: runs a command in the background, now or after a delay, independent of the login."""

import re
import uuid
from dataclasses import dataclass, field

from netkit.lab.personalities.linux_host.units import Units
from netkit.lab.personality import Call

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
FLAGS = frozenset(
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
WITH_VALUE = frozenset(
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
        if word in FLAGS:
            request.is_quiet |= word in {"-q", "--quiet"}
        elif option in WITH_VALUE:
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
