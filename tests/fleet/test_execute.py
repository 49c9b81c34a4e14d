"""What a worker does with a job before any device is reached."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.errors import NetkitError
from netkit.fleet import execute
from netkit.fleet.execute import HANDLERS, SiteExecutor
from netkit.fleet.job import VERBS, BackupWork, CheckWork, SiteJob, new_job
from netkit.fleet.lease import Note
from netkit.fleet.settings import FleetSettings
from netkit.fleet.signing import Credentials
from netkit.fleet.site_deploy import SiteRequest
from netkit.project.project import Project
from tests.fleet.jobs import TEXT, fleet
from tests.fleet.jobs import TOKYO as TOKYO_KEY
from tests.fleet.repository import FabricRepository, fabric_repository

TOKYO, LARGE = "inventory/tokyo", "inventory/large"


@pytest.fixture
def repository(tmp_path: Path) -> FabricRepository:
    return fabric_repository(tmp_path / "origin", TOKYO, LARGE)


@pytest.fixture
def settings(repository: FabricRepository, tmp_path: Path) -> FleetSettings:
    text = TEXT.replace("git@git.example.net:net/fabrics.git", str(repository.folder))
    return fleet(tmp_path, text.replace("[1, 2]", "[1]").replace("[3]", "[2]"))


def probe(asked: SiteRequest) -> Iterator[bytes | Note]:
    """Answer what the fabric is opened from."""
    for name in execute.ACCESS_FILES:
        file = asked.project.folder / name
        yield f"{name}: {file.read_text(encoding='utf-8') if file.exists() else '-'}".encode()
    yield asked.limit.encode()


def executor(settings: FleetSettings, folder: Path) -> SiteExecutor:
    """Return what carries out the jobs of tokyo; its files are never used."""
    unused = Credentials(TOKYO_KEY, folder, folder, folder, "")
    return SiteExecutor(settings, "tokyo", folder / "state", folder / "access", unused)


@pytest.fixture
def tokyo(settings: FleetSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteExecutor:
    monkeypatch.setattr(execute, "HANDLERS", {"backup": probe})
    return executor(settings, tmp_path)


def job(repository: FabricRepository, fabric: str = TOKYO, *devices: str, commit: str = "") -> SiteJob:
    at = commit or repository.git("rev-parse", "HEAD")
    return new_job("tokyo", fabric, at, BackupWork(), within_s=60, devices=devices)


def reason(found: SiteExecutor, wanted: SiteJob) -> str:
    with pytest.raises(NetkitError) as caught:
        list(found(wanted))
    return str(caught.value)


def test_every_verb_is_carried_out() -> None:
    """A wish to stop is for a running job."""
    assert {*HANDLERS} == {*VERBS} - {"stop"}


def test_a_verb_that_is_not_known_is_refused(tokyo: SiteExecutor, repository: FabricRepository) -> None:
    wanted = job(repository).model_copy(update={"work": CheckWork()})
    assert reason(tokyo, wanted) == "this worker cannot check; it can backup; update netkit at the site"


def test_a_fabric_of_another_site_is_refused(tokyo: SiteExecutor, repository: FabricRepository) -> None:
    wanted = job(repository, "inventory/osaka")
    assert reason(tokyo, wanted).startswith("inventory/osaka is not at the site tokyo; ")


def test_devices_of_another_site_are_refused(tokyo: SiteExecutor, repository: FabricRepository) -> None:
    found = list(tokyo(job(repository, LARGE, "leaf01", "spine01", "gpu01")))
    assert found[-1] == b"leaf01,spine01,gpu01"
    text = (repository.folder / LARGE / "fabric.yaml").read_text(encoding="utf-8")
    assert "unit: 1" in text
    (repository.folder / LARGE / "fabric.yaml").write_text(text.replace("unit: 1", "unit: 2", 1), encoding="utf-8")
    moved = job(repository, LARGE, commit=repository.commit())
    assert reason(tokyo, moved).endswith(
        "is not at the site tokyo; check the units of the fabric in fleet.yaml, at the site and the coordinator"
    )


def test_a_missing_fabric_is_named(tokyo: SiteExecutor, repository: FabricRepository) -> None:
    repository.git("rm", "-r", "--quiet", TOKYO)
    wanted = job(repository, commit=repository.commit())
    assert reason(tokyo, wanted).startswith(f"{TOKYO} is not a folder of the repository at {wanted.commit[:10]}; ")


def test_a_link_out_of_the_checkout_is_refused(
    tokyo: SiteExecutor, repository: FabricRepository, tmp_path: Path
) -> None:
    repository.git("rm", "-r", "--quiet", TOKYO)
    (repository.folder / TOKYO).symlink_to(tmp_path)
    wanted = job(repository, commit=repository.commit())
    assert reason(tokyo, wanted).startswith(f"{TOKYO} is not a folder of the repository")


def test_the_site_has_its_own_access_files(tokyo: SiteExecutor, repository: FabricRepository, tmp_path: Path) -> None:
    (repository.folder / TOKYO / "access.yaml").write_text("user: of-the-repository\n", encoding="utf-8")
    (repository.folder / TOKYO / "known_hosts").write_text("of the repository\n", encoding="utf-8")
    wanted = job(repository, TOKYO, "leaf01", commit=repository.commit())
    own = tmp_path / "access" / TOKYO / "access.yaml"
    assert reason(tokyo, wanted) == (
        f"the site has no access.yaml for {TOKYO}; the one in the repository is not used; write {own}"
    )
    own.parent.mkdir(parents=True)
    own.write_text("user: of-the-site\n", encoding="utf-8")
    for _ in range(2):
        assert list(tokyo(wanted)) == [
            b"access.yaml: user: of-the-site\n",
            b"known_hosts: of the repository\n",
            b"known_certificates: -",
            b"leaf01",
        ]
    (own.parent / "known_hosts").write_text("of the site\n", encoding="utf-8")
    assert list(tokyo(wanted))[1] == b"known_hosts: of the site\n"
    own.unlink()
    assert "the site has no access.yaml" in reason(tokyo, wanted)


def test_without_access_files_defaults_apply(tokyo: SiteExecutor, repository: FabricRepository) -> None:
    assert list(tokyo(job(repository, TOKYO, "leaf01", "gpu01"))) == [
        b"access.yaml: -",
        b"known_hosts: -",
        b"known_certificates: -",
        b"leaf01,gpu01",
    ]


def test_problems_of_the_fabric_are_passed_on(tokyo: SiteExecutor, repository: FabricRepository) -> None:
    file = repository.folder / TOKYO / "fabric.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("rails:", "rials:", 1), encoding="utf-8")
    assert "unknown key 'rials'" in reason(tokyo, job(repository, commit=repository.commit()))
    assert "matches no device" in reason(tokyo, job(repository, LARGE, "leaf99"))


def test_a_check_without_time_for_its_window_is_refused(
    settings: FleetSettings, repository: FabricRepository, tmp_path: Path
) -> None:
    wanted = job(repository).model_copy(update={"work": CheckWork(window_s=50)})
    assert reason(executor(settings, tmp_path), wanted).endswith(
        " s are left until its deadline, too few for counters over 50 s; "
        "check less often, or with more workers at the site"
    )


def test_a_design_is_made_once_for_the_jobs_of_a_commit(
    tokyo: SiteExecutor, repository: FabricRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[str]()

    def open_(folder: Path, **options: Any) -> Project:
        opened.append(folder.parent.parent.name)
        return before(folder, **options)

    before = Project.open
    monkeypatch.setattr(Project, "open", open_)
    wanted = job(repository, TOKYO, "leaf01")
    found = list(tokyo(wanted))
    tokyo.prepare(wanted)
    assert opened == [wanted.commit] * 2
    for _ in range(2):
        tokyo.prepare(wanted)
        assert list(tokyo(wanted)) == found
    assert opened == [wanted.commit] * 2
    own = tmp_path / "access" / TOKYO / "access.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("user: of-the-site\n", encoding="utf-8")
    assert next(iter(tokyo(wanted))) == b"access.yaml: user: of-the-site\n"
    later = job(repository, TOKYO, "leaf01", commit=repository.commit())
    list(tokyo(later))
    assert opened == [wanted.commit] * 2 + [later.commit]


def test_a_design_is_not_used_once_its_commit_left_the_branch(
    tokyo: SiteExecutor, repository: FabricRepository
) -> None:
    taken_back = job(repository, TOKYO, "leaf01", commit=repository.commit())
    list(tokyo(taken_back))
    tokyo.prepare(taken_back)
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    list(tokyo(job(repository, TOKYO, "leaf01", commit=repository.commit("another"))))
    assert f"the commit {taken_back.commit[:10]} is not on main" in reason(tokyo, taken_back)


@pytest.mark.parametrize(("room", "kept"), [(6, 4), (4, 4), (3, 3), (1, 1), (0, 1)])
def test_few_designs_are_kept(
    room: int, kept: int, tokyo: SiteExecutor, repository: FabricRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = len(Project.open(repository.folder / TOKYO).devices())
    monkeypatch.setattr(execute, "MOST_DEVICES", room * devices)
    jobs = [job(repository, TOKYO, "leaf01", commit=repository.commit()) for _ in range(5)]
    for one in jobs:
        list(tokyo(one))
        tokyo.prepare(one)
    assert [commit for _, commit in tokyo.designs] == [one.commit for one in jobs[-kept:]]


def test_a_fabric_that_is_not_checked_out_is_not_prepared(tokyo: SiteExecutor, repository: FabricRepository) -> None:
    tokyo.prepare(job(repository))
    assert not tokyo.designs
