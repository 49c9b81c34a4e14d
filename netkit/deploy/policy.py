"""deploy.yaml, beside fabric.yaml: rules and approvals for deploys. It is optional, and contains no secrets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from netkit.access.settings import AccessModel, is_loopback
from netkit.errors import DeployError, IntentError, Problem
from netkit.intent import complaint, document
from netkit.plan import Plan
from netkit.platforms.change import Risk, risk_of

FILE = "deploy.yaml"
Verb = Literal["deploy", "rollback", "resume"]
Word = Annotated[str, Field(min_length=1)]


class HookSettings(AccessModel):
    """The program or web service asked before a deploy."""

    command: tuple[Word, ...] | None = Field(
        None, min_length=1, description="a program and its arguments; a relative path is one from the fabric's folder"
    )
    url: str | None = Field(None, min_length=1, description="https://, or http:// on this machine; without secrets")
    token_secret: str | None = Field(
        None, pattern=r"^[A-Z][A-Z0-9_]*$", description="name of the secret sent to the URL as bearer token"
    )
    ca_file: str | None = Field(None, min_length=1, description="certificates to trust, in place of the system's")
    timeout_s: float = Field(30, gt=0, le=600, description="without an answer by then, the deploy is refused")
    may_skip: tuple[Verb, ...] = Field(
        ("rollback", "resume"), description="verbs that accept --skip-hook, for when the hook itself is broken"
    )

    @field_validator("url")
    @classmethod
    def _without_secrets(cls, url: str | None) -> str | None:
        if url is None:
            return url
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            raise ValueError("cannot be used; write https://HOST/PATH") from None
        if parts.scheme not in {"http", "https"} or not host or not url.isprintable() or " " in url:
            raise ValueError("cannot be used; write https://HOST/PATH")
        if parts.username or parts.password:
            raise ValueError("holds a password; name it with token_secret")
        if parts.scheme == "http" and not is_loopback(host):
            raise ValueError("would let anyone on the network path answer; write https://")
        return url

    @model_validator(mode="after")
    def _exactly_one(self) -> "HookSettings":
        if (self.command is None) is (self.url is None):
            raise ValueError("needs exactly one of command and url")
        if self.command and (self.token_secret or self.ca_file):
            raise ValueError("has a token or certificates for a command; they belong to url")
        return self


class ApprovalSettings(AccessModel):
    """When a deploy needs a second person's signature, and whose counts."""

    required: str = Field("always", description="for which plans: always, never, or those of this risk and above")
    allowed_signers: str = Field(
        "allowed_signers", min_length=1, description="OpenSSH allowed_signers file, from the fabric's folder"
    )
    valid_hours: float = Field(24, gt=0, le=720, description="how long an approval is valid")
    deployer: Literal["login", "key"] = Field(
        "login", description="how the deployer is identified: by account names, or by --key"
    )
    logins: dict[str, tuple[Word, ...]] = Field({}, description="login name → principals of the same person")

    @field_validator("required")
    @classmethod
    def _known(cls, required: str) -> str:
        words = ("always", "never", *(risk.word for risk in Risk if risk is not Risk.NONE))
        if required not in words:
            raise ValueError(f"{{given}} is not known here; use {', '.join(words[:-1])} or {words[-1]}")
        return required

    def is_required(self, plan: Plan) -> bool:
        if self.required in {"always", "never"}:
            return self.required == "always"
        return plan.risk >= risk_of(self.required)


class DeployPolicy(AccessModel):
    """The whole file."""

    hook: HookSettings | None = Field(None, description="hook that is called before the first write")
    approval: ApprovalSettings | None = Field(None, description="a second person's signature")
    reason: Literal["optional", "required"] = Field(
        "optional", description="whether deploys and rollbacks take --reason"
    )
    fleet: Literal["optional", "required"] = Field(
        "optional", description="whether devices are changed only by the workers of their sites, with --fleet"
    )
    on_lab: bool = Field(False, description="whether these rules also apply to labs")


MODELS: dict[tuple[int | str, ...], type[AccessModel]] = {
    (): DeployPolicy,
    ("hook",): HookSettings,
    ("approval",): ApprovalSettings,
}


def load(folder: Path) -> DeployPolicy:
    """Read deploy.yaml in a fabric folder; without the file, nothing is required. DeployError lists every problem."""
    file = folder / FILE
    if not file.exists() and not file.is_symlink():
        return DeployPolicy()
    try:
        found = document.read(file)
    except IntentError as error:
        raise DeployError(error.problems) from None
    if not isinstance(found.value, dict):
        raise DeployError(Problem("holds no settings", "write `key: value` lines", file=found.file, line=1))
    problems = list(found.problems)
    policy = DeployPolicy()
    try:
        policy = DeployPolicy.model_validate(found.value)
    except ValidationError as error:
        problems += _problems(error, found)
    if problems:
        raise DeployError(sorted(problems, key=lambda problem: problem.line))
    return policy


def _problems(error: ValidationError, found: document.Document) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        problem = _unknown(detail) or complaint.problem(detail)
        heads = (problem.path[:length] for length in range(len(problem.path), -1, -1))
        line = next((found.lines[head] for head in heads if head in found.lines), 1)
        yield Problem(problem.message, problem.remedy, problem.path, found.file, line)


def _unknown(detail: ErrorDetails) -> Problem | None:
    path = tuple(detail["loc"])
    if detail["type"] != "extra_forbidden" or path[:-1] not in MODELS:
        return None
    known = ", ".join(sorted(MODELS[path[:-1]].model_fields))
    return Problem(f"unknown key {complaint.shown(str(path[-1]))}", f"known keys here: {known}", path)
