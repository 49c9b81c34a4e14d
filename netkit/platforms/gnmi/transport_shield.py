"""The certificate a gNMI server shows, looked at before anything is sent; gRPC then takes no other one."""

import hashlib
import hmac
import importlib
import socket
import ssl
from dataclasses import dataclass
from typing import Any

from netkit.platforms.gnmi.credential import Place


class UntrustedError(Exception):
    """The server does not show what it is trusted by; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is trusted: a certificate, and the name in it that gRPC compares."""

    certificate: bytes
    name: str


def shown(place: Place) -> Shown:
    """Return the pinned certificate as the server shows it. UntrustedError for another, OSError when none comes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])  # some servers hang up on those who do not speak it
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # its fingerprint is compared instead
    with (
        socket.create_connection((place.host, place.port), place.patience_s) as line,
        context.wrap_socket(line) as shielded,
    ):
        found = shielded.getpeercert(binary_form=True) or b""
    if not place.certificate:
        raise UntrustedError("its certificate is not trusted yet")
    if not hmac.compare_digest(hashlib.sha256(found).hexdigest(), place.certificate.lower()):
        raise UntrustedError("its certificate is not the trusted one")
    return Shown(ssl.DER_cert_to_PEM_cert(found).encode("ascii"), _name(found))


def _name(certificate: bytes) -> str:
    """Return a name the certificate is made out to; gRPC takes none without."""
    x509: Any = importlib.import_module("cryptography.x509")
    found = x509.load_der_x509_certificate(certificate)
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return str(next(iter([*names.get_values_for_type(x509.DNSName), *names.get_values_for_type(x509.IPAddress)])))
    except (x509.ExtensionNotFound, StopIteration):
        common = found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return str(common[0].value) if common else ""
