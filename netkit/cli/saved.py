"""Running configurations that were saved as files: DIR/<device>/<the names netkit renders>, or by netkit backup."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from netkit.errors import ConfigError, Problem, UsageError
from netkit.plan import Running, Unreachable
from netkit.platforms.backup import separated


def check(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder in which nothing was saved of any of some devices."""
    if not folder.is_dir():
        raise UsageError(Problem(f"{folder} is not a folder", "--running takes DIR/<device>/<file>, as render writes"))
    if not any(_files(folder / name) or _backup(folder, name).is_file() for name in names):
        raise UsageError(Problem(f"{folder} has no files of any of these devices", "save them as DIR/<device>/<file>"))


def saved(folder: Path, names: Iterable[str]) -> Mapping[str, Running | Unreachable]:
    """Return what was saved of some devices; one without files is as unknown as one that does not answer."""
    return {name: _device(folder, name) for name in names}


def _device(folder: Path, name: str) -> Running | Unreachable:
    files: dict[str, str | None] = {file.name: _text(file) for file in _files(folder / name)}
    if not files and _backup(folder, name).is_file():
        files = separated(_text(_backup(folder, name)))
    return Running(files) if files else Unreachable(f"no files in {folder / name}")


def _backup(folder: Path, name: str) -> Path:
    return folder / f"{name}.conf"


def _files(folder: Path) -> list[Path]:
    try:
        return [file for file in sorted(folder.iterdir()) if file.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(Problem("is not text", "save it again", file=str(file))) from None
