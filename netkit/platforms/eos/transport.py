"""eAPI over HTTPS to a switch whose certificate is pinned, or verified by the authorities; never taken as it comes."""

import contextlib
import errno
import hashlib
import hmac
import http.client
import logging
import socket
import ssl
from typing import Any

from pyeapi.eapilib import EapiConnection

from netkit.errors import AccessError, Problem

PORT, PATH = 443, "/command-api"

logging.getLogger("pyeapi.eapilib").setLevel(logging.CRITICAL + 1)  # it logs tracebacks, and whole requests


class PinnedLine(http.client.HTTPSConnection):
    """One HTTPS connection that looks at the certificate before anything is sent."""

    def __init__(self, device: str, host: str, port: int, timeout_s: float, certificate: str) -> None:
        self._tls = _context(certificate)
        super().__init__(host, port, timeout=timeout_s, context=self._tls)
        self._device, self._certificate = device, certificate.lower()
        self._is_hung_up = False

    def connect(self) -> None:
        """Connect; AccessError when the certificate is not the trusted one, OSError when it was hung up meanwhile."""
        try:
            self._agree()
        except ssl.SSLCertVerificationError as error:
            what = f"{self._device}: its certificate is not to be trusted: {error.verify_message}"
            raise AccessError(Problem(what, "run netkit trust, or give it one by a known authority")) from None
        except OSError:
            self._heed()
            raise
        shown = self.sock.getpeercert(binary_form=True) or b""
        if self._certificate and not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), self._certificate):
            self.close()
            what = f"{self._device}: its certificate is not the trusted one"
            raise AccessError(
                Problem(what, "somebody may be listening in: find out why it changed, then run netkit trust")
            )
        self._heed()

    def _agree(self) -> None:
        """Connect and agree on TLS, by the socket that hang_up knows from the first byte on."""
        http.client.HTTPConnection.connect(self)
        line = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = line
        self._heed()
        line.do_handshake()

    def _heed(self) -> None:
        if self._is_hung_up:
            self.close()
            raise ConnectionAbortedError(errno.ECONNABORTED, "it was hung up") from None

    def hang_up(self) -> None:
        """End an answer that another thread waits for, or is about to wait for."""
        self._is_hung_up = True  # before the socket, which may not be there yet
        line = self.sock
        if line is not None:
            with contextlib.suppress(OSError, ValueError):
                socket.socket.shutdown(line, socket.SHUT_RDWR)  # of TLS nothing is told: another thread is at it


def _context(certificate: str) -> ssl.SSLContext:
    if not certificate:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the authorities, which take 15 ms to read
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class PinnedEapi(EapiConnection):  # type: ignore[misc]
    """pyeapi's connection over such a line. NAPALM hands it the optional arguments it names."""

    def __init__(
        self,
        host: str,
        port: int | None = None,
        path: str | None = None,
        username: str = "",
        password: str = "",
        timeout: float = 60,
        certificate: str = "",
        device: str = "",
        **_: Any,
    ) -> None:
        super().__init__()
        self.path = path or PATH
        self.transport = PinnedLine(device or host, host, int(port or PORT), float(timeout), certificate)
        self.authentication(username, password)
