"""`systemd-run`: a command in the background of a host, now or after a while, that needs no login to stay open."""

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
    """A time span cannot be read."""


def seconds(text: str) -> float:
    """Return a systemd time span such as `90`, `2min` or `1min 30s`; raises SpanError."""
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
    """A command line, taken apart."""

    command: list[str]
    options: dict[str, str] = field(default_factory=dict)
    environment: list[str] = field(default_factory=list)
    is_quiet: bool = False
    problem: str = ""


def parse(words: tuple[str, ...]) -> SystemdRunArguments:
    """Return a command line taken apart; options end with the command's own name."""
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
            value = value if equals else (rest.pop(0) if rest else "")
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
    """Answer one command line."""
    request = parse(call.arguments)
    if request.problem:
        call.err(f"{request.problem}\n")
        return 1
    after = request.options.get("--on-active")
    try:
        delay_s = None if after is None else seconds(after)
    except SpanError:
        call.err(f"Failed to parse timer value: {after}\n")
        return 1
    given = request.options.get("--unit") or request.options.get("-u") or f"run-r{uuid.uuid4().hex}"
    name = given.removesuffix(".service").removesuffix(".timer")
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
