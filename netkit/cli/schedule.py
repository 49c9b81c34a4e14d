"""`netkit schedule`: systemd timers and services that run checks and backups, and keep their output."""

import os
import re
import sys
from collections.abc import Iterator
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
"""Matches the folder of the fabric in a unit that netkit wrote, still quoted."""
LEAST_S = 10 * SHORTEST_S
PASSED = (0, 1, 4, 5)
"""Exit codes of a check that worked: it reported failures or unreached devices, or another check was running."""


def run(
    folder: Path,
    action: str,
    *,
    every: str,
    backup: Path | None,
    units: Path,
    is_notifying: bool,
    fleet: Path | None,
) -> None:
    """Print the units, or install those that are missing or changed."""
    if action not in ACTIONS:
        raise UsageError(Problem(f"unknown action {action!r}", f"use one of {', '.join(ACTIONS)}"))
    found = EVERY.fullmatch(every)
    if found is None:
        what = f"--every {every!r} is not a duration"
        raise UsageError(Problem(what, "use minutes, hours or days, such as 15m, 1h or 1d"))
    every_s = int(found["number"]) * UNITS_S[found["unit"]]
    project = open_project(folder)
    options = ("--notify",) if is_notifying else ()
    place = project.folder.resolve()
    sites = () if fleet is None else ("--fleet", str(fleet.resolve()))
    made = dict(_units(project.fabric.name, place, every_s, (*options, *sites), backup and backup.resolve(), sites))
    if action == "show":
        sys.stdout.write("\n".join(f"# {units / name}\n{text}" for name, text in made.items()))
        return
    for name in made:
        known = _folder_of(units / name)
        if known and known != str(place):  # the other fabric would no longer be checked
            what = f"{units / name} belongs to the fabric in {known}, which has the same name"
            remedy = "rename one of the fabrics in its fabric.yaml, or remove that unit if its folder is gone"
            raise UsageError(Problem(what, remedy))
    written = [name for name, text in made.items() if write_whole(units / name, text)]
    news = f"{counted(len(written), 'unit')} written to {units}" if written else f"{units} is up to date"
    timers = " ".join(name for name in made if name.endswith(".timer"))
    sys.stdout.write(f"{news}\nnext: systemctl daemon-reload && systemctl enable --now {timers}\n")


def _folder_of(unit: Path) -> str:
    """Return the fabric's folder in an installed unit; empty if the unit does not exist or is not netkit's."""
    try:
        found = FOLDER.search(unit.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""  # writing will fail with a better error
    if found is None:
        return ""
    word = found[1]
    bare = re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word
    return bare.replace("$$", "$").replace("%%", "%")


def _units(
    fabric: str, folder: Path, every_s: int, options: tuple[str, ...], backup: Path | None, sites: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    deadline_s = max(every_s, LEAST_S)
    often = ("--store", "--since", "last", "--changes", *options, "--deadline", f"{deadline_s}s")
    check = ("check", "--fabric", str(folder), *often)
    about = f"netkit check of {fabric}"
    yield f"netkit-check-{fabric}.service", _service(about, check, folder, 2 * deadline_s)
    yield f"netkit-check-{fabric}.timer", _timer(about, f"OnActiveSec=1min\nOnUnitActiveSec={every_s}s")
    if backup is not None:
        save = ("backup", "--fabric", str(folder), "--out", str(backup), *sites)
        about = f"netkit backup of {fabric}"
        yield f"netkit-backup-{fabric}.service", _service(about, save, folder, 3600)
        yield f"netkit-backup-{fabric}.timer", _timer(about, f"OnCalendar={NIGHTLY}\nPersistent=true")


def _service(about: str, words: tuple[str, ...], folder: Path, longest_s: int) -> str:
    """Return a oneshot service: systemd starts it only after it has ended, so that runs never overlap."""
    beside = Path(sys.executable).with_name("netkit")
    program = (str(beside),) if os.access(beside, os.X_OK) else ("/usr/bin/env", "netkit")
    command = " ".join(map(_quoted, (*program, *words)))
    # Where netkit looks for the user's own checks, models and templates.
    here = Path.cwd()
    workplace = here if any((here / name).is_dir() for name in FOLDERS) else folder
    return f"""\
[Unit]
Description={about}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
WorkingDirectory={_escaped(str(workplace))}
EnvironmentFile=-/etc/netkit/environment
ExecStart={command}
TimeoutStartSec={longest_s}s
SuccessExitStatus={" ".join(map(str, PASSED))}
"""


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


def _quoted(word: str) -> str:
    """Quote a word for a systemd command line."""
    escaped = _escaped(word).replace("$", "$$")
    return escaped if PLAIN.fullmatch(word) else '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    """Escape percent signs; refuse control characters, since a newline would begin another setting."""
    if CONTROL.search(text):
        raise UsageError(Problem(f"{text!r} cannot be used in a systemd unit", "rename it without newlines and tabs"))
    return text.replace("%", "%%")
