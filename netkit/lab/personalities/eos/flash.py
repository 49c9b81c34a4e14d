"""The flash of a switch: files that survive a restart, and the startup-config among them."""

import errno
import re
from pathlib import Path

from netkit.lab.personalities.eos.reply import CommandError

STARTUP = "startup-config"
CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Flash:
    """Files by name; what is no plain name is refused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def startup(self) -> str:
        """Return the startup-config; empty when there is none."""
        path = self._folder / STARTUP
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @startup.setter
    def startup(self, text: str) -> None:
        self.write(STARTUP, text)

    def read(self, name: str) -> str:
        """Return a file."""
        path = self._path(name)
        if not path.is_file():
            raise CommandError(f"Error opening flash:/{name} (No such file or directory)")
        return path.read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Write a file whole, or not at all."""
        path = self._path(name)
        half = path.with_name(f".{path.name}.half")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            half.write_text(text, encoding="utf-8")
            half.replace(path)
        except OSError as error:
            half.unlink(missing_ok=True)
            said = "No space left on device" if error.errno == errno.ENOSPC else str(error.strerror)
            raise CommandError(f"Error copying to flash:/{name} ({said})") from error

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._path(name).unlink(missing_ok=True)

    def checkpoints(self) -> tuple[tuple[str, float], ...]:
        """Return the checkpoints with the time each was made."""
        found = sorted((self._folder / CHECKPOINTS).glob("[A-Za-z0-9]*"))
        return tuple((path.name, path.stat().st_mtime) for path in found)

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if not all(_NAME.fullmatch(part) for part in parts) or len(parts) > 2:
            raise CommandError(f"Invalid file name: {name}")
        return self._folder.joinpath(*parts)
