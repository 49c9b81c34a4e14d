"""notify.yaml, beside fabric.yaml: the receivers of notifications. Optional, and without secrets."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from netkit.access.settings import AccessModel
from netkit.errors import IntentError, NotifyError, Problem
from netkit.intent import complaint, document
from netkit.judge import Verdict
from netkit.notify.event import FlapLimits, StateEvent

FILE = "notify.yaml"
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
SecretName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Globs = tuple[Annotated[str, Field(min_length=1)], ...]
SLACK = "hooks.slack.com"


class Receiver(AccessModel):
    """A receiver, and what it is notified of."""

    name: Name = Field(description="name of the receiver; another name is another receiver")
    minimum: Literal["warn", "fail"] = Field("warn", description="the mildest verdict to report")
    checks: Globs = Field(("*",), min_length=1, description="only these checks, as globs")
    devices: Globs = Field(("*",), min_length=1, description="only these devices, as globs; `fabric` is the whole")
    groups: int = Field(20, ge=1, le=200, description="limit of groups in a message; the others are counted")

    @property
    def least(self) -> Verdict:
        return Verdict[self.minimum.upper()]

    def wants(self, event: StateEvent) -> bool:
        return event.level >= self.least and self.covers(event.key.check, event.key.device)

    def covers(self, check: str, device: str) -> bool:
        is_check = any(fnmatchcase(check, one) for one in self.checks)
        return is_check and any(fnmatchcase(device, one) for one in self.devices)


class Web(Receiver):
    """A receiver with a URL."""

    url: str | None = Field(None, min_length=1, description="http:// or https://; without secrets")
    url_secret: SecretName | None = Field(None, description="name of the secret that is the URL")
    token_secret: SecretName | None = Field(None, description="name of the secret sent as bearer token")
    ca_file: str | None = Field(None, min_length=1, description="certificates to trust, in place of the system's")

    @field_validator("url")
    @classmethod
    def _plain_address(cls, url: str | None) -> str | None:
        if url is not None:
            checked_url(url)
        return url

    @model_validator(mode="after")
    def _one_address(self) -> "Web":
        if (self.url is None) is (self.url_secret is None):
            raise ValueError("needs one address; give url or url_secret")
        return self


class Webhook(Web):
    """Any program that accepts JSON."""

    kind: Literal["webhook"]
    hmac_secret: SecretName | None = Field(None, description="name of the secret that messages are signed with")


class Slack(Web):
    """Slack, or a service with the same API."""

    kind: Literal["slack"]

    @field_validator("url")
    @classmethod
    def _known_to_be_secret(cls, url: str | None) -> str | None:
        if url is not None and urlsplit(url).hostname == SLACK:
            raise ValueError("is itself a secret; name it with url_secret")
        return url

    groups: int = Field(20, ge=1, le=40, description="limit of groups in a message; the others are counted")


class Alertmanager(Web):
    """Prometheus' Alertmanager, API version 2."""

    kind: Literal["alertmanager"]
    expires_minutes: int = Field(
        60, ge=2, le=10_080, description="an alert that is not sent again ends; more than two intervals of the schedule"
    )


class Email(Receiver):
    """A mailbox, reached through a mail server."""

    kind: Literal["email"]
    host: str = Field(min_length=1, description="the mail server")
    port: int = Field(587, ge=1, le=65535, description="its port: 587 or 25 with STARTTLS, 465 with TLS")
    security: Literal["starttls", "tls", "none"] = Field("starttls", description="encryption of the connection")
    user: str | None = Field(None, min_length=1, description="the account, if the server needs a login")
    password_secret: SecretName | None = Field(None, description="name of the secret that is its password")
    sender: str = Field(pattern=r"^[^@\s<>]+@[^@\s<>]+$", description="sender address")
    to: tuple[Annotated[str, Field(pattern=r"^[^@\s<>,]+@[^@\s<>,]+$")], ...] = Field(
        min_length=1, description="recipient addresses"
    )
    ca_file: str | None = Field(None, min_length=1, description="certificates to trust, in place of the system's")

    @model_validator(mode="after")
    def _both_or_none(self) -> "Email":
        if (self.user is None) is not (self.password_secret is None):
            raise ValueError("has only one of user and password_secret; give both, or none")
        if self.user is not None and self.security == "none":
            raise ValueError("would send a password unencrypted; use security: starttls or tls")
        return self


class Flapping(AccessModel):
    """When a state counts as flapping, which stops its notifications until it is calm."""

    changes: int = Field(4, ge=1, le=1000, description="more changes within the window count as flapping")
    window_minutes: int = Field(120, ge=1, le=10_080, description="the window")
    calm_minutes: int = Field(45, ge=1, le=10_080, description="a state without a change for this long has settled")

    @property
    def limits(self) -> FlapLimits:
        return FlapLimits(self.changes, self.window_minutes * 60.0, self.calm_minutes * 60.0)


AnyReceiver = Webhook | Slack | Alertmanager | Email
KINDS: dict[str, type[AnyReceiver]] = {
    "webhook": Webhook,
    "slack": Slack,
    "alertmanager": Alertmanager,
    "email": Email,
}


class NotifySettings(AccessModel):
    """The whole file."""

    model_config = ConfigDict(json_schema_extra={"required": ["receivers"]})

    receivers: tuple[Annotated[AnyReceiver, Field(discriminator="kind")], ...] = Field(
        (), description="receivers of notifications, each with its own filter", json_schema_extra={"minItems": 1}
    )
    flapping: Flapping = Field(Flapping(), description="limits for flapping states")
    link: str = Field("", description="a URL for people, added to every message")
    keep_hours: int = Field(72, ge=1, le=8760, description="messages not delivered for this long are dropped")

    @field_validator("link")
    @classmethod
    def _address_of_the_web(cls, link: str) -> str:
        if link:
            checked_url(link)
        return link

    @field_validator("receivers")
    @classmethod
    def _one_of_each_name(cls, receivers: tuple[AnyReceiver, ...]) -> tuple[AnyReceiver, ...]:
        names = [one.name for one in receivers]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ValueError(f"two receivers are called {twice}; give each its own name")
        return receivers


def checked_url(url: str) -> SplitResult:
    """Validate a URL; the ValueError never repeats it, since it may be a secret."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        raise ValueError("is not a URL; write http://HOST/PATH or https://HOST/PATH")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a password; name a secret with url_secret, or use token_secret")
    return parts


TAGS = {"union_tag_invalid", "union_tag_not_found", "model_attributes_type"}
RECEIVERS = "receivers"


def load(folder: Path) -> NotifySettings:
    """Read notify.yaml in a fabric folder. NotifyError lists every problem."""
    file = folder / FILE
    if not file.exists():
        raise NotifyError(Problem("does not exist", "create it with a list of receivers", file=str(file)))
    try:
        found = document.read(file)
    except IntentError as error:
        raise NotifyError(error.problems) from None
    if not isinstance(found.value, dict):
        raise NotifyError(Problem("holds no settings", "write `key: value` lines", file=found.file, line=1))
    problems = list(found.problems)
    settings = NotifySettings()
    try:
        settings = NotifySettings.model_validate(found.value)
    except ValidationError as error:
        problems += _problems(error, found)
    if not problems and not settings.receivers:
        problems = [Problem("there is no receiver", "list receivers", (RECEIVERS,), found.file, 1)]
    if problems:
        raise NotifyError(sorted(problems, key=lambda problem: problem.line))
    return settings


def _problems(error: ValidationError, found: document.Document) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        problem, path = _problem(detail), tuple(detail["loc"])
        if path[:1] == (RECEIVERS,) and len(path) > 2 and path[2] in KINDS:
            path = (*path[:2], *path[3:])  # the kind of a receiver is not a level of the file
        heads = (path[:length] for length in range(len(path), -1, -1))
        line = next((found.lines[head] for head in heads if head in found.lines), 1)
        yield Problem(problem.message, problem.remedy, path, found.file, line)


def _problem(detail: ErrorDetails) -> Problem:
    key, kind = str(detail["loc"][-1]), detail["type"]
    if kind == "extra_forbidden":
        known = ", ".join(sorted(_model(tuple(detail["loc"])).model_fields))
        return Problem(f"unknown key {complaint.shown(key)}", f"known keys here: {known}")
    if kind in TAGS:
        return Problem("has no known kind", f"give kind: one of {', '.join(KINDS)}")
    if kind != "string_pattern_mismatch":
        return complaint.problem(detail)
    # The value may be a secret, or the name of one: do not repeat it.
    if key.endswith("_secret"):
        return Problem("is not the name of a secret", "write a name, such as NOC_HOOK for NETKIT_SECRET_NOC_HOOK")
    wanted = "letters, digits, `.`, `_` and `-`" if key == "name" else "one address, such as noc@example.net"
    return Problem("is not valid", f"write {wanted}")


def _model(path: tuple[int | str, ...]) -> type[BaseModel]:
    if path[0] == "flapping":
        return Flapping
    return KINDS[str(path[2])] if path[0] == RECEIVERS and len(path) > 3 else NotifySettings
