"""Deploys through the workers of a site: one run, one worker at a time, whatever ends on the way."""

import itertools
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit import plan as planning
from netkit.deploy import Journal, Phase
from netkit.fleet.job import DeployWork, new_job, sign_job
from netkit.fleet.rabbitmq import DISPATCH, LEASE, control_queue, fabric_queue
from netkit.plan.model import approval as digest_of
from tests.command import run
from tests.fleet.bed import FABRIC, eventually
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.site import SiteScene, site_scene
from tests.fleet.test_faults import published
from tests.lab.running import needs_lab

pytestmark = [needs_rabbitmq, needs_lab]
SWITCHES = ("leaf01", "leaf02", "spine01", "spine02")
REPLY = "ef" * 16
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def running_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteScene]:
    with site_scene(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture
def scene(running_scene: SiteScene) -> Iterator[SiteScene]:
    """The site, all of whose devices have to be changed, without workers."""
    running_scene.change(services={"ntp": [f"127.0.2.{next(NUMBERS)}"]})
    yield running_scene
    running_scene.end_workers()


def newest(scene: SiteScene) -> Journal:
    return Journal(max(scene.runs()))


def expect_all_done(scene: SiteScene, starts: int, again: str = "") -> None:
    """Expect that the newest run ended well, that each device was committed once, and that nothing is left to do.

    Only the device at work when a process was killed may have been committed again.
    """
    journal = newest(scene)
    outcome = journal.outcome()
    assert outcome is not None
    assert {one.device: one.result.value for one in outcome.devices if one.device in SWITCHES} == dict.fromkeys(
        SWITCHES, "done"
    )
    commits = [entry.device for entry in journal.entries() if entry.step == Phase.COMMIT]
    if commits.count(again) > 1:
        commits.remove(again)
    assert sorted(commits) == list(SWITCHES)
    assert len(journal.provenance()) == starts
    done = scene.netkit("plan", "--detailed-exitcode")
    assert done.returncode == 0, done.stdout


def reached(scene: SiteScene, device: str, step: str, before: set[Path]) -> Journal:
    """Wait until a new run has come to a step of a device."""

    def found() -> Journal | None:
        for folder in scene.runs() - before:
            journal = Journal(folder)
            if any((entry.device, entry.step) == (device, step) for entry in journal.entries()):
                return journal
        return None

    journal: Journal = eventually(found)
    return journal


def test_a_deploy_and_its_rollback_run_at_the_site(scene: SiteScene) -> None:
    scene.worker("first")
    plan = scene.netkit("plan", "--format", "json")
    assert [device["name"] for device in json.loads(plan.stdout)["devices"] if device["changes"]] == list(SWITCHES)
    known = scene.runs()
    tried = scene.netkit("deploy", "--dry-run", "--format", "json")
    assert tried.returncode == 0, tried.stderr
    (found,) = json.loads(tried.stdout)["sites"]
    assert {one["device"]: one["result"] for one in found["outcome"]["devices"]} == {
        **dict.fromkeys(SWITCHES, "ready"),
        **dict.fromkeys(("gpu01", "gpu02"), "unchanged"),
    }
    assert scene.runs() == known
    done = scene.netkit("deploy", "--yes", "--reason", "another server", "--format", "json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["sites"]
    assert found["site"] == "tokyo"
    assert {one["device"]: one["result"] for one in found["outcome"]["devices"]} == {
        **dict.fromkeys(SWITCHES, "done"),
        **dict.fromkeys(("gpu01", "gpu02"), "unchanged"),
    }
    expect_all_done(scene, starts=1)
    history = json.loads(scene.netkit("history", "--format", "json").stdout)["tokyo"]
    assert (history[0]["run"], history[0]["provenance"][0]["reason"]) == (found["outcome"]["run"], "another server")
    assert "4 done, 2 unchanged" in scene.netkit("history").stdout
    back = scene.netkit("rollback", "last", "--yes", "--format", "json")
    assert back.returncode == 0, back.stderr
    again = scene.netkit("plan", "--format", "json")
    assert json.loads(again.stdout)["devices"] == json.loads(plan.stdout)["devices"]


def test_another_worker_takes_up_the_run_of_a_killed_one(scene: SiteScene) -> None:
    both, known = [scene.worker("one"), scene.worker("other")], scene.runs()
    deploying = scene.begun("deploy", "--yes")
    reached(scene, "leaf02", Phase.LOAD, known)
    (busy,) = [one for one in both if any(line.startswith("begins deploy") for line in one.lines())]
    busy.end(signal.SIGKILL)
    out, err = deploying.communicate(timeout=300)
    assert deploying.returncode == 0, out + err
    expect_all_done(scene, starts=2, again="leaf02")


@pytest.mark.whole
def test_a_worker_that_is_restarted_goes_on(scene: SiteScene) -> None:
    first, known = scene.worker("restarted"), scene.runs()
    deploying = scene.begun("deploy", "--yes")
    reached(scene, "leaf01", Phase.COMMIT, known)
    assert first.end() == 0
    (run,) = scene.runs() - known
    ended = {entry.device for entry in Journal(run).entries() if entry.step == Phase.END}
    begun = {entry.device for entry in Journal(run).entries() if entry.step == Phase.COMMIT}
    assert begun == ended, "it ended where no device is half done"
    scene.worker("restarted")
    out, err = deploying.communicate(timeout=300)
    assert deploying.returncode == 0, out + err
    expect_all_done(scene, starts=2)


@pytest.mark.whole
def test_an_interrupted_deploy_stops_safely_and_is_resumed(scene: SiteScene) -> None:
    scene.worker("stopped")
    known = scene.runs()
    deploying = scene.begun("deploy", "--yes")
    journal = reached(scene, "leaf01", Phase.COMMIT, known)
    deploying.send_signal(signal.SIGINT)
    out, err = deploying.communicate(timeout=300)
    assert deploying.returncode == 1, out + err
    assert "to continue: netkit deploy --resume --fabric" in err
    assert journal.outcome() is None
    done = scene.netkit("deploy", "--resume")
    assert done.returncode == 0, done.stderr
    expect_all_done(scene, starts=2)


@pytest.mark.whole
def test_a_deploy_that_is_to_continue_does_without_its_coordinator(scene: SiteScene) -> None:
    scene.worker("lonely")
    known = scene.runs()
    deploying = scene.begun("deploy", "--yes", "--on-disconnect", "continue")
    journal = reached(scene, "leaf01", Phase.COMMIT, known)
    deploying.kill()
    deploying.communicate(timeout=300)
    second = scene.netkit("deploy", "--yes")
    assert (second.returncode, second.stdout) == (3, second.stdout)
    assert "is being changed at tokyo, by a run of an earlier coordinator" in second.stderr
    eventually(journal.outcome)
    expect_all_done(scene, starts=1)


@pytest.mark.whole
def test_a_deploy_that_is_to_continue_is_left_by_ctrl_c(scene: SiteScene) -> None:
    scene.worker("left")
    known = scene.runs()
    deploying = scene.begun("deploy", "--yes", "--on-disconnect", "continue")
    journal = reached(scene, "leaf01", Phase.COMMIT, known)
    deploying.send_signal(signal.SIGINT)
    _, err = deploying.communicate(timeout=300)
    assert (deploying.returncode, journal.outcome()) == (130, None)
    assert "the run continues at its site; its result: netkit history --fabric" in err
    eventually(journal.outcome)
    expect_all_done(scene, starts=1)


@pytest.mark.whole
def test_a_deploy_without_its_coordinator_stops(scene: SiteScene) -> None:
    worker, known = scene.worker("abandoned", ABANDONED_S=1, LOOK_S=1), scene.runs()
    deploying = scene.begun("deploy", "--yes")
    journal = reached(scene, "leaf01", Phase.COMMIT, known)
    deploying.kill()
    deploying.communicate(timeout=300)
    eventually(lambda: any(line.startswith("answered deploy") for line in worker.lines()))
    assert journal.outcome() is None
    done = scene.netkit("deploy", "--resume")
    assert done.returncode == 0, done.stderr
    expect_all_done(scene, starts=2)


@pytest.mark.whole
def test_a_job_whose_coordinator_has_gone_is_not_begun(scene: SiteScene) -> None:
    """It may have waited for hours, and no longer be wanted."""
    worker, known = scene.worker("late", ABANDONED_S=1), scene.runs()
    plan = planning.read(scene.netkit("plan", "--format", "json").stdout)
    work = DeployWork(plan=digest_of(plan), asked_by="anna@mgmt01")
    job = new_job("tokyo", FABRIC["tokyo"], scene.origin.git("rev-parse", "HEAD"), work, within_s=600)
    bed = scene.bed
    with bed.link() as link:
        link.declare_answers(REPLY)
        link.declare(control_queue(REPLY), DISPATCH)
    published(bed, "tokyo", sign_job(job.model_copy(update={"reply": REPLY}), bed.credentials().signing))
    eventually(lambda: any("since its coordinator is gone" in line for line in worker.lines()))
    assert scene.runs() == known


@pytest.mark.whole
def test_a_job_that_is_delivered_once_more_after_its_end_changes_nothing(scene: SiteScene) -> None:
    """The queues of its coordinator are gone by then; the run was interrupted, and stays so."""
    both = [scene.worker("early"), scene.worker("later")]
    known = scene.runs()
    deploying = scene.begun("deploy", "--yes")
    journal = reached(scene, "leaf01", Phase.COMMIT, known)
    deploying.send_signal(signal.SIGINT)
    deploying.communicate(timeout=300)
    entries = journal.entries()
    commit = scene.origin.git("rev-parse", "HEAD")
    work = DeployWork(plan="ab" * 16, asked_by="mallory@broker")
    again = new_job("tokyo", FABRIC["tokyo"], commit, work, within_s=600)
    again = again.model_copy(update={"nonce": journal.provenance()[0].job, "reply": "ba" * 16})
    for _ in range(2):
        published(scene.bed, "tokyo", sign_job(again, scene.bed.credentials().signing))
    ended = "failed (it was not begun, since its coordinator has ended)"
    eventually(lambda: any(line.startswith(ended) for one in both for line in one.lines()))
    assert (journal.entries(), journal.outcome()) == (entries, None)
    assert scene.netkit("deploy", "--resume").returncode == 0
    expect_all_done(scene, starts=2)


@pytest.mark.whole
def test_a_second_coordinator_is_refused(scene: SiteScene) -> None:
    scene.worker("shared")
    known = scene.runs()
    deploying = scene.begun("deploy", "--yes")
    reached(scene, "leaf01", Phase.COMMIT, known)
    second = scene.netkit("deploy", "--yes")
    assert second.returncode == 3
    assert "inventory/tokyo is being changed by another worker or coordinator" in second.stderr
    out, err = deploying.communicate(timeout=300)
    assert deploying.returncode == 0, out + err
    expect_all_done(scene, starts=1)


def test_a_lost_lease_stops_the_run_before_the_next_write(scene: SiteScene) -> None:
    """No entry is later than the loss: each takes its time first, and then asks for the lease.

    The queue is deleted over an open link: on a busy machine, rabbitmqctl starts more slowly than the run ends.
    """
    scene.worker("losing")
    known, bed = scene.runs(), scene.bed
    with bed.link() as link:
        deploying = scene.begun("deploy", "--yes")
        journal = reached(scene, "leaf02", Phase.LOAD, known)
        link.delete(fabric_queue(LEASE, FABRIC["tokyo"]))
        lost_s = time.time()
        assert journal.outcome() is None, "the run has ended before its lease was lost"
    out, err = deploying.communicate(timeout=300)
    assert deploying.returncode != 0, out + err
    assert "the lease of inventory/tokyo is lost, so nothing else was written" in out
    assert journal.outcome() is None
    assert [entry.step for entry in journal.entries() if entry.at_s > lost_s] == []
    done = scene.netkit("deploy", "--resume")
    assert done.returncode == 0, done.stderr
    outcome = journal.outcome()
    assert outcome is not None
    assert outcome.exit_code == 0


@pytest.mark.whole
def test_another_plan_than_the_approved_one_is_refused(scene: SiteScene, tmp_path: Path) -> None:
    scene.worker("careful")
    file = tmp_path / "plan.json"
    assert scene.netkit("plan", "-o", file).returncode == 0
    scene.change(services={"ntp": ["127.0.0.10"]})
    known = scene.runs()
    done = scene.netkit("deploy", file, "--yes")
    assert done.returncode == 3, done.stdout
    assert "the approved plan is" in done.stderr
    assert scene.runs() == known


@pytest.mark.whole
def test_the_rules_of_the_fabric_apply_at_its_site(scene: SiteScene, tmp_path: Path) -> None:
    """The worker requires the deployer's key and the second approval, so that no coordinator can leave them out."""
    signers = ""
    for name in ("bob", "carol"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
        public = (tmp_path / f"{name}.pub").read_text(encoding="utf-8").split()[:2]
        signers += f"{name}@example.net {' '.join(public)}\n"
    key = tmp_path / "bob"
    rules = "approval: {required: always, deployer: key}\nreason: required\nfleet: required\non_lab: true\n"
    (scene.fabric / "deploy.yaml").write_text(rules, encoding="utf-8")
    (scene.fabric / "allowed_signers").write_text(signers, encoding="utf-8")
    scene.origin.commit("rules")
    known = scene.runs()
    scene.worker("strict")
    try:
        without = scene.netkit("deploy", "--yes", "--reason", "CHG-1")
        assert (without.returncode, "a second person's approval" in without.stderr) == (3, True)
        plan = tmp_path / "plan.json"
        assert scene.netkit("plan", "-o", plan).returncode == 0
        given = run("approve", plan, "--fabric", scene.fabric, "--lab", scene.lab.name, "--key", key, "--yes")
        assert given.returncode == 0, given.stderr
        silent = scene.netkit("deploy", plan, "--yes")
        assert (silent.returncode, "requires a reason" in silent.stderr) == (3, True)
        about = ("--fabric", scene.fabric, "--lab", scene.lab.name, "--reason", "CHG-1")
        local = run("deploy", plan, *about, "--yes", NETKIT_LAB_DIR=str(scene.lab.home))
        assert "allows changes only by the workers of the sites" in local.stderr
        assert scene.runs() == known
        unsigned = scene.netkit("deploy", plan, "--yes", "--reason", "CHG-1")
        assert (unsigned.returncode, "requires the deployer's key" in unsigned.stderr) == (3, True)
        own = scene.netkit("deploy", plan, "--yes", "--reason", "CHG-1", "--key", key)
        assert (own.returncode, "no one may approve their own deploy" in own.stderr) == (3, True)
        signed = ("deploy", plan, "--reason", "CHG-1", "--key", tmp_path / "carol")
        tried = scene.netkit(*signed, "--dry-run")
        assert (tried.returncode, scene.runs() == known) == (0, True), tried.stderr
        done = scene.netkit(*signed, "--yes")
        assert done.returncode == 0, done.stderr
        start = newest(scene).provenance()[0]
        assert (start.reason, start.signer) == ("CHG-1", "carol@example.net")
        assert start.approval is not None
        assert start.approval.approver == "bob@example.net"
        expect_all_done(scene, starts=1)
    finally:
        (scene.fabric / "deploy.yaml").unlink()
        scene.origin.commit("no rules")
