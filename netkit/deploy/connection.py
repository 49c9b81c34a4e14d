"""Opening, reopening and closing connections to a device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

from netkit.deploy.job import Job
from netkit.deploy.journal import Lease, unlimited
from netkit.errors import AccessError
from netkit.platforms.driver import Driver, Foresight

WRITES = (
    "load_candidate",
    "commit_config",
    "commit_in_step",
    "confirm_commit",
    "discard_config",
    "rollback",
    "drain",
    "undrain",
)
"""The methods of drivers that change a device."""


def opened(job: Job, name: str) -> Driver:
    """Connect to a device."""
    driver = job.connect(name)
    if job.journal.lease is not unlimited:
        _put_under_lease(driver, job.journal.lease)
    try:
        driver.open()
    except BaseException:
        close(driver)
        raise
    return driver


def _put_under_lease(driver: Driver, lease: Lease) -> None:
    """Have a driver ask for the lease before each write."""

    def asking(write: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(write)
        def asks(*arguments: Any, **options: Any) -> Any:
            lease()
            return write(*arguments, **options)

        return asks

    for name in WRITES:
        if hasattr(driver, name):
            setattr(driver, name, asking(getattr(driver, name)))


def reopened(job: Job, name: str, until_s: float) -> Driver:
    """Open a new connection; right after a change, a device may take a while to accept one."""
    while True:
        try:
            return opened(job, name)
        except AccessError:
            if job.clock.steady_s() >= until_s:
                raise
            job.clock.sleep_s(job.options.poll_s)


def foresee(driver: Driver, version: str) -> None:
    """Let a driver fetch sessions along with the configuration: the health gate needs them next."""
    if isinstance(driver, Foresight):
        driver.foresee_sessions(version)


def close(driver: Driver) -> None:
    """Close the connection and ignore errors."""
    with suppress(Exception):
        driver.close()


@contextmanager
def closing(driver: Driver) -> Iterator[Driver]:
    try:
        yield driver
    finally:
        close(driver)


def discard(job: Job, name: str) -> None:
    """Discard the staged candidate of a device that still answers; the running configuration stays."""
    with suppress(Exception), closing(opened(job, name)) as driver:
        driver.discard_config()
