"""A change of the intent as a commit on a new branch: neither the checkout nor its index is touched."""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from netkit.errors import Problem, UsageError
from netkit.intent.load import FABRIC_FILE
from netkit.plan.intent_diff import IntentDiff
from netkit.project.against import at_revision, between
from netkit.project.project import Project
from netkit.project.revision import Repository, git

BRANCH = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
TABLE = re.compile(r"[A-Za-z0-9][\w.-]{0,60}\.csv")
PREFIX = "netkit/"
LARGEST_TEXT = 4 * 1024 * 1024
IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "netkit"), ("EMAIL", "netkit@localhost"))
}
NOT_THERE = ""
"""What `git update-ref` expects of a branch that must not exist yet."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A branch, and what its intent changes."""

    branch: str
    commit: str
    diff: IntentDiff


def propose(project: Project, files: Mapping[str, str], branch: str, message: str) -> Proposal:
    """Commit files of the fabric's folder to a new branch from HEAD, and compare it with HEAD.

    Only fabric.yaml and CSV tables beside it can be changed. The intent must be valid.
    """
    _check(files, branch, message)
    repository = Repository.around(project.folder)
    if not git(repository.root, "show-ref", "--verify", "--quiet", f"refs/heads/{PREFIX}{branch}").returncode:
        raise UsageError(Problem(f"there is a branch {PREFIX}{branch} already", "choose another name"))
    head, inside = repository.commit("HEAD"), repository.inside(project.folder)
    commit = _commit(
        repository, head, {f"{PurePosixPath(inside) / name}": text for name, text in files.items()}, message
    )
    with at_revision(project, "HEAD") as (base, shown), at_revision(project, commit) as (proposed, _):
        diff = between(base, proposed, "", shown)
    name = PREFIX + branch
    _done(repository.root, "update-ref", f"refs/heads/{name}", commit, NOT_THERE)
    return Proposal(name, commit, diff)


def _check(files: Mapping[str, str], branch: str, message: str) -> None:
    problems = []
    if not BRANCH.fullmatch(branch):
        problems.append(Problem(f"{branch!r} is not a name of a branch", "use lower-case letters, digits and hyphens"))
    if not _is_plain(message):
        problems.append(Problem("the message has control characters", "write plain text"))
    if not message.strip():
        problems.append(Problem("the message is empty", "describe the change and its reason"))
    if not files:
        problems.append(Problem("no file is changed", f"give {FABRIC_FILE}, or tables beside it"))
    for name, text in files.items():
        if name != FABRIC_FILE and not TABLE.fullmatch(name):
            problems.append(Problem(f"{name!r} cannot be changed", f"only {FABRIC_FILE} and CSV files beside it can"))
        if not _is_unicode(text):
            problems.append(Problem(f"{name!r} is not valid Unicode", "send text without lone surrogates"))
        if len(text) > LARGEST_TEXT:
            problems.append(Problem(f"{name!r} is too long", f"a file has at most {LARGEST_TEXT:,} characters"))
    if problems:
        raise UsageError(problems)


def _is_plain(text: str) -> bool:
    return _is_unicode(text) and all(each.isprintable() or each in "\n\t" for each in text)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _commit(repository: Repository, head: str, files: Mapping[str, str], message: str) -> str:
    """Write a commit that no branch has yet."""
    root = repository.root
    with tempfile.TemporaryDirectory(prefix="netkit-") as place:
        index, content = {"GIT_INDEX_FILE": str(Path(place, "index"))}, Path(place, "content")
        _done(root, "read-tree", head, **index)
        for path, text in files.items():
            content.write_text(text, encoding="utf-8", newline="")
            blob = _done(root, "hash-object", "-w", "--no-filters", "--", str(content))
            _done(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", **index)
        tree = _done(root, "write-tree", **index)
        if tree == _done(root, "rev-parse", f"{head}^{{tree}}"):
            raise UsageError(Problem("these files are as in HEAD", "change at least one of them"))
        return _done(root, "commit-tree", tree, "-p", head, "-m", message, **IDENTITY)


def _done(root: Path, *arguments: str, **variables: str) -> str:
    done = git(root, *arguments, **variables)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(Problem(f"git {arguments[0]} fails: {why[0] if why else done.returncode}", "see git status"))
    return done.stdout.decode().strip()
