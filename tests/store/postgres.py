"""A real PostgreSQL for tests: a temporary cluster on a Unix socket."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

UNPRIVILEGED = "postgres"
SETTINGS = ("listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=40")


def programs() -> Path | None:
    """Return the folder of the newest installed PostgreSQL."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: int(path.parent.name), default=None)


def lacks() -> str:
    """Return why no server can run here, or an empty string."""
    if programs() is None:
        return "PostgreSQL is not installed (Debian: postgresql)"
    return "" if os.geteuid() or _has_account() else f"no account {UNPRIVILEGED}, and PostgreSQL does not run as root"


def _has_account() -> bool:
    try:
        return bool(pwd.getpwnam(UNPRIVILEGED))
    except KeyError:
        return False


@dataclass(slots=True)
class Server:
    """A running server."""

    folder: Path
    bin: Path
    _numbers: Iterator[int] = field(default_factory=count)

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run a PostgreSQL program as the user of the server."""
        done = subprocess.run(
            [*_as_unprivileged(), str(self.bin / program), *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def database(self, template: str = "template1") -> str:
        """Return the URL of a new database: empty, or a copy of another that nobody has open."""
        name = f"t{next(self._numbers)}"
        self.run("createdb", "-h", self.folder, "-U", UNPRIVILEGED, "-T", template, name)
        return f"postgresql://{UNPRIVILEGED}@/{name}?host={self.folder}"


def _as_unprivileged() -> Sequence[str]:
    return ("runuser", "-u", UNPRIVILEGED, "--") if os.geteuid() == 0 else ()


@contextmanager
def server() -> Iterator[Server]:
    """Run a server for the length of a block."""
    found = programs()
    assert found is not None
    folder = Path(tempfile.mkdtemp(prefix="nkpg"))
    if os.geteuid() == 0:
        shutil.chown(folder, UNPRIVILEGED)
    running, data = Server(folder, found), folder / "data"
    try:
        running.run("initdb", "-D", data, "-U", UNPRIVILEGED, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        settings = " ".join(f"-c {setting}" for setting in (*SETTINGS, f"unix_socket_directories={folder}"))
        running.run("pg_ctl", "-D", data, "-w", "-t", "100", "-l", folder / "log", "-o", settings, "start")
        try:
            yield running
        finally:
            running.run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
