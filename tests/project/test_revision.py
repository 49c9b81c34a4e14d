"""A fabric at a revision includes everything its folder reads: behind links, in submodules, and under another name."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import ROOT, assert_refused
from tests.project.test_against import OVERRIDES, Repository

TEMPLATE = (ROOT / "templates" / "nvue" / "interfaces.yaml.j2").read_text(encoding="utf-8")
OWN = TEMPLATE.replace("description: {{", "description: own {{", 1)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.write({})
    made.git("init", "-q", "-b", "main")
    made.commit()
    return made


def written(file: Path, text: str = OWN) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def linked(link: Path, leads_to: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(leads_to, link.parent))


def _whole_folder(repository: Repository) -> Path:
    file = written(repository.root / "shared" / "nvue" / "interfaces.yaml.j2")
    linked(repository.root / "templates", repository.root / "shared")
    return file


def _folder_within(repository: Repository) -> Path:
    file = written(repository.root / "shared" / "nvue" / "interfaces.yaml.j2")
    linked(repository.root / "templates" / "nvue", file.parent)
    linked(file.parent / "circle", file.parent)
    return file


def _file(repository: Repository) -> Path:
    file = written(repository.root / "shared" / "interfaces.yaml.j2")
    linked(repository.root / "templates" / "nvue" / "interfaces.yaml.j2", file)
    return file


def _link_to_a_link(repository: Repository) -> Path:
    file = written(repository.root / "far" / "nvue" / "interfaces.yaml.j2")
    linked(repository.root / "near", repository.root / "far")
    linked(repository.root / "templates" / "nvue", repository.root / "near" / "nvue")
    return file


def _submodule(repository: Repository) -> Path:
    inner = Repository(repository.root.with_name("inner"))
    written(inner.root / "templates" / "nvue" / "interfaces.yaml.j2")
    inner.git("init", "-q", "-b", "main")
    inner.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "vendor/shared")
    linked(repository.root / "templates", repository.root / "vendor" / "shared" / "templates")
    return repository.root / "vendor" / "shared" / "templates" / "nvue" / "interfaces.yaml.j2"


def _left_out_of_archives(repository: Repository) -> Path:
    written(repository.root / ".gitattributes", "templates/** export-ignore\n")
    return written(repository.root / "templates" / "nvue" / "interfaces.yaml.j2")


@pytest.mark.parametrize(
    "own", [_whole_folder, _folder_within, _file, _link_to_a_link, _submodule, _left_out_of_archives]
)
def test_templates_in_any_folder_count_on_both_sides(repository: Repository, own: Callable[[Repository], Path]) -> None:
    file = own(repository)
    repository.commit()
    found = repository.found()
    assert (found["same"], found["plan"]["devices"]) == (10, [])
    written(file, OWN.replace("description: own", "description: other", 1))
    assert len(repository.found()["plan"]["devices"]) == 6


def test_a_submodule_without_the_commit_is_refused(repository: Repository) -> None:
    _submodule(repository)
    repository.commit()
    inner = repository.root / "vendor" / "shared"
    shutil.rmtree(inner)
    Repository(inner.parent).git("init", "-q", "shared")
    assert_refused(repository.plan(), "the submodule vendor/shared lacks the commit", "git -C vendor/shared fetch")


def test_all_devices_of_a_new_fabric_are_new(repository: Repository) -> None:
    commit = repository.git("rev-parse", "--short=10", "HEAD")
    shutil.copytree(repository.fabric, repository.root / "inventory" / "other")
    again = Repository(repository.root)
    done = again.plan("--fabric", str(repository.root / "inventory" / "other"), "--detailed-exitcode")
    head = f"small against HEAD ({commit}, before it existed): 10 devices are new"
    assert (done.returncode, done.stdout.splitlines()[0]) == (2, head)


def test_a_moved_folder_is_compared_with_its_old_path(repository: Repository) -> None:
    written(repository.root / "templates" / "nvue" / "interfaces.yaml.j2")
    commit = repository.commit()[:10]
    repository.write(OVERRIDES)
    repository.git("mv", "inventory/small", "elsewhere")
    found = repository.plan("--fabric", str(repository.root / "elsewhere")).stdout.splitlines()[0]
    assert found == f"small against HEAD ({commit}, inventory/small): 6 of 10 devices change, highest risk session"


def test_a_hook_of_a_work_tree_sees_the_fabric(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git tells its hooks where the repository is, but not which work tree the fabric is in."""
    monkeypatch.setenv("GIT_DIR", str(repository.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository.root / ".git" / "index"))
    assert "nothing changes on 10 devices" in repository.plan().stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_repository_of_another_user_is_reported_with_the_advice_of_git(repository: Repository) -> None:
    for path in (repository.root, *repository.root.rglob("*")):
        os.chown(path, 65_534, 65_534)
    done = repository.plan()
    assert_refused(done, f"detected dubious ownership in repository at '{repository.root}'")
    assert done.stderr.endswith(f"; git config --global --add safe.directory {repository.root}\n")


def test_three_dots_compare_with_the_merge_base(repository: Repository) -> None:
    commit = repository.git("rev-parse", "--short=10", "HEAD")
    repository.git("checkout", "-q", "-b", "change")
    repository.write({"site": "elsewhere"})
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write(OVERRIDES)
    repository.commit()
    repository.git("checkout", "-q", "change")
    assert "3 of 10 devices change" in repository.plan(base="git:main").stdout
    said = repository.plan(base="git:main...").stdout
    assert said == f"small against main... ({commit}): nothing changes on 10 devices\n"
    repository.git("checkout", "-q", "--orphan", "apart")
    repository.commit()
    assert_refused(repository.plan(base="git:main..."), "main and HEAD have no commit in common")
    assert_refused(repository.plan(base="git:^main"), "no revision '^main'")
