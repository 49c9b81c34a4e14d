"""A site's checkouts: only commits on allowed branches, few at a time, whatever was interrupted."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netkit.fleet.execute import MOST_TREES, STALE_S, Checkouts
from netkit.fleet.settings import FleetError, RepositorySettings
from tests.fleet.repository import FabricRepository, fabric_repository

FABRIC = "inventory/tokyo"


@pytest.fixture
def repository(tmp_path: Path) -> FabricRepository:
    return fabric_repository(tmp_path / "origin", FABRIC)


@pytest.fixture
def checkouts(repository: FabricRepository, tmp_path: Path) -> Checkouts:
    return Checkouts(RepositorySettings(url=str(repository.folder)), tmp_path / "state")


def trees(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "state" / "trees").iterdir() if path.is_dir()}


def test_a_commit_is_checked_out(repository: FabricRepository, checkouts: Checkouts) -> None:
    first = repository.git("rev-parse", "HEAD")
    (repository.folder / "note").write_text("new", encoding="utf-8")
    second = repository.commit()
    tree = checkouts.tree(first)
    assert (tree / FABRIC / "fabric.yaml").read_bytes() == (repository.folder / FABRIC / "fabric.yaml").read_bytes()
    assert not (tree / "note").exists()
    assert (checkouts.tree(second) / "note").read_text(encoding="utf-8") == "new"
    assert checkouts.tree(first) == tree


def test_a_later_commit_is_fetched(repository: FabricRepository, checkouts: Checkouts) -> None:
    checkouts.tree(repository.git("rev-parse", "HEAD"))
    (repository.folder / "note").write_text("new", encoding="utf-8")
    assert (checkouts.tree(repository.commit()) / "note").exists()


def test_a_known_commit_needs_no_connection(repository: FabricRepository, checkouts: Checkouts) -> None:
    commit = repository.git("rev-parse", "HEAD")
    tree = checkouts.tree(commit)
    repository.folder.rename(repository.folder.with_name("gone"))
    assert checkouts.tree(commit) == tree
    with pytest.raises(FleetError, match=r"git fetch of .* failed: .*; run git by hand as this user, at this site"):
        checkouts.tree("0" * 40)


def test_a_commit_of_another_branch_is_refused(repository: FabricRepository, tmp_path: Path) -> None:
    main = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "-b", "proposal")
    proposed = repository.commit("proposal")
    repository.git("update-ref", "refs/pull/1/head", proposed)
    checkouts = Checkouts(RepositorySettings(url=str(repository.folder)), tmp_path / "state")
    with pytest.raises(FleetError, match=rf"the commit {proposed[:10]} is not on main of .*; push it there, or add"):
        checkouts.tree(proposed)
    assert trees(tmp_path) == set()
    both = Checkouts(RepositorySettings(url=str(repository.folder), branches=("main", "proposal")), tmp_path / "state")
    assert both.tree(proposed).name == proposed
    assert both.tree(main).name == main


@pytest.mark.parametrize("commit", ["0" * 40, "f" * 40])
def test_an_unknown_commit_is_refused(commit: str, checkouts: Checkouts) -> None:
    with pytest.raises(FleetError, match=f"the commit {commit[:10]} is not on main"):
        checkouts.tree(commit)


def test_what_is_not_a_commit_is_refused(repository: FabricRepository, checkouts: Checkouts) -> None:
    checkouts.tree(repository.git("rev-parse", "HEAD"))
    with pytest.raises(FleetError, match="is not on main"):
        checkouts.tree(repository.git("rev-parse", "HEAD^{tree}"))


def test_few_commits_are_kept(repository: FabricRepository, checkouts: Checkouts, tmp_path: Path) -> None:
    commits = [repository.commit() for _ in range(MOST_TREES + 2)]
    for commit in commits:
        checkouts.tree(commits[0])
        checkouts.tree(commit)
    assert trees(tmp_path) == {commits[0], *commits[1 - MOST_TREES :]}
    assert checkouts.tree(commits[1]).is_dir()


def test_an_interrupted_checkout_is_done_again(
    repository: FabricRepository, checkouts: Checkouts, tmp_path: Path
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    tree = checkouts.tree(commit)
    (tmp_path / "state" / "trees" / f"{commit}.complete").unlink()
    (tree / FABRIC / "fabric.yaml").unlink()
    assert (checkouts.tree(commit) / FABRIC / "fabric.yaml").exists()


def test_a_lock_of_a_killed_git_is_removed(repository: FabricRepository, checkouts: Checkouts, tmp_path: Path) -> None:
    checkouts.tree(repository.git("rev-parse", "HEAD"))
    later = repository.commit()
    lock = tmp_path / "state" / "repository.git" / "refs" / "heads" / "main.lock"
    lock.touch()
    with pytest.raises(FleetError, match="lock"):
        checkouts.tree(later)
    old = time.time() - STALE_S - 1
    os.utime(lock, (old, old))
    assert checkouts.tree(later).is_dir()


def test_git_runs_no_hooks_and_gets_no_secrets(
    repository: FabricRepository, checkouts: Checkouts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, later = repository.git("rev-parse", "HEAD"), repository.commit()
    checkouts.tree(first)
    hook = tmp_path / "state" / "repository.git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    hook.chmod(0o755)
    seen: list[dict[str, str]] = []
    real: Callable[..., Any] = subprocess.run

    def recorded(*arguments: Any, env: dict[str, str], **options: Any) -> Any:
        seen.append(env)
        return real(*arguments, env=env, **options)

    monkeypatch.setenv("NETKIT_SECRET_BROKER", "hidden")
    monkeypatch.setattr(subprocess, "run", recorded)
    checkouts.tree(later)
    assert not (tmp_path / "ran").exists()
    assert len(seen) > 2
    assert [environment for environment in seen if "hidden" in environment.values()] == []
