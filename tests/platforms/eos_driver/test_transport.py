"""The line to a switch: who hangs up while it is being connected does not wait for the answer."""

import contextlib
import hashlib
import socket
import ssl
import threading
from pathlib import Path

from netkit.platforms.eos.transport import PinnedLine
from tests.notify.certificate import made


def test_hanging_up_before_the_line_stands_ends_it(tmp_path: Path) -> None:
    certificate, key = made(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    pinned = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii"))).hexdigest()
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = PinnedLine("leaf01", "127.0.0.1", server.getsockname()[1], 20.0, pinned)
        failures: list[Exception] = []

        def connect() -> None:
            try:
                line.connect()
            except OSError as error:
                failures.append(error)

        connecting = threading.Thread(target=connect)
        connecting.start()
        accepted, _ = server.accept()
        line.hang_up()
        accepted.settimeout(5)
        with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True) as far:
            far.recv(1)
        connecting.join(20)
    assert [type(one) for one in failures] == [ConnectionAbortedError]
    assert line.sock is None
