"""`netkit schedule`: timers and services for systemd, which runs checks and backups and keeps their output."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from netkit.cli.fabric import open_project
from netkit.errors import Problem, UsageError
from netkit.project.revision import FOLDERS
from netkit.report.plan_view import counted
from netkit.terminal.whole_file import write_whole

ACTIONS = ("show", "install")
EVERY = re.compile(r"(?P<number>[1-9]\d{0,3})(?P<unit>[mhd])")
UNITS_S = {"m": 60, "h": 3600, "d": 86_400}
SHORTEST_S = 60
PLAIN = re.compile(r"[\w@%+=:,./-]+")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
NIGHTLY = "*-*-* 03:17:00"
FOLDER = re.compile(r'^ExecStart=.*? --fabric ("(?:[^"\\]|\\.)*"|\S+)', re.MULTILINE)
"""The folder in a unit that netkit wrote, quoted as it is there."""
LEAST_S = 10 * SHORTEST_S
PASSED = (0, 1, 4, 5)
"""Exit codes after which a check has done its work: something is ill, or was not reached, and that was said; or another
check does it right now."""


def run(folder: Path, action: str, *, every: str, backup: Path | None, units: Path, is_notifying: bool) -> None:
    """Print the units, or write those that are not there yet."""
    if action not in ACTIONS:
        raise UsageError(Problem(f"no action {action!r}", f"use one of {', '.join(ACTIONS)}"))
    project = open_project(folder)
    tells = ("--notify",) if is_notifying else ()
    place = project.folder.resolve()
    made = dict(_units(project.fabric.name, place, _seconds(every), tells, backup and backup.resolve()))
    if action == "show":
        sys.stdout.write("\n".join(f"# {units / name}\n{text}" for name, text in made.items()))
        return
    _refuse_others(made, units, place)
    sys.stdout.write("".join(f"{line}\n" for line in _installed(made, units)))


def _refuse_others(made: Mapping[str, str], units: Path, folder: Path) -> None:
    """Raise UsageError when a unit of that name is of another folder: its fabric would no longer be checked."""
    for name in made:
        known = _folder_of(units / name)
        if known and known != str(folder):
            what = f"{units / name} is of the fabric in {known}, which has the same name"
            remedy = "rename one of the fabrics in its fabric.yaml, or remove that unit if its folder is gone"
            raise UsageError(Problem(what, remedy))


def _folder_of(unit: Path) -> str:
    """Return the folder that an installed unit names; nothing of one that is not there, or is not netkit's."""
    try:
        found = FOLDER.search(unit.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""  # writing will fail with a better error
    return _unquoted(found[1]) if found else ""


def _installed(made: Mapping[str, str], units: Path) -> Iterator[str]:
    """Write the units and yield what there is to do."""
    written = [name for name, text in made.items() if write_whole(units / name, text)]
    yield f"{counted(len(written), 'unit')} written to {units}" if written else f"{units} has them already"
    timers = " ".join(name for name in made if name.endswith(".timer"))
    yield f"next: systemctl daemon-reload && systemctl enable --now {timers}"


def _seconds(every: str) -> int:
    found = EVERY.fullmatch(every)
    if found is None:
        raise UsageError(Problem(f"--every {every!r} is no time", "use minutes, hours or days, such as 15m, 1h or 1d"))
    return int(found["number"]) * UNITS_S[found["unit"]]


def _units(
    fabric: str, folder: Path, every_s: int, tells: tuple[str, ...], backup: Path | None
) -> Iterator[tuple[str, str]]:
    deadline_s = max(every_s, LEAST_S)
    often = ("--store", "--since", "last", "--changes", *tells, "--deadline", f"{deadline_s}s")
    check = ("check", "--fabric", str(folder), *often)
    about = f"netkit check of {fabric}"
    yield f"netkit-check-{fabric}.service", _service(about, check, folder, 2 * deadline_s)
    yield f"netkit-check-{fabric}.timer", _timer(about, f"OnActiveSec=1min\nOnUnitActiveSec={every_s}s")
    if backup is not None:
        save = ("backup", "--fabric", str(folder), "--out", str(backup))
        about = f"netkit backup of {fabric}"
        yield f"netkit-backup-{fabric}.service", _service(about, save, folder, 3600)
        yield f"netkit-backup-{fabric}.timer", _timer(about, f"OnCalendar={NIGHTLY}\nPersistent=true")


def _service(about: str, words: tuple[str, ...], folder: Path, longest_s: int) -> str:
    """Return a service that ends by itself: systemd starts none while it runs, so that runs never pile up."""
    command = " ".join(map(_quoted, (*_program(), *words)))
    return f"""\
[Unit]
Description={about}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
WorkingDirectory={_marked(str(_workplace(folder)))}
EnvironmentFile=-/etc/netkit/environment
ExecStart={command}
TimeoutStartSec={longest_s}s
SuccessExitStatus={" ".join(map(str, PASSED))}
"""


def _workplace(folder: Path) -> Path:
    """Return where to run: here, when there are checks, models or templates that count where netkit is run."""
    here = Path.cwd()
    return here if any((here / name).is_dir() for name in FOLDERS) else folder


def _timer(about: str, when: str) -> str:
    return f"""\
[Unit]
Description={about}, regularly

[Timer]
{when}
RandomizedDelaySec=20s

[Install]
WantedBy=timers.target
"""


def _program() -> tuple[str, ...]:
    """Return the netkit that runs now, wherever it is installed."""
    beside = Path(sys.executable).with_name("netkit")
    return (str(beside),) if os.access(beside, os.X_OK) else ("/usr/bin/env", "netkit")


def _quoted(word: str) -> str:
    """Return a word as systemd reads it in a command."""
    marked = _marked(word).replace("$", "$$")
    return marked if PLAIN.fullmatch(word) else '"' + marked.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquoted(word: str) -> str:
    """Return a word of a command as it was before it was quoted."""
    bare = re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word
    return bare.replace("$$", "$").replace("%%", "%")


def _marked(text: str) -> str:
    """Return text in which a percent sign means itself; a line that ends within it would be another setting."""
    if CONTROL.search(text):
        raise UsageError(Problem(f"{text!r} cannot stand in a unit of systemd", "rename it without newlines and tabs"))
    return text.replace("%", "%%")
