"""fleet.yaml: the broker, the repository, and the sites with their fabrics. It holds no secret."""

import base64
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import AfterValidator, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from netkit.access.settings import AccessModel, SecretSource
from netkit.errors import IntentError, NetkitError, Problem
from netkit.intent import complaint, document
from netkit.intent.slots import Numbers

FILE = "fleet.yaml"
COORDINATOR = "coordinator"
SITE = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
BRANCH = re.compile(r"[A-Za-z0-9][\w./-]{0,99}", re.ASCII)
KEY_BYTES = 32
Entries = TypeVar("Entries", tuple[Any, ...], dict[Any, Any])


class FleetError(NetkitError):
    """fleet.yaml, its keys, the repository or the broker cannot be used."""


def _public_key(text: str) -> str:
    try:
        is_key = len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except ValueError:
        is_key = False
    if not is_key:
        raise ValueError("{given} is not an Ed25519 public key; copy the line that `netkit fleet init` printed")
    return text


def _site_name(name: str) -> str:
    if not SITE.fullmatch(name) or name == COORDINATOR:
        raise ValueError(f"{name!r} cannot name a site; use lower-case letters, digits and hyphens")
    return name


def _path_in_repository(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path != str(PurePosixPath(*parts)) or not path.isprintable() or {"..", ".git", "/"} & {*parts}:
        raise ValueError(f"{path!r} is not a folder in the repository; write it as inventory/tokyo")
    return path


def _not_empty(entries: Entries) -> Entries:
    if not entries:
        raise ValueError("is empty; give at least one entry")
    return entries


PublicKeys = Annotated[
    tuple[Annotated[str, AfterValidator(_public_key)], ...], Field(max_length=8), AfterValidator(_not_empty)
]
SiteName = Annotated[str, AfterValidator(_site_name)]
FabricPath = Annotated[str, Field(max_length=200), AfterValidator(_path_in_repository)]


class BrokerSettings(AccessModel):
    """The RabbitMQ server, and how this machine logs in."""

    host: str = Field(min_length=1, max_length=253, description="name or address, as in the broker's certificate")
    port: int = Field(5671, ge=1, le=65535, description="its port for TLS")
    vhost: str = Field(
        "netkit",
        pattern=r"^[a-z][a-z0-9-]{0,31}$",
        description="first part of the names of users and virtual hosts: netkit.tokyo, netkit.coordinator",
    )
    authority: str = Field("ca.pem", min_length=1, description="certificates to trust; relative to the file's folder")
    certificate: str = Field("client.pem", min_length=1, description="this machine's certificate, likewise")
    key: str = Field("client.key", min_length=1, description="its private key, likewise")
    password: SecretSource = Field(
        SecretSource(env="NETKIT_SECRET_BROKER", command=None, keyring=None),
        description="source of the password of this machine's user",
    )


class RepositorySettings(AccessModel):
    """The git repository that the workers fetch."""

    url: str = Field(min_length=1, max_length=500, description="as `git fetch` takes it at a site")
    branches: Annotated[tuple[str, ...], AfterValidator(_not_empty)] = Field(
        ("main",), max_length=20, description="workers accept only commits on these branches"
    )

    @field_validator("url")
    @classmethod
    def _fetches(cls, url: str) -> str:
        if url.startswith("-") or "::" in url or not url.isprintable():
            raise ValueError("{given} is not accepted; write https://HOST/PATH, git@HOST:PATH or a folder")
        if re.match(r"\w+://[^/@]*:[^/@]*@", url):
            raise ValueError("holds a password; use an SSH key or a credential helper of git at the site")
        return url

    @field_validator("branches")
    @classmethod
    def _are_branches(cls, branches: tuple[str, ...]) -> tuple[str, ...]:
        for name in branches:
            if not BRANCH.fullmatch(name) or ".." in name:
                raise ValueError(f"{name!r} is not the name of a branch; write it as main")
        return branches


class CoordinatorSettings(AccessModel):
    """Who may give jobs to workers."""

    keys: PublicKeys = Field(description="Ed25519 public keys; several while one is replaced")


class SiteFabric(AccessModel):
    """A fabric at a site, or a part of it."""

    units: Numbers = Field((), max_length=1000, description="only these units are here, as 1-3,5; default: all devices")


class SiteSettings(AccessModel):
    """A site: the workers there share a key, and see only its jobs."""

    keys: PublicKeys = Field(description="Ed25519 public keys of its workers; several while one is replaced")
    fabrics: Annotated[dict[FabricPath, SiteFabric], AfterValidator(_not_empty)] = Field(
        max_length=1000, description="folder in the repository → the part of that fabric at this site"
    )


class FleetSettings(AccessModel):
    """The whole file."""

    broker: BrokerSettings = Field(description="the RabbitMQ server")
    repository: RepositorySettings = Field(description="where workers fetch the fabrics from")
    coordinator: CoordinatorSettings = Field(description="the machine that sends jobs to the sites")
    sites: Annotated[dict[SiteName, SiteSettings], AfterValidator(_not_empty)] = Field(
        max_length=500, description="name → site"
    )

    @field_validator("sites")
    @classmethod
    def _each_device_has_one_site(cls, sites: dict[str, SiteSettings]) -> dict[str, SiteSettings]:
        parts = [(name, path, part) for name, site in sites.items() for path, part in site.fabrics.items()]
        places = Counter(path for _, path, _ in parts)
        units = Counter((path, unit) for _, path, part in parts for unit in part.units)
        for name, path, part in parts:
            if places[path] > 1 and not part.units:
                raise ValueError(f"{path} is at several sites; give `units` at each, also at {name}")
        if doubled := next((key for key, count in units.items() if count > 1), None):
            raise ValueError(f"unit {doubled[1]} of {doubled[0]} is listed twice; a unit is at one site")
        return sites

    def virtual_host(self, site: str) -> str:
        return f"{self.broker.vhost}.{site}"

    def user(self, name: str) -> str:
        """The broker's user of a site, or of the coordinator."""
        return f"{self.broker.vhost}.{name}"

    def site(self, name: str) -> SiteSettings:
        """A site by name; FleetError if there is none."""
        found = next((site for key, site in self.sites.items() if key == name), None)
        if found is None:
            raise FleetError(Problem(f"no site {name!r} in {FILE}", f"use one of {', '.join(self.sites)}"))
        return found


def verifiers(keys: PublicKeys) -> tuple[Ed25519PublicKey, ...]:
    return tuple(Ed25519PublicKey.from_public_bytes(base64.b64decode(key)) for key in keys)


def load(folder: Path) -> FleetSettings:
    """Read fleet.yaml in a folder; FleetError lists every problem."""
    try:
        found = document.read(folder / FILE)
    except IntentError as error:
        if not (folder / FILE).exists():
            what = "does not exist"
            raise FleetError(Problem(what, "begin with `netkit fleet init`", file=str(folder / FILE))) from None
        raise FleetError(error.problems) from None
    return parsed(found)


def parsed(found: document.Document) -> FleetSettings:
    """Validate the content of the file; FleetError lists every problem."""
    if not isinstance(found.value, dict):
        raise FleetError(Problem("holds no settings", "write `key: value` lines", file=found.file, line=1))
    problems = list(found.problems)
    try:
        settings = FleetSettings.model_validate(found.value)
    except ValidationError as error:
        problems += _problems(error, found)
    if problems:
        raise FleetError(sorted(problems, key=lambda problem: problem.line))
    return settings


MODELS: dict[tuple[str, ...], type[AccessModel]] = {
    (): FleetSettings,
    ("broker",): BrokerSettings,
    ("broker", "password"): SecretSource,
    ("repository",): RepositorySettings,
    ("coordinator",): CoordinatorSettings,
    ("sites", "*"): SiteSettings,
    ("sites", "*", "fabrics", "*"): SiteFabric,
}
"""Path → model there; `*` is any name."""


def _model_at(path: tuple[Any, ...]) -> type[AccessModel] | None:
    generic = tuple("*" if at in {1, 3} and path[0] == "sites" else str(part) for at, part in enumerate(path))
    return MODELS.get(generic)


def _problems(error: ValidationError, found: document.Document) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        problem = _unknown(detail) or _missing(detail) or _plain_secret(detail) or complaint.problem(detail)
        heads = (problem.path[:length] for length in range(len(problem.path), -1, -1))
        line = next((found.lines[head] for head in heads if head in found.lines), 1)
        yield Problem(problem.message, problem.remedy, problem.path, found.file, line)


def _unknown(detail: ErrorDetails) -> Problem | None:
    path = tuple(detail["loc"])
    model = _model_at(path[:-1]) if detail["type"] == "extra_forbidden" else None
    if model is None:
        return None
    known = ", ".join(sorted(model.model_fields))
    return Problem(f"unknown key {complaint.shown(str(path[-1]))}", f"known keys here: {known}", path)


def _missing(detail: ErrorDetails) -> Problem | None:
    path = tuple(detail["loc"])
    model = _model_at(path[:-1]) if detail["type"] == "missing" else None
    if model is None:
        return None
    meaning = model.model_fields[str(path[-1])].description
    return Problem("is missing", f"add {path[-1]} ({meaning})", path)


def _plain_secret(detail: ErrorDetails) -> Problem | None:
    """The problem of a secret written into the file, without repeating it."""
    if detail["loc"][-1:] != ("password",) or detail["type"] == "value_error":
        return None
    remedy = "name its source: {env: NAME}, {command: WORDS} or {keyring: SERVICE}"
    return Problem("must not be written into this file", remedy, tuple(detail["loc"]))
