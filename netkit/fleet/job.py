"""A job: data that the coordinator signs, and a worker of one site carries out once and in time.

A worker trusts nothing in a message before its size and signature were checked. The text is canonical JSON: a text that
differs from what the job itself is written as is refused, so that nothing is read in two ways.
"""

import json
import secrets
import time
from typing import Annotated, Any, Literal, get_args

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from netkit import __version__
from netkit.access.settings import FactSource
from netkit.deploy.model import Options
from netkit.errors import Problem, UsageError
from netkit.fleet import signing
from netkit.fleet.settings import FabricPath, PublicKeys, SiteName, verifiers

MOST_BYTES = 512 * 1024
SKEW_S = 60
"""Tolerated difference between the clocks of the coordinator and a worker."""
LONGEST_S = 24 * 3600
MOST_DEVICES = 10_000
PURPOSE = "job"
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.*?\[\]-]+$")]
Hex128 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Run = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9-]+$")]
Text = Annotated[str, Field(min_length=1, max_length=200)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class CheckWork(_Message):
    """Judge the checks of single devices."""

    verb: Literal["check"] = "check"
    names: tuple[Name, ...] = Field((), max_length=200)
    window_s: float = Field(10.0, ge=0, le=3600)
    source: FactSource | None = None
    is_light: bool = False
    since_s: tuple[Annotated[float, Field(ge=0, le=2**40)], ...] | None = Field(None, max_length=10_000)
    """The time of the counters of each device that were used last, 0 for none: the site judges those since then."""


class SnapshotWork(_Message):
    """Read the facts of devices."""

    verb: Literal["snapshot"] = "snapshot"
    window_s: float = Field(10.0, ge=0, le=3600)
    source: FactSource | None = None
    is_light: bool = False


class PlanWork(_Message):
    """Compare what devices run with what is intended, or with what they ran before a run."""

    verb: Literal["plan"] = "plan"
    undone: Run | None = None
    """The run to plan the rollback of."""


class BackupWork(_Message):
    """Read what devices run, without secrets."""

    verb: Literal["backup"] = "backup"


class WatchWork(_Message):
    """Sample counters."""

    verb: Literal["watch"] = "watch"
    interval_s: float = Field(1.0, ge=0.1, le=3600)
    length_s: float = Field(60.0, gt=0, le=LONGEST_S)
    is_once: bool = False
    """End as soon as the first rates of all devices are known."""
    source: FactSource | None = None


class HistoryWork(_Message):
    """List the runs on the fabric."""

    verb: Literal["history"] = "history"
    run: Run | None = None
    """Everything about this one."""


class _ChangingWork(_Message):
    """Who changes devices, and how."""

    asked_by: Text
    """Account and host, as people read it."""
    names: tuple[Text, ...] = Field((), max_length=10)
    """Names of that person, whose own approvals are refused."""
    reason: str = Field("", max_length=2000)
    skip_hook: str | None = Field(None, max_length=2000)
    approval: str | None = Field(None, max_length=65_536)
    """What `netkit approve` wrote."""
    signature: str = Field("", max_length=16_384)
    """What the deployer signed with `--key`, and the signature."""
    options: Options = Options()
    goes_on: bool = False
    """Whether the run continues without the coordinator; else it ends at the next safe place."""


class DeployWork(_ChangingWork):
    """Run a rollout that was approved by the digest of its plan."""

    verb: Literal["deploy"] = "deploy"
    plan: Hex128


class RehearseWork(_ChangingWork):
    """Try a plan through handles that cannot write."""

    verb: Literal["rehearse"] = "rehearse"
    plan: Hex128


class ResumeWork(_ChangingWork):
    """Continue an interrupted run: the newest, or the named one."""

    verb: Literal["resume"] = "resume"
    run: Run | None = None


class RollbackWork(_ChangingWork):
    """Undo a run by the plan that was approved by its digest."""

    verb: Literal["rollback"] = "rollback"
    run: Run
    plan: Hex128


class StopWork(_Message):
    """End a job that changes devices at the next safe place. It is sent past the queue of jobs."""

    verb: Literal["stop"] = "stop"
    job: Hex128


JobWork = Annotated[
    CheckWork
    | SnapshotWork
    | PlanWork
    | BackupWork
    | WatchWork
    | HistoryWork
    | DeployWork
    | RehearseWork
    | ResumeWork
    | RollbackWork
    | StopWork,
    Field(discriminator="verb"),
]
VERBS: tuple[str, ...] = tuple(model.model_fields["verb"].default for model in get_args(get_args(JobWork)[0]))
WRITING = frozenset({"deploy", "resume", "rollback"})
"""Verbs that change devices; all others only read, and may be repeated."""

ROUNDS = frozenset({"check", "snapshot", "backup"})
"""Verbs of which one round of a fabric runs at a site at a time."""


class SiteJob(_Message):
    """JobWork on a shard: some devices or units of a fabric at a commit, at one site."""

    format: Literal[1] = 1
    nonce: Hex128
    reply: Hex128
    """Routing key of the answers: the run of the coordinator that waits for them."""
    site: SiteName
    fabric: FabricPath
    """Its folder in the repository."""
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    devices: tuple[Name, ...] = Field((), max_length=MOST_DEVICES)
    units: tuple[Annotated[int, Field(ge=0, le=1_000_000)], ...] = Field((), max_length=1000)
    work: JobWork
    issued_s: int = Field(ge=0, le=2**40)
    deadline_s: int = Field(ge=0, le=2**40)

    @model_validator(mode="after")
    def _ends(self) -> "SiteJob":
        if not 0 < self.deadline_s - self.issued_s <= LONGEST_S:
            raise ValueError("its deadline is not within 24 h of its issue")
        if self.devices and self.units:
            raise ValueError("its shard is devices or units, not both")
        since_s = getattr(self.work, "since_s", None)
        if since_s is not None and len(since_s) != len(self.devices):
            raise ValueError("its times are not those of its devices")
        return self

    @property
    def verb(self) -> str:
        return self.work.verb

    @property
    def is_read_only(self) -> bool:
        return self.verb not in WRITING

    @property
    def goes_on(self) -> bool:
        """Whether it continues without the coordinator."""
        return isinstance(self.work, _ChangingWork) and self.work.goes_on

    @property
    def limit(self) -> str:
        """The shard as `--limit` takes it; empty for the whole fabric."""
        return ",".join(self.devices or tuple(f"unit={unit}" for unit in self.units))


def new_job(site: str, fabric: str, commit: str, work: Any, *, within_s: int, **shard: Any) -> SiteJob:
    """A job for a site that ends `within_s` seconds from now; the coordinator adds where answers go."""
    now_s = int(time.time())
    if len(shard.get("devices", ())) > MOST_DEVICES:
        what = f"a job is about at most {MOST_DEVICES:,} devices, and {len(shard['devices']):,} are at {site}"
        raise UsageError(Problem(what, "use --limit, or divide the units among more sites"))
    return SiteJob(
        nonce=secrets.token_hex(16),
        reply="0" * 32,
        site=site,
        fabric=fabric,
        commit=commit,
        work=work,
        issued_s=now_s,
        deadline_s=now_s + within_s,
        **shard,
    )


class MessageError(Exception):
    """A message is refused; `job` is set if it was signed by a coordinator for this site."""

    def __init__(self, reason: str, job: SiteJob | None = None) -> None:
        super().__init__(reason)
        self.job = job


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def sign_job(job: SiteJob, key: Ed25519PrivateKey) -> bytes:
    return signing.signed(canonical(job.model_dump(mode="json")), PURPOSE, key)


def open_job(message: bytes, keys: PublicKeys, site: str, now_s: float) -> SiteJob:
    """The job in a message; MessageError unless a coordinator signed it, for this site and this time."""
    if len(message) > MOST_BYTES:
        raise MessageError(f"it has {len(message):,} bytes; a job has at most {MOST_BYTES:,}")
    body = signing.opened(message, PURPOSE, verifiers(keys))
    if body is None:
        raise MessageError("no coordinator of fleet.yaml signed it")
    try:
        job = SiteJob.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        what = f"it is not a job of netkit {__version__}: {place}: {first['msg']}; run the same release at all sites"
        raise MessageError(what, _addressed(body, site)) from None
    if canonical(job.model_dump(mode="json")) != body:
        raise MessageError("its text is not canonical")
    if job.site != site:
        raise MessageError(f"it is for the site {job.site}")
    if job.issued_s > now_s + SKEW_S:
        ahead_s = job.issued_s - now_s
        raise MessageError(f"it was issued {ahead_s:.0f} s in the future by this machine's clock", job)
    if now_s >= job.deadline_s:
        raise MessageError(f"its deadline passed {now_s - job.deadline_s:.0f} s ago by this machine's clock", job)
    return job


def _addressed(body: bytes, site: str) -> SiteJob | None:
    """What can be answered in the place of a job that only another release knows; None if it is not for this site."""
    try:
        given = json.loads(body)
        about = {key: given[key] for key in ("nonce", "reply", "site", "issued_s", "deadline_s")}
        found = SiteJob(**about, fabric="unknown", commit="0" * 40, work=HistoryWork())
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if found.site == site else None
