"""Everything that a fleet needs, written once: keys, certificates, users of RabbitMQ, settings and systemd units.

The folder is that of the coordinator. `broker/` and `sites/NAME/` are copied to the other machines; `authority/` signs
certificates of further sites, and is best kept elsewhere until there are some.
"""

import datetime
import ipaddress
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from netkit import private
from netkit.errors import Problem
from netkit.fleet import rabbitmq, settings
from netkit.fleet.settings import COORDINATOR, FILE, FleetError, FleetSettings
from netkit.fleet.signing import SIGNING_KEY, private_pem, public_text
from netkit.intent import document

YEARS = 10
BACKDATED = datetime.timedelta(hours=1)
"""So that a machine with a slow clock accepts a new certificate."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes


def new_authority(name: str) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    builder = _builder(subject, subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(is_authority=True), critical=True)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(authority: Pair, name: str, host: str = "") -> Pair:
    """Issue a certificate: of a server for a host, or of a client if there is none."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError("the key of the authority is of another kind")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name(name), issuer.subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(is_authority=False), critical=True)
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if host else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    if host:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
    return _pair(builder.sign(signer, hashes.SHA256()), key)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    encoding = serialization.Encoding.PEM
    return Pair(certificate.public_bytes(encoding), key.private_bytes(encoding, pem, plain))


BROKER_FOLDER = PurePosixPath("/etc/rabbitmq/netkit")
SITE_FOLDER = PurePosixPath("/etc/netkit/fleet")
AUTHORITY = Path("authority")
BROKER = Path("broker")
SITES = Path("sites")
PASSWORD = "NETKIT_SECRET_BROKER"  # noqa: S105 (the name of a variable)
Sites = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Name → folder of each fabric in the repository → units; empty: all."""


@dataclass(frozen=True, slots=True)
class NewFleet:
    """What a user wants."""

    host: str
    repository: str
    sites: Sites
    branches: tuple[str, ...] = ("main",)
    port: int = 5671
    listener: str = ""
    """Where the broker listens, if not everywhere."""


@dataclass(slots=True)
class Installation:
    """What was written, and what to do with it."""

    files: list[Path] = field(default_factory=list)
    to_add: str = ""
    """Lines for fleet.yaml that could not be added; empty if it is complete."""


def begin(folder: Path, wanted: NewFleet) -> Installation:
    """Write a new fleet; FleetError if something is there."""
    if (folder / FILE).exists():
        raise FleetError(Problem("exists", "name another folder, or only new sites", file=str(folder / FILE)))
    keys = {name: Ed25519PrivateKey.generate() for name in (COORDINATOR, *wanted.sites)}
    text = _settings_text(wanted, keys)
    found = settings.parsed(document.parse(text, FILE))
    authority = new_authority("netkit fleet")
    passwords = {name: secrets.token_urlsafe(32) for name in keys}
    files: dict[Path, bytes] = {
        AUTHORITY / "ca.pem": authority.certificate,
        AUTHORITY / "ca.key": authority.key,
        **_broker_files(found, authority, passwords, wanted),
        **_machine_files(Path(), authority, found.user(COORDINATOR), keys[COORDINATOR], passwords[COORDINATOR]),
    }
    for site in wanted.sites:
        files |= _site_files(site, authority, found, keys[site], passwords[site], text)
    return _write(folder, {**files, Path(FILE): text.encode()})


def add(folder: Path, sites: Sites) -> Installation:
    """Add sites to a fleet that `begin` wrote; FleetError if one is known."""
    found = settings.load(folder)
    if known := sorted({*sites} & {*found.sites}):
        raise FleetError(Problem(f"the site {known[0]} exists", "remove it first, or use another name", file=FILE))
    authority = _authority(folder)
    keys = {name: Ed25519PrivateKey.generate() for name in sites}
    passwords = {name: secrets.token_urlsafe(32) for name in sites}
    before = (folder / FILE).read_text(encoding="utf-8")
    lines = "".join(_site_text(name, fabrics, keys[name]) for name, fabrics in sites.items())
    after = before.rstrip("\n") + "\n" + lines
    # The whole file is validated first, with the sites in it, wherever the user has put them.
    whole = found.model_dump(mode="json", exclude_defaults=True)
    whole["sites"] |= _as_values(sites, keys)
    expected = settings.parsed(document.parse(_yaml(whole), FILE))
    files: dict[Path, bytes] = {}
    for name in sites:
        files |= _site_files(name, authority, expected, keys[name], passwords[name], _yaml(whole))
        part = rabbitmq.definitions(expected, (name,), {name: passwords[name]})
        files[BROKER / f"definitions-{name}.json"] = _json(part)
    written = _write(folder, files)
    try:
        is_appended = settings.parsed(document.parse(after, FILE)) == expected
    except Exception:
        is_appended = False
    if not is_appended:
        written.to_add = lines
        return written
    (folder / FILE).write_text(after, encoding="utf-8")
    written.files.append(folder / FILE)
    return written


def _authority(folder: Path) -> Pair:
    try:
        return Pair((folder / AUTHORITY / "ca.pem").read_bytes(), (folder / AUTHORITY / "ca.key").read_bytes())
    except OSError as error:
        what, remedy = "cannot be read, and signs the certificates of sites", "restore it while this command runs"
        raise FleetError(Problem(what, remedy, file=str(error.filename))) from None


def _broker_files(
    found: FleetSettings, authority: Pair, passwords: Mapping[str, str], wanted: NewFleet
) -> dict[Path, bytes]:
    server = issue(authority, found.broker.host, found.broker.host)
    listener = wanted.listener or str(wanted.port)
    return {
        BROKER / "ca.pem": authority.certificate,
        BROKER / "server.pem": server.certificate,
        BROKER / "server.key": server.key,
        BROKER / "rabbitmq.conf": rabbitmq.configuration(BROKER_FOLDER, listener).encode(),
        BROKER / "definitions.json": _json(rabbitmq.definitions(found, found.sites, passwords)),
    }


def _machine_files(
    folder: Path, authority: Pair, user: str, key: Ed25519PrivateKey, password: str
) -> dict[Path, bytes]:
    client = issue(authority, user)
    return {
        folder / "ca.pem": authority.certificate,
        folder / "client.pem": client.certificate,
        folder / "client.key": client.key,
        folder / SIGNING_KEY: private_pem(key),
        folder / "environment": f"{PASSWORD}={password}\n".encode(),
    }


def _site_files(
    site: str, authority: Pair, found: FleetSettings, key: Ed25519PrivateKey, password: str, text: str
) -> dict[Path, bytes]:
    folder = SITES / site
    return {
        **_machine_files(folder, authority, found.user(site), key, password),
        folder / FILE: text.encode(),
        folder / "netkit-worker.service": _unit(site).encode(),
    }


def _unit(site: str) -> str:
    return f"""\
[Unit]
Description=netkit worker of the site {site}
Wants=network-online.target
After=network-online.target

[Service]
User=netkit
Environment=NETKIT_STATE_DIR=/var/lib/netkit-worker/state
EnvironmentFile={SITE_FOLDER}/environment
EnvironmentFile=-/etc/netkit/environment
StateDirectory=netkit-worker
StateDirectoryMode=0700
ExecStart=/usr/bin/env netkit worker --site {site} --fleet {SITE_FOLDER} --state /var/lib/netkit-worker
Restart=always
RestartSec=5
# A run that changes devices ends at the next safe place, in its own process.
KillMode=mixed
TimeoutStopSec=960
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict

[Install]
WantedBy=multi-user.target
"""


def _settings_text(wanted: NewFleet, keys: Mapping[str, Ed25519PrivateKey]) -> str:
    port = {} if wanted.port == settings.BrokerSettings.model_fields["port"].default else {"port": wanted.port}
    head = {
        "broker": {"host": wanted.host, **port},
        "repository": {"url": wanted.repository, "branches": list(wanted.branches)},
        "coordinator": {"keys": [public_text(keys[COORDINATOR])]},
    }
    sites = "".join(_site_text(name, fabrics, keys[name]) for name, fabrics in wanted.sites.items())
    return f"# The sites of this fleet, and the broker between them; see docs/fleet.md.\n{_yaml(head)}sites:\n{sites}"


def _site_text(name: str, fabrics: Mapping[str, Iterable[int]], key: Ed25519PrivateKey) -> str:
    return "".join(f"  {line}\n" for line in _yaml(_as_values({name: fabrics}, {name: key})).splitlines())


def _as_values(
    sites: Mapping[str, Mapping[str, Iterable[int]]], keys: Mapping[str, Ed25519PrivateKey]
) -> dict[str, object]:
    return {
        name: {
            "keys": [public_text(keys[name])],
            "fabrics": {path: {"units": list(units)} if units else {} for path, units in fabrics.items()},
        }
        for name, fabrics in sites.items()
    }


def _yaml(value: object) -> str:
    return str(yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=120))


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _write(folder: Path, files: Mapping[Path, bytes]) -> Installation:
    """Write private files; FleetError if one of them exists, before any is written."""
    for name in files:
        if (folder / name).exists() or (folder / name).is_symlink():
            raise FleetError(Problem("exists, and is not overwritten", "move it away first", file=str(folder / name)))
    written = Installation()
    for name, content in files.items():
        file = folder / name
        try:
            private.make_folder(file.parent)
            with os.fdopen(private.open_file(file, os.O_WRONLY | os.O_EXCL), "wb") as stream:
                stream.write(content)
        except OSError as error:
            what = f"cannot be written: {(error.strerror or str(error)).lower()}"
            raise FleetError(Problem(what, "make room or check permissions", file=str(file))) from None
        written.files.append(file)
    return written
