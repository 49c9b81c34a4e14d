"""The folder of a fabric as it was at a revision of its git repository, written out for the time it is looked at."""

import io
import itertools
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from netkit.environment import without_secrets
from netkit.errors import Problem, UsageError
from netkit.intent.load import FABRIC_FILE
from netkit.project.project import CHECKS, MODELS, PLAYBOOKS, TEMPLATES

FOLDERS = (MODELS, TEMPLATES, PLAYBOOKS, CHECKS)
SHORT = 10
SINCE = "..."
COMMIT = re.compile(rb"[0-9a-f]{40,64}")
LINK, SUBMODULE = "120000", "160000"
OF_A_HOOK = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables git sets for its hooks; they need not name the repository around the fabric."""
PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Revision:
    """A fabric at a revision."""

    name: str
    commit: str
    folder: Path | None
    """Its folder, written out; None when the fabric was not there yet."""
    workplace: Path
    """What stands for the current folder, whose templates and models count too."""
    earlier: str = ""
    """The name of its folder then, when it has changed."""

    def __str__(self) -> str:
        further = ", before it was there" if self.folder is None else f", {self.earlier}" if self.earlier else ""
        return f"{self.name} ({self.commit[:SHORT]}{further})"


@contextmanager
def revision(folder: Path, name: str) -> Iterator[Revision]:
    """Yield the fabric as it was at a revision; what was written out is gone afterwards."""
    repository = _Repository.around(folder)
    commit = repository.commit(name)
    inside = repository.inside(folder)
    was = repository.folder_of(commit, inside)
    with tempfile.TemporaryDirectory(prefix="netkit-") as place:
        root = repository.written(commit, [*([was] if was else []), *repository.beside(was or inside)], Path(place))
        there = root / was if was else None
        yield Revision(name, commit, there, _workplace(repository, root), was if was != inside else "")


def checked_out(folder: Path, beside: Sequence[Path]) -> tuple[str, bool]:
    """Return the commit around a fabric's folder, and whether files there or beside it differ; empty without git."""
    try:
        repository = _Repository.around(folder)
        commit = repository.commit("HEAD")
    except UsageError:
        return "", False
    inside = [str(path.resolve()) for path in (folder, *beside) if repository.inside(path)]
    status = _git(repository.root, "status", "--porcelain", "--", *(inside or ["."]))
    return commit, bool(status.returncode or status.stdout.strip())


def configured(folder: Path, name: str) -> str:
    """Return what git's configuration has under a name; empty when that is nothing, or there is no git."""
    try:
        return os.fsdecode(_git(folder, "config", "--get", name).stdout).strip()
    except UsageError:
        return ""


def _workplace(repository: "_Repository", root: Path) -> Path:
    here = Path.cwd().resolve()
    return root / here.relative_to(repository.root) if here.is_relative_to(repository.root) else here


@dataclass(frozen=True, slots=True)
class _Entry:
    """What git keeps at a path: a file, a link, or the commit of a submodule."""

    mode: str
    digest: str
    path: str


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
            said = done.stderr.decode(errors="replace").split("\n")
            remedy = next((line.strip() for line in said if line.strip().startswith("git config ")), "see git status")
            what = f"{folder} is in no git repository that can be read: {_reason(done.stderr)}"
            raise UsageError(Problem(what, remedy))
        return cls(Path(os.fsdecode(done.stdout).rstrip("\n")).resolve())

    def commit(self, name: str) -> str:
        """Return the commit a revision is; with three dots behind it, the one where the current branch left it."""
        if name.endswith(SINCE):
            return self._left(name.removesuffix(SINCE))
        done = _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.returncode == 0 and COMMIT.fullmatch(done.stdout.strip()):
            return done.stdout.decode().strip()
        remedy = self._deeper() or "name a branch, a tag or a commit; git fetch brings those of the server"
        raise UsageError(Problem(f"no revision {name!r} in {self.root}", remedy))

    def _left(self, name: str) -> str:
        done = _git(self.root, "merge-base", self.commit(name), "HEAD")
        if done.returncode:
            remedy = self._deeper() or "name a revision from which the current branch came"
            raise UsageError(Problem(f"{name} and HEAD have no commit in common in {self.root}", remedy))
        return done.stdout.decode().strip()

    def _deeper(self) -> str:
        """Return what to do where not all of the history is there."""
        is_shallow = _git(self.root, "rev-parse", "--is-shallow-repository").stdout.decode().strip() == "true"
        remedy = "this clone is shallow: git fetch --unshallow, or in CI a checkout of the whole history"
        return remedy if is_shallow else ""

    def inside(self, folder: Path) -> str:
        """Return a folder as the repository calls it."""
        path = folder.resolve()
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else ""

    def folder_of(self, commit: str, inside: str) -> str:
        """Return what the folder of a fabric was called; empty when it was not there."""
        file = str(PurePosixPath(inside, FABRIC_FILE))
        if self._entries(commit, file):
            return inside
        words = ("diff", "--name-status", "--find-renames", "--diff-filter=R", "--no-ext-diff", "-z", commit, "--")
        found = os.fsdecode(_git(self.root, *words).stdout).split("\0")
        renamed = dict(zip(found[2::3], found[1::3], strict=False))
        return str(PurePosixPath(renamed[file]).parent) if file in renamed else ""

    def beside(self, inside: str) -> list[str]:
        """Return where templates, models and the like of a fabric may be, beside its own folder."""
        home, here = PurePosixPath(inside), Path.cwd().resolve()
        places = [home.parent.parent] if home.parent.name == "inventory" else []
        if here.is_relative_to(self.root):
            places.append(PurePosixPath(here.relative_to(self.root)))
        return [str(place / name) for place in places for name in FOLDERS]

    def written(self, commit: str, paths: Sequence[str], place: Path) -> Path:
        """Return a folder with the files below some paths as they were, and with all that links in it lead to."""
        wanted = list(dict.fromkeys(paths))
        for number in itertools.count():
            root = place / str(number)
            root.mkdir()
            self._write_out(commit, [path for path in wanted if not _is_below(path, wanted)], root)
            more = {end for end in _ends(root) if end not in wanted and not _is_below(end, wanted)}
            if not more:
                break
            wanted += sorted(more)
        return root

    def _write_out(self, commit: str, paths: Sequence[str], place: Path) -> None:
        """Write the files below some paths, those that exist."""
        entries = list({entry.path: entry for path in paths for entry in self._entries(commit, path)}.values())
        there = [path for path in paths if any(_is_at(entry.path, path) for entry in entries)]
        beyond = [entry.path for entry in entries if not any(_is_at(entry.path, path) for path in paths)]
        if entries:
            self._archive(commit, [*there, *beyond], place)
        for entry in entries:
            path = place / entry.path
            if entry.mode == SUBMODULE:
                self._write_submodule(entry, path)
            elif entry.mode != LINK and not path.exists() and _is_inside(path, place):
                path.parent.mkdir(parents=True, exist_ok=True)  # git archive obeys export-ignore, a work tree does not
                path.write_bytes(_git(self.root, "cat-file", "blob", entry.digest).stdout)

    def _entries(self, commit: str, path: str) -> Sequence[_Entry]:
        """Return what is at a path or below it, else the link or the submodule it is behind."""
        below = self._listed(commit, "-r", *([] if path == "." else [path]))
        if below:
            return below
        ways = (self._listed(commit, str(way)) for way in PurePosixPath(path).parents if str(way) != ".")
        return [entry for found in ways for entry in found if entry.mode in {LINK, SUBMODULE}]

    def _listed(self, commit: str, *words: str) -> Sequence[_Entry]:
        options, paths = [word for word in words if word == "-r"], [word for word in words if word != "-r"]
        done = _git(self.root, "ls-tree", "-z", *options, commit, "--", *paths)
        rows = (row.partition("\t") for row in os.fsdecode(done.stdout).split("\0") if row)
        return [_Entry(about.split()[0], about.split()[2], path) for about, _, path in rows]

    def _write_submodule(self, entry: _Entry, place: Path) -> None:
        """Write out a submodule from its own repository; one that was never fetched is empty on both sides."""
        if not (self.root / entry.path / ".git").exists():
            return
        inner = _Repository(self.root / entry.path)
        if _git(inner.root, "cat-file", "-e", f"{entry.digest}^{{commit}}").returncode:
            what = f"the submodule {entry.path} has no commit {entry.digest[:SHORT]}, which it was at"
            raise UsageError(Problem(what, f"git -C {entry.path} fetch"))
        place.mkdir(parents=True, exist_ok=True)
        inner._write_out(entry.digest, ["."], place)

    def _archive(self, commit: str, paths: Sequence[str], place: Path) -> None:
        done = _git(self.root, "archive", "--format=tar", commit, "--", *(path for path in paths if path != "."))
        if done.returncode:
            raise UsageError(Problem(f"git cannot write out {commit}: {_reason(done.stderr)}", "see git fsck"))
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


def _is_at(path: str, place: str) -> bool:
    return place in {".", path} or path.startswith(f"{place}/")


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(path != place and _is_at(path, place) for place in places)


def _is_inside(path: Path, place: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(place))


def _ends(root: Path) -> Iterator[str]:
    """Yield where links lead, as the repository calls it."""
    whole = os.path.realpath(root)
    for place, folders, files in os.walk(root):
        links = (path for path in (Path(place, name) for name in (*folders, *files)) if path.is_symlink())
        yield from (os.path.relpath(os.path.realpath(link), whole) for link in links)


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 (no shell; a revision follows --end-of-options)
            ["git", "-C", str(folder), *arguments],  # noqa: S607 (the git of the user's PATH)
            capture_output=True,
            env={**without_secrets(_environment()), "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C"},
            timeout=PATIENCE_S,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError(Problem("git is not installed", "install it, or plan against running devices")) from None
    except subprocess.TimeoutExpired:
        raise UsageError(Problem(f"git {arguments[0]} takes longer than {PATIENCE_S} s", "is the disk slow?")) from None


def _environment() -> dict[str, str]:
    known = dict(os.environ)
    return known if "GIT_WORK_TREE" in known else {name: known[name] for name in known if name not in OF_A_HOOK}


def _reason(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines() or ["git gave no reason"]
    return next((line for line in lines if line.startswith("fatal: ")), lines[-1]).removeprefix("fatal: ")


class OutsideError(Exception):
    """A member leads out of the folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} leads out")


def lay_out(archive: tarfile.TarFile, place: Path) -> None:
    """Write folders and files, then links, so that nothing is written through one; refuse what leads out.

    Not `TarFile.extractall(filter="data")`: early releases of Python 3.11 have no filters, and those that do judge the
    text of a link, not where a chain of them ends.
    """
    members = archive.getmembers()
    for member in members:
        _check_member(member)
    for member in sorted(members, key=tarfile.TarInfo.issym):
        try:
            _write_member(archive, member, place / member.name)
        except (FileExistsError, NotADirectoryError):
            raise tarfile.TarError(f"{member.name} is in the way of another") from None
    for link in filter(tarfile.TarInfo.issym, members):
        _check_end(link, place)


def _check_member(member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise OutsideError(member.name)
    if not (member.isdir() or member.isreg() or member.issym()):
        raise tarfile.TarError(f"{member.name} is neither a folder nor a file nor a link")


def _write_member(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        path.symlink_to(member.linkname)
    elif content := archive.extractfile(member):
        with path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod(path.stat().st_mode | member.mode & stat.S_IXUSR)


def _check_end(link: tarfile.TarInfo, place: Path) -> None:
    """Refuse a link that ends outside, by whatever other links it leads there."""
    end = os.path.realpath(place / link.name)  # not `Path.resolve`: before 3.13 that fails on links in a circle
    if not Path(end).is_relative_to(os.path.realpath(place)):
        raise OutsideError(link.name)
