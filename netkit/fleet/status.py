"""What workers report about themselves, every twenty seconds, signed with the key of their site; also as metrics."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from netkit.fleet import signing
from netkit.fleet.job import MessageError, canonical
from netkit.fleet.settings import PublicKeys, SiteName, verifiers

PURPOSE = "status"
MOST_BYTES = 4096
Text = Annotated[str, Field(max_length=200)]


class WorkerStatus(BaseModel):
    """A worker, and the job that it carries out; empty if none."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal[1, 2] = 2
    """1: of an earlier netkit, which does not answer a job that it does not know."""
    site: SiteName
    worker: Annotated[str, Field(min_length=1, max_length=64)]
    version: Text
    at_s: int
    since_s: int
    done: int
    """Jobs since it started."""
    refused: int
    verb: Text = ""
    fabric: Text = ""
    shard: Text = ""
    deadline_s: int = 0


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """What is known of a site."""

    name: str
    failure: str = ""
    """Why the broker does not answer; empty if it does."""
    waiting: int = 0
    """Jobs that no worker has received."""
    receivers: int = 0
    """Workers that are connected."""
    workers: tuple[WorkerStatus, ...] = ()
    """What workers reported within the last minute."""


def sign_status(status: WorkerStatus, key: Ed25519PrivateKey) -> bytes:
    return signing.signed(canonical(status.model_dump(mode="json")), PURPOSE, key)


def newest(messages: Iterable[bytes], keys: PublicKeys, site: str) -> tuple[WorkerStatus, ...]:
    """The newest status of each worker of a site, by name; what the site did not sign is left out."""
    workers: dict[str, WorkerStatus] = {}
    for message in messages:
        with suppress(MessageError):
            status = open_status(message, keys, site)
            if status.worker not in workers or workers[status.worker].at_s <= status.at_s:
                workers[status.worker] = status
    return tuple(workers[key] for key in sorted(workers))


def open_status(message: bytes, keys: PublicKeys, site: str) -> WorkerStatus:
    """The status in a message; MessageError unless the site signed it."""
    body = signing.opened(message, PURPOSE, verifiers(keys)) if len(message) <= MOST_BYTES else None
    if body is None:
        raise MessageError(f"the site {site} did not sign it")
    try:
        status = WorkerStatus.model_validate_json(body)
    except ValidationError:
        raise MessageError("it is not a status of a known version") from None
    if status.site != site:
        raise MessageError(f"it is of the site {status.site}")
    return status


ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
OF_SITES = {
    "netkit_fleet_site_up": ("gauge", "Whether the broker answers for the site."),
    "netkit_fleet_jobs_waiting": ("gauge", "Jobs that no worker has received."),
    "netkit_fleet_workers": ("gauge", "Workers that are connected."),
}
OF_WORKERS = {
    "netkit_fleet_worker_seen_timestamp_seconds": ("gauge", "When a worker reported last."),
    "netkit_fleet_worker_busy": ("gauge", "Whether a worker carries out a job."),
    "netkit_fleet_worker_jobs_total": ("counter", "Jobs that a worker carried out since it started."),
    "netkit_fleet_worker_refused_total": ("counter", "Messages and jobs that a worker refused since it started."),
}


def metrics(sites: Iterable[SiteStatus]) -> str:
    """The state of sites in the text format of Prometheus; what is not known has no sample."""
    rows: dict[str, list[str]] = {name: [] for name in (*OF_SITES, *OF_WORKERS)}
    for site in sites:
        up = not site.failure
        values = (int(up), *((site.waiting, site.receivers) if up else ()))
        for name, value in zip(OF_SITES, values, strict=False):
            rows[name].append(_sample(name, value, site=site.name))
        for one in site.workers:
            for name, value in zip(OF_WORKERS, (one.at_s, int(bool(one.verb)), one.done, one.refused), strict=True):
                rows[name].append(_sample(name, value, site=site.name, worker=one.worker))
    return "".join(_family(name, *about, rows[name]) for name, about in {**OF_SITES, **OF_WORKERS}.items())


def _sample(name: str, value: int, **labels: str) -> str:
    shown = ",".join(f'{key}="{text.translate(ESCAPES)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value}\n"


def _family(name: str, kind: str, about: str, samples: list[str]) -> str:
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n" + "".join(samples) if samples else ""
