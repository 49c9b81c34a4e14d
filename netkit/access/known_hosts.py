"""Trust in devices: read their keys, compare them with the known ones, and store them on request."""

import hashlib
import os
import socket
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from netkit.access.certificates import file_beside, known_certificates, written
from netkit.access.settings import Endpoint
from netkit.errors import AccessError, Problem
from netkit.platforms.host_key import known_as, known_keys
from netkit.platforms.ssh import SshTarget, shown_key
from netkit.private import read_text


def shown_by(host: str, port: int, timeout_s: float) -> str:
    """The fingerprint of a server's certificate; OSError if it has none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the user decides whether to trust it
    with (
        socket.create_connection((host, port), timeout_s) as line,
        context.wrap_socket(line, server_hostname=host) as shielded,
    ):
        return hashlib.sha256(shielded.getpeercert(binary_form=True) or b"").hexdigest()


Status = Literal["known", "new", "changed"]
CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class FoundKey:
    """The key of a device, for a person to compare before it is trusted."""

    device: str
    host: str
    port: int
    kind: str
    """A key type such as `ssh-ed25519`, or `certificate`."""
    fingerprint: str
    status: Status
    line: str
    """The line in the file of known keys."""


def scan(endpoint: Endpoint) -> FoundKey:
    """Read the host key or certificate of a device without logging in. AccessError if it has none."""
    return _key(endpoint) if endpoint.transport == "ssh" else _certificate(endpoint)


def scan_gnmi(endpoint: Endpoint) -> FoundKey:
    """Read the certificate of a device's gNMI server."""
    return _certificate(replace(endpoint, port=endpoint.gnmi.port, certificate=endpoint.gnmi.certificate))


def _key(endpoint: Endpoint) -> FoundKey:
    host, port = endpoint.host, endpoint.port
    target = SshTarget(
        endpoint.device, host, endpoint.user, port, ssh_config=endpoint.ssh_config, timeout_s=endpoint.timeout_s
    )
    key: Any = shown_key(target)
    place = known_as(host, port)
    if endpoint.known_hosts is None:
        raise AccessError(Problem(f"{endpoint.device}: no file is configured for its key", "set known_hosts"))
    known = list(known_keys(endpoint.known_hosts, place))
    status: Status = "known" if key in known else "changed" if known else "new"
    line = f"{place} {key.get_name()} {key.get_base64()}"
    return FoundKey(endpoint.device, host, port, key.get_name(), key.fingerprint, status, line)


def _certificate(endpoint: Endpoint) -> FoundKey:
    host, port = endpoint.host, endpoint.port
    try:
        shown = shown_by(host, port, endpoint.timeout_s)
    except OSError as error:
        what = f"{endpoint.device}: no certificate at {host} port {port}: {error.strerror or error}"
        raise AccessError(Problem(what, "check the address, and that TLS is on")) from None
    known = endpoint.certificate
    status: Status = "known" if known == shown else "changed" if known else "new"
    return FoundKey(endpoint.device, host, port, CERTIFICATE, f"SHA256:{shown}", status, f"{host} {port} {shown}")


def remember(found: Iterable[FoundKey], known_hosts: Path, *, replace_changed: bool = False) -> None:
    """Trust the keys of devices. A changed one is only replaced on request, else AccessError."""
    new = [one for one in found if one.status != "known"]
    changed = [one for one in new if one.status == "changed"]
    if changed and not replace_changed:
        remedy = "this may be a man in the middle: find out why it changed before you replace it"
        raise AccessError(Problem(f"{one.device}: its {one.kind} is not the trusted one", remedy) for one in changed)
    keys = [one for one in new if one.kind != CERTIFICATE]
    if keys:
        _write(known_hosts, _with_keys(_read(known_hosts), keys))
    shown = {(one.host, one.port): one.line.split()[2] for one in new if one.kind == CERTIFICATE}
    if shown:
        known = known_certificates(known_hosts)
        _write(file_beside(known_hosts), written({**known, **shown}))


def _with_keys(text: str, keys: Iterable[FoundKey]) -> str:
    """A known_hosts with the entries of some hosts replaced."""
    lines = {known_as(one.host, one.port): one.line for one in keys}
    kept = [without for line in text.splitlines() if (without := _without(line, frozenset(lines)))]
    return "".join(f"{line}\n" for line in [*kept, *lines.values()])


def _without(line: str, places: frozenset[str]) -> str:
    """Remove hosts from a line; empty if none is left."""
    names, space, rest = line.partition(" ")
    if line.startswith(("#", "@", "|")):
        return line
    kept = [name for name in names.split(",") if name not in places]
    return f"{','.join(kept)}{space}{rest}" if kept else ""


def _read(file: Path) -> str:
    try:
        return read_text(file)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(Problem(f"{file} cannot be read: {error}", "repair it, or remove it")) from None


def _write(file: Path, text: str) -> None:
    """Replace a file atomically."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(draft).chmod(0o644)  # public keys
        Path(draft).replace(file)
    except OSError as error:
        raise AccessError(Problem(f"{file} cannot be written: {error.strerror}", "check its folder")) from None
