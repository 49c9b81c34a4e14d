"""A worker for tests: real in everything but the verbs, which follow a script."""

import hashlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from netkit.fleet import link, settings, worker
from netkit.fleet.job import MessageError, SiteJob, open_job
from netkit.fleet.lease import Note
from netkit.fleet.nonce_journal import NonceJournal
from netkit.fleet.signing import Credentials
from netkit.fleet.status import WorkerStatus
from netkit.fleet.worker import Worker, stop_on_signals


def echo(job: SiteJob) -> Iterator[bytes | Note]:
    """Answer each device by its name."""
    yield Note("looking")
    for device in job.devices:
        yield f"{job.site} {device} {os.getppid()}".encode()


def slow(job: SiteJob) -> Iterator[bytes | Note]:
    """Answer one part at once, and the rest when the file of the job's first device is there."""
    yield f"first of {os.getppid()}".encode()
    while not Path(os.environ["GATE"]).exists():
        time.sleep(0.02)
    yield from echo(job)


def crash(job: SiteJob) -> Iterator[bytes | Note]:
    """End as a process that the kernel kills because memory is used up."""
    yield job.devices[0].encode()
    os.kill(os.getpid(), signal.SIGKILL)


def defect(job: SiteJob) -> Iterator[bytes | Note]:
    yield job.devices[0].encode()
    raise ZeroDivisionError(job.devices[0])


def forever(_: SiteJob) -> Iterator[bytes | Note]:
    yield b"begun"
    while True:
        time.sleep(1)


def large(job: SiteJob) -> Iterator[bytes | Note]:
    """Answer five parts that do not compress well."""
    for number in range(5):
        digests = (hashlib.sha512(f"{job.nonce} {number} {at}".encode()).hexdigest() for at in range(3125))
        yield "".join(digests).encode()


def brief(job: SiteJob) -> Iterator[bytes | Note]:
    """Answer three parts within half a second."""
    attempt = os.urandom(8).hex()
    for number in range(3):
        yield f"{job.site} {job.devices[0]} {number} {attempt}".encode()
        time.sleep(0.15)


PREPARED: list[SiteJob] = []
"""The jobs that this process was asked to prepare."""


def prepared(_: SiteJob) -> Iterator[bytes | Note]:
    yield str(len(PREPARED)).encode()


SCRIPTS = {one.__name__: one for one in (echo, slow, crash, defect, forever, large, brief, prepared)}


def silent(message: bytes, *about: Any) -> SiteJob:
    """Open a job as a worker of an older release does: there is no answer to one that it does not know."""
    try:
        return open_job(message, *about)
    except MessageError as error:
        raise MessageError(str(error)) from None


def main(folder: str, site: str, state: str, script: str) -> None:
    for module, name in ((worker, "PULSE_S"), (link, "HEARTBEAT_S"), (link, "UNACKNOWLEDGED_MS"), (link, "CONFIRM_S")):
        if name in os.environ:
            setattr(module, name, int(os.environ[name]))
    if "OLDER" in os.environ:
        vars(worker).update(WorkerStatus=partial(WorkerStatus, format=1), open_job=silent)
    found = settings.load(Path(folder))
    credentials = Credentials.load(Path(folder), found.broker)

    def report(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    with NonceJournal(Path(state) / "jobs.sqlite", time.time()) as journal:
        serving = Worker(found, site, credentials, journal, SCRIPTS[script], report, PREPARED.append)
        stop_on_signals(serving)
        serving.run()
