"""The files of a host that somebody installed: where each belongs, and the copy that outlives the node."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from netkit.lab.node import ConfigRefusedError, Node

LIST = "install.txt"
LINE = re.compile(r"(0[0-7]{3}) (\S+) (/\S+)\Z")
FOLDERS = (
    "/etc/netplan",
    "/etc/systemd/network",
    "/etc/systemd/system",
    "/etc/sysctl.d",
    "/etc/udev/rules.d",
    "/etc/netkit",
    "/usr/local/sbin",
)
FILES = ("/etc/nccl.conf",)
INSTALLED = "/run/netkit/installed"


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """A file, where it goes, and its mode."""

    mode: int
    file: str
    target: str


def installs(files: Mapping[str, str]) -> tuple[InstalledFile, ...]:
    """Return where rendered files go; raises RefusedError with every reason not to install them."""
    found, problems = [], []
    for line in files.get(LIST, "").splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if match is None:
            problems.append(f"{LIST}: {line!r} is not 'mode file place'")
            continue
        found.append(InstalledFile(int(match[1], 8), match[2], match[3]))
    problems += _problems(found, files)
    if problems:
        raise ConfigRefusedError("\n".join(problems))
    return tuple(found)


def _problems(found: Iterable[InstalledFile], files: Mapping[str, str]) -> Iterator[str]:
    listed, targets = set(), set()
    for install in found:
        if install.file not in files:
            yield f"{LIST}: there is no file {install.file}"
        if not _has_place(install.target):
            yield f"{LIST}: {install.target} is no place for a file of this host"
        if install.target in targets:
            yield f"{LIST}: {install.target} is named twice"
        listed.add(install.file)
        targets.add(install.target)
    for file in sorted(set(files) - listed - {LIST}):
        yield f"{file}: {LIST} does not say where it goes"


def _has_place(target: str) -> bool:
    return ".." not in target and (target in FILES or any(target.startswith(f"{folder}/") for folder in FOLDERS))


def write(top: Path, files: Mapping[str, str], found: Iterable[InstalledFile]) -> None:
    """Write files where they belong below a folder, in place of what was installed there before."""
    shutil.rmtree(top, ignore_errors=True)
    for install in found:
        path = top / install.target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[install.file], encoding="utf-8")
        path.chmod(install.mode)


def restore(node: Node) -> None:
    """Put the saved files onto a disk that is new; a disk that was only switched off has its files still."""
    marker = node.file(INSTALLED)
    if marker.exists():
        return
    node.run("mount", "-t", "tmpfs", "-o", "mode=755", "disk", "/usr/local/sbin")
    for folder in FOLDERS:
        node.file(folder).mkdir(parents=True, exist_ok=True)
    saved = _saved(node)
    for path in sorted(saved.rglob("*")):
        if path.is_file():
            target = node.file(f"/{path.relative_to(saved)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    marker.touch()


def save(node: Node) -> None:
    """Copy what is on the disk now."""
    saved = _saved(node)
    shutil.rmtree(saved, ignore_errors=True)
    for place in (*FOLDERS, *FILES):
        source, target = node.file(place), saved / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.is_file():
            shutil.copy(source, target)


def _saved(node: Node) -> Path:
    return node.saved / "disk"
