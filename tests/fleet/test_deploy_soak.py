"""Random faults while a fabric is deployed at its site: each run ends well in the end, and no device is changed twice.

NETKIT_FLEET_DEPLOY_FAULTS is how many; NETKIT_FLEET_SEED chooses others.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from netkit.deploy import ConfigState, Journal, Phase
from netkit.fleet.job import DeployWork, new_job, sign_job
from netkit.fleet.rabbitmq import DISPATCH, LEASE, control_queue, fabric_queue
from tests.fleet.bed import FABRIC, eventually
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.site import SiteScene, SiteWorker, site_scene
from tests.fleet.test_faults import published
from tests.lab.running import needs_lab

pytestmark = [needs_rabbitmq, needs_lab, pytest.mark.whole]
FAULTS = int(os.environ.get("NETKIT_FLEET_DEPLOY_FAULTS", "12"))
SEED = int(os.environ.get("NETKIT_FLEET_SEED", "1"))
WORKERS = ("one", "other")
LONGEST_RUN_S = 14.0
RESUMES = 6
REPLY = "cd" * 16


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteScene]:
    with site_scene(tmp_path_factory.mktemp("site")) as found:
        yield found


def is_begun(scene: SiteScene, known: set[Path]) -> Journal | None:
    """Return a run that has begun since."""
    return next((Journal(folder) for folder in scene.runs() - known if (folder / "journal.jsonl").exists()), None)


class _Faults:
    """What may happen while a run goes on."""

    def __init__(self, scene: SiteScene, chance: random.Random) -> None:
        self.scene, self.chance = scene, chance
        self.kinds: list[Callable[[Journal], None]] = [
            self.kill_worker,
            self.restart_worker,
            self.freeze_worker,
            self.freeze_job,
            self.kill_job,
            self.break_connections,
            self.kill_broker,
            self.delete_lease,
            self.repeat_job,
        ]

    def _busy(self) -> SiteWorker:
        """Return the worker that changes devices, or any if none does any more."""
        found = [one for one in self.scene.workers if _jobs_of(one)]
        return found[0] if found else self.chance.choice(self.scene.workers)

    def _replace(self, worker: SiteWorker) -> None:
        self.scene.workers.remove(worker)
        self.scene.worker(worker.log.stem)

    def kill_worker(self, _: Journal) -> None:
        worker = self._busy()
        worker.end(signal.SIGKILL)
        self._replace(worker)

    def restart_worker(self, _: Journal) -> None:
        worker = self._busy()
        assert worker.end() == 0, worker.lines()
        self._replace(worker)

    def freeze_worker(self, _: Journal) -> None:
        worker = self._busy()
        worker.process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        worker.process.send_signal(signal.SIGCONT)

    def freeze_job(self, _: Journal) -> None:
        for pid in _jobs_of(self._busy()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(3)
                os.kill(pid, signal.SIGCONT)

    def kill_job(self, _: Journal) -> None:
        for pid in _jobs_of(self._busy()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def break_connections(self, _: Journal) -> None:
        self.scene.bed.server.control("close_all_connections", "--vhost", "netkit.tokyo", "a test")

    def kill_broker(self, _: Journal) -> None:
        self.scene.bed.server.kill()
        self.scene.bed.server.start()

    def delete_lease(self, _: Journal) -> None:
        with self.scene.bed.link() as link:
            link.delete(fabric_queue(LEASE, FABRIC["tokyo"]))

    def repeat_job(self, journal: Journal) -> None:
        """Deliver the job of the run once more: the other worker gets it."""
        commit = self.scene.origin.git("rev-parse", "HEAD")
        work = DeployWork(plan="ab" * 16, asked_by="mallory@broker", goes_on=True)
        again = new_job("tokyo", FABRIC["tokyo"], commit, work, within_s=600)
        again = again.model_copy(update={"nonce": journal.provenance()[0].job, "reply": REPLY})
        bed = self.scene.bed
        with bed.link() as link:
            link.declare_answers(REPLY)
            link.declare(control_queue(REPLY), DISPATCH)
        published(bed, "tokyo", sign_job(again, bed.credentials().signing))


def _jobs_of(worker: SiteWorker) -> list[int]:
    found = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children")
    with suppress(OSError):
        return [int(pid) for pid in found.read_text(encoding="ascii").split()]
    return []


def expect_no_device_twice(journal: Journal) -> None:
    """Expect that no device is committed again once the run has brought it to what is intended."""
    done: set[str] = set()
    for entry in journal.entries():
        assert not (entry.step == Phase.COMMIT and entry.device in done), (journal.run, entry.device)
        if entry.outcome is not None and entry.step == Phase.END and entry.outcome.state is ConfigState.INTENDED:
            done.add(entry.device)


def test_each_deploy_ends_well_whatever_dies(scene: SiteScene) -> None:
    chance = random.Random(SEED)  # noqa: S311 (which fault is next)
    for name in WORKERS:
        scene.worker(name)
    faults = _Faults(scene, chance)
    kinds = [*faults.kinds]
    chance.shuffle(kinds)
    for number in range(FAULTS):
        scene.change(services={"ntp": [f"127.0.1.{number + 1}"]})
        known = scene.runs()
        goes_on = chance.choice(("stop", "continue"))
        deploying = scene.begun("deploy", "--yes", "--on-disconnect", goes_on)
        journal = eventually(partial(is_begun, scene, known))
        time.sleep(chance.random() * LONGEST_RUN_S)
        fault = kinds[number % len(kinds)]
        fault(journal)
        _finish(scene, deploying, journal, fault.__name__)


def _finish(scene: SiteScene, deploying: subprocess.Popen[str], journal: Journal, fault: str) -> None:
    """Resume a run until it ends, as an operator would, and check what was done."""
    out, err = deploying.communicate(timeout=400)
    story = [f"{fault}: deploy ended with {deploying.returncode}: {err[-600:]}"]
    for _ in range(RESUMES):
        if journal.outcome() is not None:
            break
        done = scene.netkit("deploy", "--resume")
        story.append(f"resume ended with {done.returncode}: {done.stderr[-600:]}")
        time.sleep(1)
    outcome = journal.outcome()
    assert outcome is not None, "\n".join(story)
    # A process that is killed right after it has confirmed a change cannot tell any more whether the device saved it.
    states = {one.state for one in outcome.failures}
    assert states <= {ConfigState.INTENDED}, "\n".join([*story, out])
    expect_no_device_twice(journal)
    left = scene.netkit("plan", "--detailed-exitcode")
    assert left.returncode == 0, "\n".join([*story, left.stdout, left.stderr])
