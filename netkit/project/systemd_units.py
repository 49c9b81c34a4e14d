"""systemd timers and services that run checks and backups, and keep their output."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from netkit.errors import Problem, UsageError
from netkit.project.revision import FOLDERS

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


def folder_of(unit: Path) -> str:
    """The fabric's folder in an installed unit; empty if the unit does not exist or is not netkit's."""
    try:
        found = FOLDER.search(unit.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""  # writing will fail with a better error
    if found is None:
        return ""
    word = found[1]
    bare = re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word
    return bare.replace("$$", "$").replace("%%", "%")


def unit_files(
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
    """A oneshot service: systemd starts it only after it has ended, so that runs never overlap."""
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
