"""Management access to a node: its SSH server, its HTTPS server, and the socket for commands typed on it.

Each command arrives in frames, and the personality answers it. The login shell of sshd enters the node's network. HTTPS
serves eAPI or NVUE's REST API, on the node's loopback address and with the lab's password.
"""

import base64
import hashlib
import hmac
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath

from netkit.lab.live import LiveNode
from netkit.lab.namespace_holder import ACCOUNTS, OWN, TOOLS
from netkit.lab.personality import Personality
from netkit.private import without_secrets

HEAD_BYTES = 5
LONGEST_BYTES = 64 << 20
LONGEST_BODY = 64 << 20
IDLE_S = 60.0
TLS_CERTIFICATE, TLS_KEY = "https.pem", "https.key"
Gate = Callable[[str], float]
"""Node → seconds to delay its answer; raises ConnectionError if it must not answer."""
SSH_KEY = "key"
LOGIN = f"""#!/bin/sh
# sshd runs in the machine's network, where the node's loopback address is; a session runs in the node's.
export PATH={TOOLS} ENV={OWN}/profile HISTFILE= LC_ALL=C.UTF-8
[ ! -e {OWN}/welcome ] || . {OWN}/welcome
exec nsenter --net={OWN}/net -- /bin/sh "$@"
"""
SUDO = """#!/bin/sh
# Every account of a node is root already.
while [ $# -gt 0 ]; do
  case "$1" in
    -u | -g | -p | -C | -h) shift 2 ;;
    -n | -E | -H | -S | -k | -i | -b) shift ;;
    --) shift; break ;;
    -*) shift ;;
    *=*) export "$1"; shift ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || exec /bin/sh
exec "$@"
"""
DF = """#!/bin/sh
# A node has its own file systems only where it writes: the rest of its tree is the machine's, whose usage does not
# concern the node. Folders there are replaced by /etc.
own= any= takes=
while read -r source place _; do
  case "$source $place" in
    "lab /sys"*) ;;
    "lab "* | "disk "*) [ ! -d "$place" ] || own="$own $place" ;;
  esac
done </proc/self/mounts
for word do
  shift
  if [ -n "$takes" ]; then
    takes=
  else
    case "$word" in
      -B | -t | -x | --block-size | --type | --exclude-type) takes=1 ;;
      -*) ;;
      *)
        any=1
        case "$word" in /*) ;; *) word="$PWD/$word" ;; esac
        found=/etc
        for place in $own; do
          case "$word" in "$place" | "$place"/*) found=$word ;; esac
        done
        word=$found
        ;;
    esac
  fi
  set -- "$@" "$word"
done
[ -n "$any" ] || set -- "$@" $own
exec /bin/df "$@"
"""


class HungUpError(Exception):
    """The peer closed the connection."""


def send(line: socket.socket, kind: str, text: str) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    try:
        line.sendall(kind.encode() + len(raw).to_bytes(4, "big") + raw)
    except OSError:
        raise HungUpError from None


def receive(line: socket.socket) -> tuple[str, str]:
    """Receive one frame: its kind and its text."""
    head = _exactly(line, HEAD_BYTES)
    size = int.from_bytes(head[1:], "big")
    if size > LONGEST_BYTES:
        raise HungUpError
    return head[:1].decode("latin-1"), _exactly(line, size).decode("utf-8", "surrogateescape")


def _exactly(line: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        try:
            part = line.recv(size - len(found))
        except OSError:
            raise HungUpError from None
        if not part:
            raise HungUpError
        found += part
    return bytes(found)


class WireCall:
    """A command received over a socket; `root` is the node's file system as this process sees it."""

    def __init__(self, line: socket.socket, root: Path) -> None:
        kind, text = receive(line)
        words = text.split("\0")
        if kind != "C" or len(words) < 3:
            raise HungUpError
        self.folder, self.user, self.program, *arguments = words
        self.arguments = tuple(arguments)
        self.line = line
        self._root = root

    def out(self, text: str) -> None:
        send(self.line, "O", text)

    def err(self, text: str) -> None:
        """Print to standard error."""
        send(self.line, "E", text)

    def ask(self, prompt: str) -> str:
        """Print a prompt and return the line typed."""
        send(self.line, "L", prompt)
        return receive(self.line)[1].removesuffix("\n")

    def stdin(self) -> str:
        """All of standard input."""
        send(self.line, "A", "")
        return receive(self.line)[1]

    def file(self, path: str) -> Path:
        """The path on this side of a file named on the node."""
        return self._root / str(PurePosixPath(self.folder) / path).lstrip("/")

    def end(self, exit_code: int) -> None:
        send(self.line, "X", str(exit_code))


SOCKET = "run/netkit/node.sock"
Answer = Callable[[LiveNode, Personality, WireCall], int]


def serve_commands(node: LiveNode, personality: Personality, answer: Answer) -> None:
    """Answer commands on a node's socket in background threads."""
    path = node.holder.root / SOCKET
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(128)

    def answer_one(line: socket.socket) -> None:
        with line, suppress(HungUpError):
            call = WireCall(line, Path(node.holder.root))
            call.end(answer(node, personality, call))

    def accept() -> None:
        while True:
            line, _ = listener.accept()
            threading.Thread(target=answer_one, args=(line,), daemon=True).start()

    threading.Thread(target=accept, name=f"commands-{node.name}", daemon=True).start()


def make_certificate(node: LiveNode) -> str:
    """Create the node's certificate in its flash at the first boot; return its SHA-256 fingerprint."""
    certificate, key = node.saved / TLS_CERTIFICATE, node.saved / TLS_KEY
    if not certificate.exists():
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-keyout", str(key), "-out", str(certificate), "-days", "3650", "-subj", f"/CN={node.name}"]
        command += ["-addext", f"subjectAltName=IP:{node.spec.address},DNS:{node.name}"]
        subprocess.run(command, env=without_secrets(), check=True, capture_output=True)  # noqa: S603
    body = "".join(certificate.read_text(encoding="ascii").splitlines()[1:-1])
    return hashlib.sha256(base64.b64decode(body)).hexdigest()


Cut = Callable[[LiveNode, int], bool]
"""Node, and its number of changes before a request → whether a fault cuts the answer off."""


def serve_https(node: LiveNode, personality: Personality, port: int, password: str, gate: Gate, cut: Cut) -> None:
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
    context.load_cert_chain(node.saved / TLS_CERTIFICATE, node.saved / TLS_KEY)
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
    """The user of a basic authorization if the password is right, else an empty string."""
    try:
        user, _, given = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
    except ValueError:
        return ""
    return user if user in ACCOUNTS and hmac.compare_digest(given.encode(), password.encode()) else ""


def password_file(folder: Path) -> Path:
    return folder / "password"


def make_key(folder: Path) -> None:
    """Create the key pair that opens every node of a lab."""
    if not (folder / SSH_KEY).exists():
        command = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-C", "netkit-lab", "-f", str(folder / SSH_KEY)]
        subprocess.run(command, env=without_secrets(), check=True, stdin=subprocess.DEVNULL)  # noqa: S603


def furnish(root: Path, *, public_key: str, prompt: str, programs: Sequence[str], client: str) -> None:
    """Install login shell, prompt, tools and keys in a node."""
    own = root / OWN.lstrip("/")
    _script(own / "login", LOGIN)
    _script(own / "bin" / "sudo", SUDO)
    _script(own / "bin" / "df", DF)
    (own / "profile").write_text(f"PS1='{prompt}'\ncd\n", encoding="utf-8")
    (own / "authorized_keys").write_text(public_key, encoding="utf-8")
    _script(own / "bin" / ".client", client)
    for program in (*programs, ".refresh"):
        link = own / "bin" / program
        link.unlink(missing_ok=True)
        link.symlink_to(".client")


def host_key(root: Path, seed: Path) -> str:
    """Install the host key kept in a node's flash, created at its first boot; return the public key."""
    key = seed / "ssh_host_key"
    if not key.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)]
        subprocess.run(command, env=without_secrets(), check=True, stdin=subprocess.DEVNULL)  # noqa: S603
    for suffix in ("", ".pub"):
        target = root / f"etc/ssh/ssh_host_ed25519_key{suffix}"
        target.write_bytes(key.with_name(key.name + suffix).read_bytes())
        target.chmod(0o600)
    return key.with_name("ssh_host_key.pub").read_text(encoding="utf-8").strip()


# For logins at a hundred nodes at once: sshd's default key exchange takes a third of the time of each.
KEY_EXCHANGES = "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group16-sha512"


def sshd_config(address: str, port: int) -> str:
    return f"""ListenAddress {address}
Port {port}
KexAlgorithms {KEY_EXCHANGES}
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile {OWN}/authorized_keys
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserEnvironment no
StrictModes no
PrintMotd no
PrintLastLog no
UseDNS no
MaxStartups 200
MaxSessions 50
LoginGraceTime 60
AllowTcpForwarding no
X11Forwarding no
Subsystem sftp /usr/lib/openssh/sftp-server
"""


def _script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
