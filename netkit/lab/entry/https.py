"""The HTTPS server of a node, for eAPI or NVUE's REST API, on its loopback address and with the lab's password."""

import base64
import hashlib
import hmac
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from netkit.lab.live import LiveNode
from netkit.lab.personality import Personality
from netkit.lab.system.namespace_holder import ACCOUNTS
from netkit.private import without_secrets

LONGEST_BODY = 64 << 20
IDLE_S = 60.0
CERTIFICATE, KEY = "https.pem", "https.key"
Gate = Callable[[str], float]
"""Node → seconds to delay its answer; raises ConnectionError if it must not answer."""


def make_certificate(node: LiveNode) -> str:
    """Create the node's certificate in its flash at the first boot; return its SHA-256 fingerprint."""
    certificate, key = node.saved / CERTIFICATE, node.saved / KEY
    if not certificate.exists():
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-keyout", str(key), "-out", str(certificate), "-days", "3650", "-subj", f"/CN={node.name}"]
        command += ["-addext", f"subjectAltName=IP:{node.spec.address},DNS:{node.name}"]
        subprocess.run(command, env=without_secrets(), check=True, capture_output=True)  # noqa: S603
    body = "".join(certificate.read_text(encoding="ascii").splitlines()[1:-1])
    return hashlib.sha256(base64.b64decode(body)).hexdigest()


Cut = Callable[[LiveNode, int], bool]
"""Node, and its number of changes before a request → whether a fault cuts the answer off."""


def serve(node: LiveNode, personality: Personality, port: int, password: str, gate: Gate, cut: Cut) -> None:
    """Answer HTTPS requests in background threads."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = IDLE_S

        def _answer(self) -> None:
            try:
                time.sleep(gate(node.name))
            except ConnectionError:
                self.close_connection = True
                return
            user = _user(self.headers.get("Authorization", ""), password)
            body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), LONGEST_BODY))
            if not user:
                self._send(401, {"WWW-Authenticate": 'Basic realm="netkit lab"'}, b"")
                return
            before = node.changes
            with node.lock:
                answer = personality.https(self.command, self.path, dict(self.headers.items()), body, user)
            if cut(node, before):
                self.close_connection = True
                return
            self._send(*answer)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _answer  # noqa: N815

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            node.log(f"https: {format % args}")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(node.saved / CERTIFICATE, node.saved / KEY)
    server = HttpsServer((node.spec.address, port), Handler)
    server.context = context
    threading.Thread(target=server.serve_forever, name=f"https-{node.name}", daemon=True).start()


class HttpsServer(ThreadingHTTPServer):
    """One thread per connection; the TLS handshake happens in that thread, so that it blocks no other client."""

    daemon_threads = True
    request_queue_size = 64
    context: ssl.SSLContext

    def finish_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        """Do the TLS handshake, then answer."""
        request.settimeout(IDLE_S)
        try:
            with self.context.wrap_socket(request, server_side=True) as line:
                super().finish_request(line, client_address)
        except OSError:
            return


def _user(authorization: str, password: str) -> str:
    """Return the user of a basic authorization if the password is right, else an empty string."""
    try:
        user, _, given = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
    except ValueError:
        return ""
    return user if user in ACCOUNTS and hmac.compare_digest(given.encode(), password.encode()) else ""


def password_file(folder: Path) -> Path:
    return folder / "password"
