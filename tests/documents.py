"""Runs the commands of a page of the documentation in order, and compares their output with the page.

A page holds blocks of `console`: a line that begins with `$ ` is a command, what follows is its output, in which `…`
stands for anything: any lines when it is alone, else the rest of a word or line. A command must succeed unless the
next one is `echo $?`. A block whose info string names a file, as in `python checks/naming.py`, is that file.
"""

import os
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.command import ERR, GIVEN, OUT, begin_in_place_of, environment

BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<name>[\w./-]+))?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = "~~ the command before ended with "
STATUS = "echo $?"
PROGRAMS = {"netkit": "-m netkit", "pytest": "-m pytest", "python": ""}
IN_A_FORK = f"""#!/bin/sh
exec {GIVEN}<&0 {OUT}>&1 {ERR}>&2  # the shell moves its own streams while it writes to a file or reads one
answers="${{0%/*}}/answers"
echo $$ >"${{0%/*}}/calls"
while [ -p "$answers" ] && ! read -r code <"$answers"; do :; done  # the answer before may end only now
exit "$code"
"""
ANY, ANY_LINES = ".*", r"(?:.*\n)*?"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page, with its output there."""

    typed: str
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A file that a page shows."""

    name: str
    text: str


def steps(page: Path) -> list[Command | File]:
    """The steps of a page; a page without any is an error."""
    found = [step for block in BLOCK.finditer(page.read_text(encoding="utf-8")) for step in _steps(block)]
    assert found, f"{page}: nothing to run"
    return found


def _steps(block: re.Match[str]) -> Iterator[Command | File]:
    if block["name"]:
        yield File(block["name"], block["text"])
    elif block["kind"] == "console":
        for part in re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]:
            typed, *shown = part.splitlines()
            yield Command(typed, tuple(shown))


def run(page: Path, folder: Path, timeout_s: float = 300, *, is_forked: bool = False, **variables: str) -> None:
    """Run a page in its own folder, and compare it with the output.

    With `is_forked`, netkit runs in forks of this process: a page may not use netkit in a pipe with itself.
    """
    reported = steps(page)
    programs = _programs(folder)
    if is_forked:
        (programs / "netkit").write_text(IN_A_FORK, encoding="utf-8")
        for name in ("calls", "answers"):
            os.mkfifo(programs / name)
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-c", "".join(map(_script, reported))],
        cwd=folder,
        env=environment(PATH=f"{programs}:{os.environ['PATH']}", PYTHONUNBUFFERED="1", **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with shell:
        try:
            printed = _printed(shell, programs if is_forked else None, time.monotonic() + timeout_s)
        except BaseException:
            shell.kill()
            raise
    commands = [step for step in reported if isinstance(step, Command)]
    said = re.split(rf"^{re.escape(MARK)}(\d+)\n", printed, flags=re.MULTILINE)
    assert len(said) == 2 * len(commands) + 1, printed
    differences = list(_differences(commands, said[0:-1:2], said[1::2]))
    assert not differences, f"{page.name} differs:\n" + "\n".join(differences)


def _printed(shell: subprocess.Popen[bytes], programs: Path | None, deadline_s: float) -> str:
    """The output of a shell, whose calls of netkit are answered where it has a folder of programs."""
    assert shell.stdout is not None
    output, found = shell.stdout.fileno(), b""
    calls = os.open(programs / "calls", os.O_RDWR) if programs else None  # open at both ends, so that it never ends
    children: dict[int, int] = {}
    while True:
        left_s = max(0.0, deadline_s - time.monotonic())
        ready, _, _ = select.select([output, *children, *([calls] if calls else [])], [], [], left_s)
        if not ready:
            raise subprocess.TimeoutExpired(shell.args, left_s, found)
        if calls in ready:
            child = begin_in_place_of(int(os.read(calls, 100)))
            children[os.pidfd_open(child)] = child
        for handle in children.keys() & set(ready):
            assert programs is not None
            _, status = os.waitpid(children.pop(handle), 0)
            os.close(handle)
            (programs / "answers").write_text(f"{os.waitstatus_to_exitcode(status)}\n", encoding="ascii")
        if output in ready:
            chunk = os.read(output, 1 << 16)
            found += chunk
            if not chunk:
                break
    if calls:
        os.close(calls)
    return found.decode(errors="replace")


def _script(step: Command | File) -> str:
    if isinstance(step, File):
        folder = shlex.quote(str(Path(step.name).parent))
        return f"mkdir -p {folder}; cat > {shlex.quote(step.name)} <<'~~'\n{step.text}~~\n"
    # A command that reads stdin would read the rest of the page; `echo $?` prints the previous exit code.
    return f'(exit ${{ended:-0}}); {{ {step.typed}\n}} </dev/null; ended=$?\necho "{MARK}$ended"\n'


def _programs(folder: Path) -> Path:
    """Make a folder of programs as an installation would have them."""
    programs = folder / ".programs"
    programs.mkdir()
    for name, arguments in PROGRAMS.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    return programs


def _differences(commands: Sequence[Command], said: Sequence[str], codes: Sequence[str]) -> Iterator[str]:
    following = [*(command.typed for command in commands[1:]), ""]
    for command, text, code, after in zip(commands, said, codes, following, strict=True):
        if code != "0" and after != STATUS:
            yield f"$ {command.typed}\n{text}ended with {code}, and the page does not ask how"
        elif not _is_as_shown(command.shown, text):
            yield f"$ {command.typed}\n{text}and the page shows\n" + "\n".join(command.shown)


def _is_as_shown(shown: Sequence[str], text: str) -> bool:
    pattern = "".join(ANY_LINES if line == "…" else f"{ANY.join(map(re.escape, line.split('…')))}\n" for line in shown)
    return re.fullmatch(pattern, text if text.endswith("\n") or not text else f"{text}\n") is not None
