"""Unit files of systemd: what `systemctl` needs to know of a service."""

import shlex
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from netkit.lab.entry.wire import HungUpError, WireCall
from netkit.lab.node import Node
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
    """A unit file cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A unit as it was loaded, its specifiers filled in."""

    name: str
    path: str
    text: str
    settings: Mapping[str, tuple[str, ...]]
    """`Section.Key` → values in order."""

    def first(self, key: str, default: str = "") -> str:
        """Return a setting, or a default."""
        return self.settings.get(key, (default,))[-1]

    @property
    def kind(self) -> str:
        """Return the service's type."""
        return self.first("Service.Type", "simple")

    @property
    def remains(self) -> bool:
        """Whether it stays active after its command ended."""
        return self.first("Service.RemainAfterExit") in {"yes", "true", "on", "1"}

    def commands(self, key: str = "Service.ExecStart") -> list[list[str]]:
        """Return the commands of a setting as words."""
        return [shlex.split(text.lstrip("-@+!:")) for text in self.settings.get(key, ())]


def template(name: str) -> str:
    """Return the name of the file that a unit's settings stand in: that of its template when it is an instance."""
    head, at, _ = name.partition("@")
    return f"{head}@.service" if at else name


def load(name: str, path: Path, shown_path: str, *, is_strict: bool = False) -> UnitFile:
    """Read a unit file; raises UnitError with all that is wrong, and strictly with what systemd only warns of too."""
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
        problems.append(f"{shown_path}: type {unit.kind!r} is none of {', '.join(TYPES)}")
    if problems:
        raise UnitError("\n".join(problems))
    return unit


def lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of each setting; the key is empty when a line is none."""
    head = ""
    for section, key, value in sections(text):
        if key:
            yield head, key, value
        elif value:
            yield head, "", value
        else:
            head = section


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield heads (section, no key), settings (key and value), and lines that are neither (value only)."""
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
    """Answer programs called by what runs meanwhile."""
    _furnish(node, programs)
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
            # Closing alone would not wake the thread up.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _furnish(node: Node, programs: Sequence[str]) -> None:
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
