"""access.yaml, beside fabric.yaml: how the devices of this fabric are reached. Optional, and without secrets."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from netkit.errors import AccessError, IntentError, Problem
from netkit.intent import complaint, document
from netkit.intent.scalars import OneOf
from netkit.platforms.gnmi.message import Shield, parse_query
from netkit.platforms.registry import ACCESS
from netkit.platforms.snmp import AuthProtocol, PrivProtocol

Transport = Literal["ssh", "eapi", "nvue-rest"]


@dataclass(frozen=True, slots=True)
class GnmiEndpoint:
    """The gNMI server of a device; port 0 if it has none."""

    port: int = 0
    certificate: str = ""
    """The pinned SHA-256 fingerprint."""
    is_wanted: bool = False
    """access.yaml configures it, so its certificate has to be trusted."""
    password: str = field(default="", repr=False)
    """The password, if it differs from that of the device."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Everything needed to connect to a device. Its repr does not contain the password."""

    device: str
    platform: str
    """The name of the platform; `linux` for hosts."""
    host: str
    port: int
    user: str
    transport: str = "ssh"
    password: str = ""
    key_file: Path | None = None
    known_hosts: Path | None = None
    ssh_config: Path | None = None
    certificate: str = ""
    """The pinned SHA-256 fingerprint for HTTPS; empty: verified by the system's CAs."""
    timeout_s: float = 30.0
    snmp_port: int = 161
    gnmi: GnmiEndpoint = GnmiEndpoint()

    def __repr__(self) -> str:
        return f"Endpoint({self.device}, {self.transport}://{self.user}@{self.host}:{self.port})"


FILE = "access.yaml"
SOURCES = {("password",), ("secrets",), ("community",), ("auth",), ("priv",), ("token",)}
FactSource = Literal["native", "snmp", "napalm", "gnmi"]
PlatformName = Annotated[str, OneOf(ACCESS)]


class AccessModel(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, defer_build=True)


class SecretSource(AccessModel):
    """The source of a secret: exactly one of these."""

    env: str | None = Field(None, min_length=1, description="name of an environment variable")
    command: str | None = Field(None, min_length=1, description="a command that prints it; {name} is its name")
    keyring: str | None = Field(None, min_length=1, description="a service of the keyring")

    @model_validator(mode="after")
    def _one(self) -> "SecretSource":
        if sum(bool(value) for value in (self.env, self.command, self.keyring)) != 1:
            raise ValueError("must name exactly one source: env, command or keyring")
        return self


class SnmpAccess(AccessModel):
    """The login at SNMP agents; by default the user of the intent's services.snmp."""

    port: int = Field(161, ge=1, le=65535, description="port of the agents")
    community: SecretSource | None = Field(
        None, description="version 2c: source of the community, which is sent in clear text"
    )
    user: str | None = Field(None, min_length=1, description="version 3: the user")
    auth: SecretSource | None = Field(None, description="source of the authentication secret")
    auth_protocol: AuthProtocol = Field("sha1", description="authentication protocol")
    priv: SecretSource | None = Field(None, description="source of the privacy secret")
    priv_protocol: PrivProtocol = Field("aes128", description="privacy protocol")

    @model_validator(mode="after")
    def _of_one_version(self) -> "SnmpAccess":
        if self.community and self.user:
            raise ValueError("names a community and a user; use one of them")
        if not self.user and (self.auth or self.priv):
            raise ValueError("has secrets but no user")
        if self.priv and not self.auth:
            raise ValueError("priv needs auth too")
        return self


class GnmiAccess(AccessModel):
    """The login at gNMI servers; by default the platform's account."""

    port: int | None = Field(None, ge=1, le=65535, description="port of the servers; default: the platform's")
    shield: Shield = Field("pinned", description="pinned certificate, authorities, or none: unencrypted")
    user: str | None = Field(None, min_length=1, description="the account; default: the platform's")
    password: SecretSource | None = Field(None, description="source of its password; default: the platform's")
    paths: tuple[str, ...] = Field((), description="paths to stream in place of the platform's")

    @field_validator("paths")
    @classmethod
    def _can_be_asked(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        found = [parse_query(path) for path in paths]
        wrong = next((path for path, one in zip(paths, found, strict=True) if one is None), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is not a path; write /interfaces/interface[name=*]/state or DB:/TABLE")
        if len({one.target for one in found if one}) > 1:
            raise ValueError("names paths of several databases; a stream reads one")
        return paths


class Account(AccessModel):
    """The login; values that are missing here come from the level above."""

    user: str | None = Field(None, min_length=1, description="the account to log in with")
    key_file: str | None = Field(None, min_length=1, description="private SSH key; default: the SSH agent")
    password: SecretSource | None = Field(None, description="source of the password")
    timeout_s: float | None = Field(
        None,
        gt=0,
        le=3600,
        description="how long to wait for a connection, for each answer, and for each sign of life during a long "
        "command; a command that reads state gets a third of it",
    )
    facts: FactSource | None = Field(None, description="source of facts of switches; hosts are always native")
    snmp: SnmpAccess | None = Field(None, description="login at SNMP agents")
    gnmi: GnmiAccess | None = Field(None, description="login at gNMI servers")


class TruthAccess(AccessModel):
    """The source of truth that netkit truth compares with."""

    kind: Literal["nautobot", "netbox"] = Field(description="nautobot or netbox")
    url: str = Field(
        pattern=r"^https?://[^/@\s]+(/\S*)?$",
        description="https://…, without a password; http:// only to this machine",
    )
    token: SecretSource = Field(description="source of the API token")
    site: str = Field("", description="only this site (NetBox: its slug) or location (Nautobot); default: all")
    timeout_s: float = Field(30, gt=0, le=3600, description="how long to wait for one answer")

    @field_validator("url")
    @classmethod
    def _hides_the_token(cls, url: str) -> str:
        host = urlsplit(url).hostname or ""
        if url.startswith("http://") and not is_loopback(host):
            raise ValueError(f"would send the token to {host} in clear text; write https://")
        return url


class PlatformAccess(Account):
    """The login at devices of one platform."""

    transport: Transport | None = Field(None, description="the management protocol")
    port: int | None = Field(None, ge=1, le=65535, description="its port")
    napalm: str | None = Field(None, min_length=1, description="the NAPALM driver for facts: napalm; default: netkit's")


class AccessSettings(Account):
    """The whole file."""

    known_hosts: str | None = Field(None, min_length=1, description="file of trusted SSH host keys")
    ssh_config: str | None = Field(None, min_length=1, description="OpenSSH configuration, for jump hosts")
    platforms: dict[PlatformName, PlatformAccess] = Field({}, description="settings by platform")
    addresses: dict[str, str] = Field({}, description="device → address or name; else the intent's, or the DNS name")
    secrets: SecretSource | None = Field(None, description="source of @secret:NAME@, if NETKIT_SECRET_NAME is not set")

    truth: TruthAccess | None = Field(None, description="the source of truth")

    @field_validator("platforms")
    @classmethod
    def _speak_what_they_can(cls, platforms: dict[str, PlatformAccess]) -> dict[str, PlatformAccess]:
        for name, platform in platforms.items():
            if platform.transport and platform.transport not in ACCESS[name].ports:
                can = " or ".join(ACCESS[name].ports)
                raise ValueError(f"{name} does not support {platform.transport}; use {can}")
        return platforms

    def platform(self, name: str) -> PlatformAccess:
        """The account of a platform, with missing values taken from the whole file."""
        own = next((value for key, value in self.platforms.items() if key == name), PlatformAccess())
        common = {key: getattr(self, key) for key in Account.model_fields}
        given = {key: value for key, value in own if value is not None}
        return PlatformAccess.model_construct(**{**dict(PlatformAccess()), **common, **given})


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def load(folder: Path) -> AccessSettings:
    """Read access.yaml in a fabric folder; without it, defaults apply. AccessError lists every problem."""
    file = folder / FILE
    if not file.exists():
        return AccessSettings()
    try:
        found = document.read(file)
    except IntentError as error:
        raise AccessFileError(error.problems) from None
    if not isinstance(found.value, dict | None):
        raise AccessFileError(Problem("holds no settings", "write `key: value` lines", file=found.file, line=1))
    problems = list(found.problems)
    settings = AccessSettings()
    try:
        settings = AccessSettings.model_validate(found.value or {})
    except ValidationError as error:
        problems += _problems(error, found)
    if problems:
        raise AccessFileError(sorted(problems, key=lambda problem: problem.line))
    return settings


class AccessFileError(AccessError):
    """The file is invalid; devices are not at fault."""

    exit_code = 3


def _problems(error: ValidationError, found: document.Document) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        problem = _unknown(detail) or _plain_secret(detail) or complaint.problem(detail)
        heads = (problem.path[:length] for length in range(len(problem.path), -1, -1))
        line = next((found.lines[head] for head in heads if head in found.lines), 1)
        yield Problem(problem.message, problem.remedy, problem.path, found.file, line)


def _unknown(detail: ErrorDetails) -> Problem | None:
    """The problem of an unknown key, with the known ones."""
    if detail["type"] != "extra_forbidden":
        return None
    path = detail["loc"]
    parent = path[-2:-1]
    sections: dict[Any, type[AccessModel]] = {("snmp",): SnmpAccess, ("gnmi",): GnmiAccess, ("truth",): TruthAccess}
    model = SecretSource if parent in SOURCES else sections.get(parent, PlatformAccess) if parent else None
    known = ", ".join(sorted((model or AccessSettings).model_fields))
    return Problem(f"unknown key {complaint.shown(str(path[-1]))}", f"known keys here: {known}", tuple(path))


def _plain_secret(detail: ErrorDetails) -> Problem | None:
    """The problem of a secret written into the file, without repeating it."""
    if detail["loc"][-1:] not in SOURCES or detail["type"] == "value_error":
        return None
    remedy = "name its source: {env: NAME}, {command: WORDS} or {keyring: SERVICE}"
    return Problem("must not be written into this file", remedy, tuple(detail["loc"]))
