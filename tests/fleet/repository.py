"""A git repository with fabrics, as a site fetches it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.intents import BASE
from tests.lab.running import write_fabric


@dataclass(frozen=True, slots=True)
class FabricRepository:
    """A repository in a folder."""

    folder: Path

    def git(self, *arguments: str) -> str:
        options = ("-c", "user.name=t", "-c", "user.email=t@example.net", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *options, "-C", str(self.folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.strip()

    def commit(self, message: str = "change") -> str:
        """Commit everything, and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def fabric_repository(folder: Path, *fabrics: str) -> FabricRepository:
    """Make a repository with a small fabric in each of some folders."""
    folder.mkdir()
    found = FabricRepository(folder)
    found.git("init", "--quiet", "--initial-branch", "main")
    for fabric in fabrics:
        write_fabric(folder / fabric, BASE)
    found.commit("begin")
    return found
