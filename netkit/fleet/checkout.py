"""A site's copy of the repository, with a work tree for each of the commits that were used last.

Only commits on the allowed branches are checked out: a commit that a server keeps for a pull request is not one of
them. One process uses the folder at a time.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from netkit import private
from netkit.environment import without_secrets
from netkit.errors import Problem
from netkit.fleet.settings import FleetError, RepositorySettings

MOST_TREES = 4
FETCH_S = 600
STALE_S = 30
SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "submodule.recurse=false",
    "-c",
    "gc.auto=0",
)


class Checkouts:
    """Commits of one repository, checked out below a folder."""

    def __init__(self, settings: RepositorySettings, folder: Path) -> None:
        self._settings = settings
        self._copy = folder / "repository.git"
        self._trees = folder / "trees"

    def tree(self, commit: str) -> Path:
        """Return the folder of a commit; FleetError if it is not on an allowed branch."""
        private.make_folder(self._trees)
        self._unlock()
        if not (self._copy / "HEAD").exists():
            self._git(None, "init", "--quiet", "--bare", str(self._copy))
        if not self._is_allowed(commit):
            self._fetch()
            if not self._is_allowed(commit):
                branches = ", ".join(self._settings.branches)
                what = f"the commit {commit[:10]} is not on {branches} of {self._settings.url}"
                raise FleetError(
                    Problem(what, "push it there, or add its branch to `branches` of the site's fleet.yaml")
                )
        place, mark = self._trees / commit, self._trees / f"{commit}.complete"
        if not mark.exists():
            self._remove(commit)
            self._git(self._copy, "worktree", "prune", "--expire=now")
            self._git(self._copy, "worktree", "add", "--quiet", "--force", "--detach", str(place), commit)
        mark.touch()
        self._keep_newest()
        return place

    def _is_allowed(self, commit: str) -> bool:
        return any(self._is_on(commit, branch) for branch in self._settings.branches)

    def _is_on(self, commit: str, branch: str) -> bool:
        return not self._run(
            self._copy, ("merge-base", "--is-ancestor", f"{commit}^{{commit}}", f"refs/heads/{branch}")
        ).returncode

    def _fetch(self) -> None:
        wanted = [f"+refs/heads/{branch}:refs/heads/{branch}" for branch in self._settings.branches]
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--update-head-ok")
        self._git(self._copy, "fetch", *options, "--", self._settings.url, *wanted)

    def _keep_newest(self) -> None:
        marks = sorted(self._trees.glob("*.complete"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for mark in marks[MOST_TREES:]:
            self._remove(mark.stem)

    def _remove(self, commit: str) -> None:
        (self._trees / f"{commit}.complete").unlink(missing_ok=True)
        shutil.rmtree(self._trees / commit, ignore_errors=True)

    def _unlock(self) -> None:
        """Remove locks that a git left behind which was killed."""
        for file in self._copy.rglob("*.lock"):
            if file.stat().st_mtime < time.time() - STALE_S:
                file.unlink(missing_ok=True)

    def _git(self, folder: Path | None, *arguments: str) -> None:
        done = self._run(folder, arguments)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["git gave no reason"]
            reason = next((line for line in lines if line.startswith("fatal: ")), lines[-1]).removeprefix("fatal: ")
            remedy = "run git by hand as this user, at this site"
            raise FleetError(Problem(f"git {arguments[0]} of {self._settings.url} failed: {reason}", remedy))

    def _run(self, folder: Path | None, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        place = () if folder is None else ("--git-dir", str(folder))
        known = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
        try:
            return subprocess.run(  # noqa: S603 (no shell; no argument comes from a job but a commit of hexadecimal digits)
                ["git", *SAFE, *place, *arguments],  # noqa: S607 (the git of the user's PATH)
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**without_secrets(known), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
                timeout=FETCH_S,
                check=False,
            )
        except FileNotFoundError:
            raise FleetError(Problem("git is not installed", "install it at the site")) from None
        except subprocess.TimeoutExpired:
            what = f"git {arguments[0]} of {self._settings.url} takes longer than {FETCH_S} s"
            raise FleetError(Problem(what, "check the connection of the site to the repository")) from None
