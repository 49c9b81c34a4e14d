"""The folder of a fabric at a revision of its git repository, written to a temporary folder."""

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

from netkit.errors import Problem, UsageError
from netkit.intent.load import FABRIC_FILE
from netkit.private import without_secrets
from netkit.project.project import CHECKS, MODELS, PLAYBOOKS, TEMPLATES

FOLDERS = (MODELS, TEMPLATES, PLAYBOOKS, CHECKS)
SHORT = 10
SINCE = "..."
COMMIT = re.compile(rb"[0-9a-f]{40,64}")
LINK, SUBMODULE = "120000", "160000"
OF_A_HOOK = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables git sets for its hooks; the repository they name may not be the fabric's."""
TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Revision:
    """A fabric at a revision."""

    name: str
    commit: str
    folder: Path | None
    """Its folder, written out; None if the fabric did not exist yet."""
    workplace: Path
    """The counterpart of the current folder, whose templates and models are used too."""
    earlier: str = ""
    """The name of its folder at that time, if it has changed."""

    def __str__(self) -> str:
        further = ", before it existed" if self.folder is None else f", {self.earlier}" if self.earlier else ""
        return f"{self.name} ({self.commit[:SHORT]}{further})"


@contextmanager
def revision(folder: Path, name: str) -> Iterator[Revision]:
    """Yield the fabric at a revision; the temporary folder is removed afterwards."""
    repository = Repository.around(folder)
    commit = repository.commit(name)
    inside = repository.inside(folder)
    was = repository.folder_of(commit, inside)
    with tempfile.TemporaryDirectory(prefix="netkit-") as place:
        root = repository.written(commit, [*([was] if was else []), *repository.beside(was or inside)], Path(place))
        there = root / was if was else None
        here = Path.cwd().resolve()
        workplace = root / here.relative_to(repository.root) if here.is_relative_to(repository.root) else here
        yield Revision(name, commit, there, workplace, was if was != inside else "")


def checked_out(folder: Path, beside: Sequence[Path]) -> tuple[str, bool]:
    """The commit of a fabric's folder, and whether files in it or beside it are modified; empty without git."""
    try:
        repository = Repository.around(folder)
        commit = repository.commit("HEAD")
    except UsageError:
        return "", False
    inside = [str(path.resolve()) for path in (folder, *beside) if repository.inside(path)]
    status = git(repository.root, "status", "--porcelain", "--", *(inside or ["."]))
    return commit, bool(status.returncode or status.stdout.strip())


def commits_of(folder: Path, most: int) -> tuple[str, ...]:
    """The newest commits that changed a fabric's folder, newest first; none without git."""
    try:
        repository = Repository.around(folder)
        repository.commit("HEAD")
    except UsageError:
        return ()
    done = git(repository.root, "rev-list", f"--max-count={most}", "HEAD", "--", str(folder.resolve()))
    return tuple(done.stdout.decode().split()) if done.returncode == 0 else ()


def committed(folder: Path, beside: Sequence[Path]) -> tuple[str, str]:
    """The commit of a fabric's folder, and its path in the repository; UsageError if files are modified."""
    repository = Repository.around(folder)
    commit, is_modified = checked_out(folder, beside)
    if is_modified:
        what = f"files of {folder}, or templates and checks beside it, are not committed"
        raise UsageError(Problem(what, "commit and push them: sites check out a commit"))
    return commit, repository.inside(folder)


def path_in_repository(folder: Path) -> str:
    """The path of a folder in its git repository."""
    return Repository.around(folder).inside(folder)


def configured(folder: Path, name: str) -> str:
    """Read a value of git's configuration; empty if it is not set, or git is missing."""
    try:
        return os.fsdecode(git(folder, "config", "--get", name).stdout).strip()
    except UsageError:
        return ""


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a git tree: a file, a link, or a submodule."""

    mode: str
    digest: str
    path: str


@dataclass(frozen=True, slots=True)
class Repository:
    """The git repository around a fabric's folder."""

    root: Path

    @classmethod
    def around(cls, folder: Path) -> "Repository":
        if not folder.is_dir():
            raise UsageError(Problem(f"{folder} is not a folder", "name the folder of the fabric with --fabric"))
        done = git(folder, "rev-parse", "--show-toplevel")
        if done.returncode:
            lines = [line.strip() for line in done.stderr.decode(errors="replace").split("\n")]
            remedy = next((line for line in lines if line.startswith("git config ")), "see git status")
            what = f"{folder} is not in a readable git repository: {_reason(done.stderr)}"
            raise UsageError(Problem(what, remedy))
        return cls(Path(os.fsdecode(done.stdout).rstrip("\n")).resolve())

    def commit(self, name: str) -> str:
        """Resolve a revision; with a trailing `...`, the merge base with the current branch."""
        if name.endswith(SINCE):
            return self._merge_base(name.removesuffix(SINCE))
        done = git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.returncode == 0 and COMMIT.fullmatch(done.stdout.strip()):
            return done.stdout.decode().strip()
        remedy = self._fetch_hint() or "name a branch, a tag or a commit; git fetch brings those of the server"
        raise UsageError(Problem(f"no revision {name!r} in {self.root}", remedy))

    def _merge_base(self, name: str) -> str:
        done = git(self.root, "merge-base", self.commit(name), "HEAD")
        if done.returncode:
            remedy = self._fetch_hint() or "name an ancestor of the current branch"
            raise UsageError(Problem(f"{name} and HEAD have no commit in common in {self.root}", remedy))
        return done.stdout.decode().strip()

    def _fetch_hint(self) -> str:
        """The remedy for a shallow clone; empty if the history is complete."""
        is_shallow = git(self.root, "rev-parse", "--is-shallow-repository").stdout.decode().strip() == "true"
        remedy = "this clone is shallow: git fetch --unshallow, or in CI a checkout of the whole history"
        return remedy if is_shallow else ""

    def inside(self, folder: Path) -> str:
        path = folder.resolve()
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else ""

    def folder_of(self, commit: str, inside: str) -> str:
        """The path of the fabric's folder at a commit, following renames; empty if it did not exist."""
        file = str(PurePosixPath(inside, FABRIC_FILE))
        if self._entries(commit, file):
            return inside
        words = ("diff", "--name-status", "--find-renames", "--diff-filter=R", "--no-ext-diff", "-z", commit, "--")
        found = os.fsdecode(git(self.root, *words).stdout).split("\0")
        renamed = dict(zip(found[2::3], found[1::3], strict=False))
        return str(PurePosixPath(renamed[file]).parent) if file in renamed else ""

    def beside(self, inside: str) -> list[str]:
        """Where a fabric may have templates, models and the like beside its own folder."""
        home, here = PurePosixPath(inside), Path.cwd().resolve()
        places = [home.parent.parent] if home.parent.name == "inventory" else []
        if here.is_relative_to(self.root):
            places.append(PurePosixPath(here.relative_to(self.root)))
        return [str(place / name) for place in places for name in FOLDERS]

    def written(self, commit: str, paths: Sequence[str], place: Path) -> Path:
        """Write out the files below some paths, and everything that links among them lead to."""
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
        """Write the files below those of the paths that exist."""
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
                path.write_bytes(git(self.root, "cat-file", "blob", entry.digest).stdout)

    def _entries(self, commit: str, path: str) -> Sequence[_Entry]:
        """List the files at or below a path, else the link or the submodule that contains it."""
        below = self._ls_tree("-r", commit, "--", *([] if path == "." else [path]))
        if below:
            return below
        parents = [str(parent) for parent in PurePosixPath(path).parents if str(parent) != "."]
        entries = [entry for parent in parents for entry in self._ls_tree(commit, "--", parent)]
        return [entry for entry in entries if entry.mode in {LINK, SUBMODULE}]

    def _ls_tree(self, *arguments: str) -> Sequence[_Entry]:
        done = git(self.root, "ls-tree", "-z", *arguments)
        rows = (row.partition("\t") for row in os.fsdecode(done.stdout).split("\0") if row)
        return [_Entry(about.split()[0], about.split()[2], path) for about, _, path in rows]

    def _write_submodule(self, entry: _Entry, place: Path) -> None:
        """Write a submodule from its own repository; one that was never fetched stays empty."""
        if not (self.root / entry.path / ".git").exists():
            return
        inner = Repository(self.root / entry.path)
        if git(inner.root, "cat-file", "-e", f"{entry.digest}^{{commit}}").returncode:
            what = f"the submodule {entry.path} lacks the commit {entry.digest[:SHORT]}"
            raise UsageError(Problem(what, f"git -C {entry.path} fetch"))
        place.mkdir(parents=True, exist_ok=True)
        inner._write_out(entry.digest, ["."], place)

    def _archive(self, commit: str, paths: Sequence[str], place: Path) -> None:
        done = git(self.root, "archive", "--format=tar", commit, "--", *(path for path in paths if path != "."))
        if done.returncode:
            raise UsageError(Problem(f"git cannot write out {commit}: {_reason(done.stderr)}", "see git fsck"))
        try:
            with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
                lay_out(archive, place)
        except OutsideError as error:
            what = f"{error.name} at {commit[:SHORT]} points outside the repository, so it is not written"
            raise UsageError(Problem(what, "replace the link by its target, or name a later revision")) from None
        except tarfile.TarError as error:
            what = f"git archive of {commit[:SHORT]} is not a valid archive: {error}"
            raise UsageError(Problem(what, "see git fsck")) from None


def _is_at(path: str, place: str) -> bool:
    return place in {".", path} or path.startswith(f"{place}/")


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(path != place and _is_at(path, place) for place in places)


def _is_inside(path: Path, place: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(place))


def _ends(root: Path) -> Iterator[str]:
    """Yield the targets of links, as paths in the repository."""
    whole = os.path.realpath(root)
    for place, folders, files in os.walk(root):
        links = (path for path in (Path(place, name) for name in (*folders, *files)) if path.is_symlink())
        yield from (os.path.relpath(os.path.realpath(link), whole) for link in links)


def git(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with further environment variables."""
    hook = () if "GIT_WORK_TREE" in os.environ else OF_A_HOOK
    known = {name: value for name, value in os.environ.items() if name not in hook}
    try:
        return subprocess.run(  # noqa: S603 (no shell; a revision follows --end-of-options)
            ["git", "-C", str(folder), *arguments],  # noqa: S607 (the git of the user's PATH)
            capture_output=True,
            env={**without_secrets(known), "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C", **variables},
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError(Problem("git is not installed", "install it, or plan against running devices")) from None
    except subprocess.TimeoutExpired:
        what = f"git {arguments[0]} takes longer than {TIMEOUT_S} s"
        raise UsageError(Problem(what, "check whether the disk is slow")) from None


def _reason(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines() or ["git gave no reason"]
    return next((line for line in lines if line.startswith("fatal: ")), lines[-1]).removeprefix("fatal: ")


class OutsideError(Exception):
    """A member leads out of the folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} leads out")


def lay_out(archive: tarfile.TarFile, place: Path) -> None:
    """Extract folders and files, then links, so that nothing is written through a link; refuse what leads out.

    `TarFile.extractall(filter="data")` is not enough: early releases of Python 3.11 lack filters, and the others check
    the text of a link, not where a chain of links ends.
    """
    members = archive.getmembers()
    for member in members:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            raise OutsideError(member.name)
        if not (member.isdir() or member.isreg() or member.issym()):
            raise tarfile.TarError(f"{member.name} is neither a folder nor a file nor a link")
    for member in sorted(members, key=tarfile.TarInfo.issym):
        try:
            _write_member(archive, member, place / member.name)
        except (FileExistsError, NotADirectoryError):
            raise tarfile.TarError(f"{member.name} conflicts with another member") from None
    for link in filter(tarfile.TarInfo.issym, members):
        # Not `Path.resolve`: before Python 3.13 it fails on a loop of links.
        if not Path(os.path.realpath(place / link.name)).is_relative_to(os.path.realpath(place)):
            raise OutsideError(link.name)


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
