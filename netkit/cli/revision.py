"""The folder of a fabric as it was at a revision of its git repository, written out for the time it is looked at."""

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from netkit.cli.archive import OutsideError, lay_out
from netkit.cli.fabric import CHECKS, MODELS, PLAYBOOKS, TEMPLATES
from netkit.errors import Problem, UsageError

FOLDERS = (MODELS, TEMPLATES, PLAYBOOKS, CHECKS)
SHORT = 10
PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Revision:
    """A fabric at a revision."""

    name: str
    commit: str
    folder: Path
    """Its folder, written out."""
    workplace: Path
    """What stands for the current folder, whose templates and models count too."""

    def __str__(self) -> str:
        return f"{self.name} ({self.commit[:SHORT]})"


@contextmanager
def revision(folder: Path, name: str) -> Iterator[Revision]:
    """Yield the fabric as it was at a revision; what was written out is gone afterwards."""
    repository = _Repository.around(folder)
    commit = repository.commit(name)
    with tempfile.TemporaryDirectory(prefix="netkit-") as place:
        root = Path(place)
        wanted = [repository.inside(folder), *repository.beside(folder)]
        repository.write_out(commit, wanted, root)
        there = root / repository.inside(folder)
        if not there.is_dir():
            raise UsageError(Problem(f"there is no {repository.inside(folder)} at {name}", "name a later revision"))
        yield Revision(name, commit, there, _workplace(repository, root))


def _workplace(repository: "_Repository", root: Path) -> Path:
    here = Path.cwd().resolve()
    return root / here.relative_to(repository.root) if here.is_relative_to(repository.root) else here


@dataclass(frozen=True, slots=True)
class _Repository:
    root: Path

    @classmethod
    def around(cls, folder: Path) -> "_Repository":
        """Return the repository a folder is in."""
        if not folder.is_dir():
            raise UsageError(Problem(f"{folder} is not a folder", "name the folder of the fabric with --fabric"))
        done = _git(folder, "rev-parse", "--show-toplevel")
        if done.returncode:
            reason = _last(done.stderr)
            raise UsageError(Problem(f"{folder} is in no git repository that can be read: {reason}", "see git status"))
        return cls(Path(done.stdout.decode(errors="replace").rstrip("\n")).resolve())

    def commit(self, name: str) -> str:
        """Return the commit a revision is."""
        done = _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.returncode == 0:
            return done.stdout.decode().strip()
        shallow = _git(self.root, "rev-parse", "--is-shallow-repository").stdout.decode().strip() == "true"
        if shallow:
            remedy = "this clone is shallow: git fetch --unshallow, or in CI a checkout of the whole history"
        else:
            remedy = "name a branch, a tag or a commit; git fetch brings those of the server"
        raise UsageError(Problem(f"no revision {name!r} in {self.root}", remedy))

    def inside(self, folder: Path) -> str:
        """Return a folder as the repository calls it."""
        path = folder.resolve()
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else ""

    def beside(self, folder: Path) -> list[str]:
        """Return where templates, models and the like of a fabric may be, beside its own folder."""
        near = [folder.resolve().parent.parent] if folder.resolve().parent.name == "inventory" else []
        places = [place / name for place in (*near, Path.cwd().resolve()) for name in FOLDERS]
        return [str(place.relative_to(self.root)) for place in places if place.is_relative_to(self.root)]

    def write_out(self, commit: str, paths: Sequence[str], place: Path) -> None:
        """Write the files below some paths, those that exist, as they were."""
        known = _git(
            self.root, "ls-tree", "-d", "--name-only", "-z", commit, "--", *(path for path in paths if path != ".")
        )
        there = [path for path in known.stdout.decode(errors="replace").split("\0") if path]
        whole = [] if "." in paths else there
        if not whole and "." not in paths:
            return
        done = _git(self.root, "archive", "--format=tar", commit, "--", *whole)
        if done.returncode:
            raise UsageError(Problem(f"git cannot write out {commit}: {_last(done.stderr)}", "see git fsck"))
        try:
            with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
                lay_out(archive, place)
        except OutsideError as error:
            what = f"{error.name} at {commit[:SHORT]} leads out of the repository, so it is not written out"
            raise UsageError(Problem(what, "replace the link by what it leads to, or name a later revision")) from None
        except tarfile.TarError as error:
            raise UsageError(
                Problem(f"what git wrote of {commit[:SHORT]} is no archive: {error}", "see git fsck")
            ) from None


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 (no shell; a revision follows --end-of-options)
            ["git", "-C", str(folder), *arguments],  # noqa: S607 (the git of the user's PATH)
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError(Problem("git is not installed", "install it, or plan against running devices")) from None
    except subprocess.TimeoutExpired:
        raise UsageError(Problem(f"git {arguments[0]} takes longer than {PATIENCE_S} s", "is the disk slow?")) from None


def _last(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ") if lines else "it says nothing"
