"""Connections to a device: opened, opened again after a change, hung up."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from netkit.deploy.job import Job
from netkit.errors import AccessError
from netkit.platforms.driver import Driver, Foresight


def opened(job: Job, name: str) -> Driver:
    """Return a driver that is connected."""
    driver = job.connect(name)
    try:
        driver.open()
    except BaseException:
        close(driver)
        raise
    return driver


def reopened(job: Job, name: str, until_s: float) -> Driver:
    """Return a driver over a new connection; right after a change, a device may take a while to let one in."""
    while True:
        try:
            return opened(job, name)
        except AccessError:
            if job.clock.steady_s() >= until_s:
                raise
            job.clock.sleep_s(job.options.poll_s)


def foresee(driver: Driver, version: str) -> None:
    """Let a driver fetch sessions along with the configuration: the health gate asks for them next."""
    if isinstance(driver, Foresight):
        driver.foresee_sessions(version)


def close(driver: Driver) -> None:
    """Close the connection; an error in that does not matter."""
    with suppress(Exception):
        driver.close()


@contextmanager
def closing(driver: Driver) -> Iterator[Driver]:
    """Close the connection at the end of a block."""
    try:
        yield driver
    finally:
        close(driver)


def discard(job: Job, name: str) -> None:
    """Forget what is staged on a device, if it still answers: this changes nothing."""
    with suppress(Exception), closing(opened(job, name)) as driver:
        driver.discard_config()
