"""Closing a connection to a switch while it is being set up does not wait for the answer."""

import contextlib
import hashlib
import socket
import ssl
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from netkit.platforms.eos.transport import PinnedLine
from tests.notify.certificate import made

PATIENCE_S = 10.0
TIMEOUT_S = 60.0


def refused(line: PinnedLine, connecting: Future[None]) -> None:
    with pytest.raises(ConnectionAbortedError):
        connecting.result(PATIENCE_S)
    assert line.sock is None


def test_closing_during_a_stalled_tls_handshake_ends_it_at_once() -> None:
    with ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as server:
        line = PinnedLine("leaf01", "127.0.0.1", server.getsockname()[1], TIMEOUT_S, "00" * 32)
        connecting = pool.submit(line.connect)
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(1)  # TLS has begun
            line.hang_up()
            refused(line, connecting)


def test_closing_before_the_connection_is_up_ends_it(tmp_path: Path) -> None:
    certificate, key = made(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    pinned = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii"))).hexdigest()
    with ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as server:
        line = PinnedLine("leaf01", "127.0.0.1", server.getsockname()[1], TIMEOUT_S, pinned)
        connecting = pool.submit(line.connect)
        accepted, _ = server.accept()
        line.hang_up()
        accepted.settimeout(PATIENCE_S)
        with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True) as far:
            far.recv(1)
        refused(line, connecting)
