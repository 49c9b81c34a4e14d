"""One SSH connection to a device: each command runs in its own channel, with a deadline.

netmiko makes the connection, so that ssh_config, jump hosts, keys and the agent work as usual. Its interactive shell is
not used: output would have to be separated from prompts and echoes, and exit codes would be missing.

A device that is dead or hangs is noticed within seconds, even where a command may take minutes: the connection is kept
alive by requests that sshd has to answer, and a long command is accompanied by short ones.
"""

import contextlib
import logging
import os
import select
import shlex
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, NoReturn

import paramiko
from netmiko import log as netmiko_log
from netmiko.base_connection import BaseConnection
from paramiko.common import cMSG_GLOBAL_REQUEST
from paramiko.packet import NeedRekeyException
from paramiko.pkey import UnknownKeyType

from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms.host_key import KeptKey, KeyShownError, MissingKey, known_as, known_keys
from netkit.private import without_secrets

logging.getLogger("paramiko").addHandler(
    logging.NullHandler()
)  # without it, its threads print tracebacks to the terminal

MOST_OUTPUT_BYTES = 64 << 20
CHUNK_BYTES = 1 << 16
SLICE_S = 1.0
MOST_UNANSWERED = 3
"""Requests in a row without any answer, after which a connection is lost."""
QUESTION = ":"
"""A command that any device answers that can still start one."""
LONGEST_TITLE = 60
OnOutput = Callable[[bytes], float | None]
"""Called with each chunk of output; a number it returns is the new time limit in seconds for the rest."""
UNREACHABLE = "check the address, the port and the management network"


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where to connect and how to log in. Without a key file or a password: the agent, and the user's own keys."""

    device: str
    host: str
    user: str
    port: int = 22
    password: str = field(default="", repr=False)
    key_file: Path | None = None
    known_hosts: Path | None = None
    """The only file of host keys that is used; by default the user's own."""
    ssh_config: Path | None = None
    timeout_s: float = 30.0

    @classmethod
    def of(
        cls, hostname: str, username: str, password: str, timeout_s: float, optional: dict[str, Any] | None
    ) -> "SshTarget":
        """Build a target from the arguments of a NAPALM driver."""
        options = optional or {}

        def path(name: str) -> Path | None:
            return Path(options[name]).expanduser() if options.get(name) else None

        return cls(
            str(options.get("device") or hostname),
            hostname,
            username,
            port=int(options.get("port") or 22),
            password=password or "",
            key_file=path("key_file"),
            known_hosts=path("known_hosts"),
            ssh_config=path("ssh_config_file"),
            timeout_s=float(timeout_s),
        )


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both streams, stderr first."""
        return "\n".join(text.strip() for text in (self.stderr, self.stdout) if text.strip())


class CutShortError(AccessError):
    """A command did not finish; the connection is still up."""


class SshLine:
    """An SSH connection. Not thread-safe.

    `question` is a read-only command that a device answers within the target's time limit while it is busy with a
    longer one.
    """

    def __init__(self, target: SshTarget, question: str = QUESTION) -> None:
        self.target = target
        self._question = question
        self._session: _Session | None = None

    def open(self) -> None:
        """Connect and log in. AccessError if that fails, or the device presents an unknown key."""
        if self._session is None:
            session = _Session(self.target)
            try:
                session.establish_connection()
            except (OSError, EOFError, ValueError, NetkitError, paramiko.SSHException) as error:
                session.hang_up()
                _refuse_connection(self.target, error)
            self._session = session

    def close(self) -> None:
        session, self._session = self._session, None
        if session:
            session.hang_up()

    @property
    def is_alive(self) -> bool:
        """Whether the connection is up, as far as this side knows."""
        return self._session is not None and self._session.transport is not None

    def run(
        self,
        command: str,
        timeout_s: float | None = None,
        stdin: str = "",
        on_output: OnOutput | None = None,
        *,
        name: str = "",
    ) -> Done:
        """Run a command; the caller checks its exit code. AccessError if it does not finish in time or hangs.

        `on_output` gets the output as it arrives, which preserves it if the command never finishes. `name` replaces
        the command in messages.
        """
        limit_s = self.target.timeout_s if timeout_s is None else timeout_s
        transport = self._session.transport if self._session else None
        if transport is None:
            raise self._lost()
        is_long = limit_s > self.target.timeout_s
        companion = _Companion(transport, self._question, self.target.timeout_s) if is_long else None
        exchange, title = _Exchange(limit_s, on_output, companion), name or command
        title = title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"
        channel, is_begun = None, False
        try:
            channel = _opened(transport, limit_s)
            channel.settimeout(limit_s)
            channel.exec_command(command)
            is_begun = True
            return exchange.run(channel, stdin)
        except TimeoutError:
            what = f"did not answer within {exchange.limit_s:g} s: {title}"
            raise CutShortError(self._problem(what, "check the load of its control CPU")) from None
        except _HungError:
            what = f"hangs: nothing else is answered within {self.target.timeout_s:g} s either, during: {title}"
            raise CutShortError(self._problem(what, "check its log and its disk, or restart it")) from None
        except _TooMuchError:
            raise CutShortError(self._problem(f"prints without end: {title}", "run it by hand")) from None
        except (OSError, EOFError, paramiko.SSHException):
            transport.join(SLICE_S)  # a connection that ends closes its channels first
            if not self.is_alive:
                raise self._lost() from None
            what = f"gives no exit code: {title}" if is_begun else f"refuses to run: {title}"
            raise CutShortError(self._problem(what, "check its log and the load of its control CPU")) from None
        finally:
            for one in (channel, companion):
                if one is not None:
                    one.close()

    def put(self, path: str, text: str, mode: int = 0o600) -> None:
        """Write a file on the device, readable only by its owner while it is written. DeviceError on failure."""
        place = shlex.quote(path)
        write = (
            f"umask 077; rm -f {place}; set -C; cat > {place} && chmod {mode:o} {place} || {{ rm -f {place}; exit 1; }}"
        )
        done = self.run(write, stdin=text)
        if done.exit_code != 0:
            why = done.output.splitlines()[-1:] or ["no reason given"]
            raise DeviceError(
                Problem(f"{self.target.device}: {path} cannot be written: {why[0]}", "check whether its disk is full")
            )

    def _lost(self) -> AccessError:
        is_silent = self._session is not None and self._session.is_silent
        what = f"gives no sign of life for {self.target.timeout_s:g} s" if is_silent else "the connection is lost"
        return AccessError(self._problem(what, "try again; an unconfirmed change reverts by itself"))

    def _problem(self, what: str, remedy: str) -> Problem:
        return Problem(f"{self.target.device}: {what}", remedy)


def shown_key(target: SshTarget) -> Any:
    """Read the host key a device presents, known or not, without logging in."""
    session = _Session(target)
    kept = KeptKey()
    try:
        session.establish_connection(policy=kept)
    except KeyShownError:
        return kept.key
    except (OSError, EOFError, ValueError, NetkitError, paramiko.SSHException) as error:
        _refuse_connection(target, error)
    finally:
        session.hang_up()
    raise AccessError(Problem(f"{target.device}: presents no host key", UNREACHABLE))


class _TooMuchError(Exception):
    """A command exceeds the limit on output."""


class _HungError(Exception):
    """A device starts commands and does not finish them."""


class _Keepalive:
    """Ends a connection whose other end no longer answers, like ServerAliveInterval and ServerAliveCountMax of OpenSSH.

    paramiko's own keepalive, which netmiko uses, wants no answer and pauses from the moment new keys are due until they
    are there, and none of its waits for the answer to a request to run a command has a limit. Runs in the transport's
    thread; the end of the transport ends all waits.
    """

    def __init__(self, transport: paramiko.Transport, limit_s: float) -> None:
        self.is_lost = False
        self._transport, self._pause_s = transport, limit_s / (MOST_UNANSWERED + 1)
        self._unanswered, self._due_s = 0, time.monotonic() + self._pause_s
        packetizer = transport.packetizer
        self._read = packetizer.read_message
        packetizer.read_message = self._read_message
        packetizer._check_keepalive = self._check  # noqa: SLF001 (set_keepalive: see above; and by a clock that can be set)

    def _read_message(self) -> Any:
        try:
            message = self._read()
        except NeedRekeyException:  # nothing arrives
            self._check()
            raise
        self._unanswered, self._due_s = 0, time.monotonic() + self._pause_s
        return message

    def _check(self) -> None:
        """Called several times a second while nothing arrives."""
        if time.monotonic() < self._due_s:
            return
        if self._unanswered == MOST_UNANSWERED:
            self.is_lost = True
            raise EOFError
        self._unanswered, self._due_s = self._unanswered + 1, time.monotonic() + self._pause_s
        sending = self._transport.clear_to_send_lock
        # During a key exchange, or while a thread writes or cannot, this one must not wait to send.
        if self._transport.clear_to_send.is_set() and sending.acquire(blocking=False):
            sending.release()
            request = paramiko.Message()
            request.add_byte(cMSG_GLOBAL_REQUEST)
            request.add_string("keepalive@openssh.com")
            request.add_boolean(True)  # wants an answer
            self._transport._send_user_message(request)  # noqa: SLF001 (global_request would wait for the answer)


def _opened(transport: paramiko.Transport, limit_s: float) -> Any:
    """Open a channel; TimeoutError without an answer in time, which is another SSHException for paramiko."""
    try:
        return transport.open_session(timeout=limit_s)
    except paramiko.ChannelException:
        raise
    except paramiko.SSHException:
        if transport.is_active():
            raise TimeoutError from None
        raise


class _Companion:
    """Short commands beside a long one, in channels of their own: a device that finishes none of them hangs."""

    def __init__(self, transport: paramiko.Transport, question: str, limit_s: float) -> None:
        self._transport, self._limit_s = transport, limit_s
        self._command = f"{{ {question}; }} </dev/null >/dev/null 2>&1"
        self._channel: Any = None
        self._wait()

    def _wait(self) -> None:
        self.close()
        self._due_s = time.monotonic() + self._limit_s / (MOST_UNANSWERED + 1)

    def check(self) -> None:
        """Ask when it is time; _HungError if the last question is not answered in time."""
        if self._channel is not None and self._channel.exit_status_ready():
            self._wait()
        if time.monotonic() < self._due_s:
            return
        if self._channel is not None:
            raise _HungError
        try:
            self._channel = _opened(self._transport, self._limit_s)
        except paramiko.ChannelException:  # one session too many, but an answer
            self._wait()
            return
        except TimeoutError:
            raise _HungError from None
        with contextlib.suppress(paramiko.SSHException):  # a command that is refused ends its channel
            self._channel.exec_command(self._command)
            self._channel.shutdown_write()
        self._due_s = time.monotonic() + self._limit_s

    def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()


class _Exchange:
    """The I/O of one command on its channel."""

    def __init__(self, limit_s: float, on_output: OnOutput | None, companion: _Companion | None) -> None:
        self.channel: Any = None
        self.on_output = on_output
        self.companion = companion
        self.allow(limit_s)
        self.out: list[bytes] = []
        self.err: list[bytes] = []
        self.size_bytes = 0

    def allow(self, limit_s: float) -> None:
        """Restart the time limit."""
        self.limit_s, self.deadline_s = limit_s, time.monotonic() + limit_s

    def run(self, channel: Any, stdin: str) -> Done:
        """Send the input, and read until the command ends."""
        self.channel = channel
        if stdin:
            self.channel.settimeout(self._left_s())
            try:
                self.channel.sendall(stdin.encode())
            except TimeoutError:
                raise
            except OSError:  # it has ended without its input, and says why below; or the connection has
                pass
        self.channel.shutdown_write()
        while self._read():
            pass
        while chunk := self.channel.recv_stderr(CHUNK_BYTES):
            self._keep(self.err, chunk)
        if not self.channel.status_event.wait(self._left_s()):
            raise TimeoutError
        if self.channel.exit_status < 0:
            raise EOFError
        return Done(self.channel.exit_status, _text(self.out), _text(self.err))

    def _read(self) -> bool:
        """Read the available output; false at the end. stderr is drained, or its full window would block all."""
        self.channel.settimeout(min(self._left_s(), SLICE_S))
        try:
            chunk = self.channel.recv(CHUNK_BYTES)
        except TimeoutError:
            chunk = None
        if self.companion is not None:
            self.companion.check()
        while self.channel.recv_stderr_ready():
            self._keep(self.err, self.channel.recv_stderr(CHUNK_BYTES))
        if chunk:
            self._keep(self.out, chunk)
            limit_s = self.on_output(chunk) if self.on_output else None
            if limit_s is not None:
                self.allow(limit_s)
        return chunk is None or bool(chunk)

    def _keep(self, kept: list[bytes], chunk: bytes) -> None:
        kept.append(chunk)
        self.size_bytes += len(chunk)
        if self.size_bytes > MOST_OUTPUT_BYTES:
            raise _TooMuchError

    def _left_s(self) -> float:
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class _Proxy(paramiko.ProxyCommand):  # type: ignore[misc]  # paramiko ships no types
    """A command that reaches a device, such as ssh to a jump host; it does not get the secrets of netkit."""

    def __init__(self, command: str) -> None:
        self.cmd = shlex.split(command)
        self.process = subprocess.Popen(  # noqa: S603 - the user's own ssh_config names it
            self.cmd,
            env=without_secrets(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.timeout: float | None = None

    def recv(self, size: int) -> bytes:
        """Read what has arrived; nothing once the command has ended, where paramiko would poll until its timeout."""
        output = self.process.stdout.fileno()  # type: ignore[union-attr]  # a pipe
        arrived = select.poll()
        arrived.register(output, select.POLLIN)
        if not arrived.poll(None if self.timeout is None else self.timeout * 1000):
            raise TimeoutError
        return os.read(output, size)


class _Session(BaseConnection):
    """netmiko's connection without its shell, and with strict host keys."""

    def __init__(self, target: SshTarget) -> None:
        self.target = target
        self._keepalive: _Keepalive | None = None
        super().__init__(
            host=target.host,
            port=target.port,
            username=target.user,
            password=target.password or None,
            device_type="linux",
            key_file=str(target.key_file) if target.key_file else None,
            allow_agent=target.key_file is None,
            ssh_strict=True,
            ssh_config_file=str(target.ssh_config) if target.ssh_config else None,
            conn_timeout=target.timeout_s,
            auth_timeout=target.timeout_s,
            banner_timeout=target.timeout_s,
            auto_connect=False,
        )

    def establish_connection(self, width: int = 511, height: int = 1000, policy: Any = None) -> None:
        """Connect without opening a shell. A policy replaces the known keys."""
        del width, height
        parameters = self._connect_params_dict()
        has_keys = self.target.key_file is not None or bool(parameters["key_filename"])
        parameters["look_for_keys"] = not has_keys and not self.target.password
        client = self.remote_conn_pre = self._build_ssh_client()
        # A key may be known by the name that is given, as `netkit trust` keeps it, or by what ssh_config makes of it.
        place = known_as(parameters["hostname"], parameters["port"])
        names = {known_as(self.target.host, self.target.port), place} if policy is None else ()
        for key in (key for name in names for key in known_keys(self.target.known_hosts, name)):
            client.get_host_keys().add(place, key.get_name(), key)
        client.set_missing_host_key_policy(policy or MissingKey(self.target.device, self.target.known_hosts))
        if self.target.key_file is not None:
            # Given a file name, paramiko would try every key type and report only the last failure.
            parameters |= {"key_filename": None, "pkey": _key(self.target.device, self.target.key_file)}
        client.connect(**parameters, transport_factory=_transport)
        self._keepalive = _Keepalive(client.get_transport(), self.target.timeout_s)

    def _use_ssh_config(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Apply an entry of ssh_config, also with `ProxyCommand none`, several jump hosts or keys, unlike netmiko's."""
        file = Path(self.ssh_config_file or "").expanduser()
        found = paramiko.SSHConfig.from_path(str(file)).lookup(self.host) if file.is_file() else {}
        host = found.get("hostname", self.host)
        port = int(found.get("port", 22)) if parameters["port"] == 22 else parameters["port"]
        command, jumps = found.get("proxycommand"), found.get("proxyjump")
        if command is None and "proxycommand" not in found and jumps not in {None, "none"}:
            *before, last = jumps.split(",")
            words = [
                "ssh",
                "-F",
                str(file),
                *(["-J", ",".join(before)] if before else []),
                "-W",
                f"{host}:{port}",
                last,
            ]
            command = shlex.join(words)
        given = {"hostname": host, "port": port, "username": parameters["username"] or found.get("user", "")}
        if command:
            given["sock"] = _Proxy(command)
        if self.target.key_file is None and "identityfile" in found:
            given["key_filename"] = [name for name in found["identityfile"] if Path(name).is_file()]
            given["allow_agent"] = found.get("identitiesonly") != "yes"
        return {**parameters, **given}

    @property
    def transport(self) -> Any:
        """The transport, on which channels are opened; None if it has ended."""
        transport = self.remote_conn_pre.get_transport() if self.remote_conn_pre else None
        return transport if transport is not None and transport.is_active() else None

    @property
    def is_silent(self) -> bool:
        """Whether the connection was ended because nothing came from its other end."""
        return self._keepalive is not None and self._keepalive.is_lost

    def hang_up(self) -> None:
        """Close the connection. The shutdown makes its thread notice immediately."""
        netmiko_log.removeFilter(self._secrets_filter)
        client = getattr(self, "remote_conn_pre", None)
        transport = client.get_transport() if client else None
        if transport is not None:
            with contextlib.suppress(OSError, AttributeError, EOFError):
                transport.sock.shutdown(socket.SHUT_RDWR)
        if client is not None:
            client.close()


def source_address(host: str, ssh_config: Path | None = None) -> str:
    """The IPv4 address that connections to a host come from; empty if it is not known, or one of loopback.

    Behind jump hosts it is that of the last one; NAT on the path is not seen.
    """
    found = paramiko.SSHConfig.from_path(str(ssh_config)).lookup(host) if ssh_config and ssh_config.is_file() else {}
    jump = found.get("proxyjump", "none").split(",")[-1].rpartition("@")[2].partition(":")[0]
    if jump == "none" and found.get("proxycommand", "none") != "none":
        return ""
    try:
        if jump != "none":
            named = paramiko.SSHConfig.from_path(str(ssh_config)).lookup(jump).get("hostname", jump)
            address = socket.gethostbyname(named)
        else:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # connecting it sends nothing
                probe.connect((found.get("hostname", host), 22))
                address = probe.getsockname()[0]
    except OSError:
        return ""
    return "" if IPv4Address(address).is_loopback else address


def _transport(sock: Any, **options: Any) -> paramiko.Transport:
    """Create a transport with TCP_NODELAY, which saves 40 ms for each command, because it is a few small packets."""
    with contextlib.suppress(OSError, AttributeError):  # the channel of a jump host is not a socket
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return paramiko.Transport(sock, **options)


def _refuse_connection(target: SshTarget, error: Exception) -> NoReturn:
    """Raise an AccessError that explains why the connection failed."""
    if isinstance(error, NetkitError):
        raise error from None
    what, remedy = _reason(target, error)
    raise AccessError(Problem(f"{target.device}: {what}", remedy)) from None


def _key(device: str, file: Path) -> paramiko.PKey:
    """Load a private key."""
    try:
        return paramiko.PKey.from_path(file)
    except TypeError:  # raised for an encrypted key
        raise paramiko.PasswordRequiredException from None
    except FileNotFoundError:
        raise
    except OSError as error:
        what = f"{device}: the key file {file} cannot be read: {error.strerror}"
        raise AccessError(Problem(what, "check its permissions")) from None
    except (ValueError, UnknownKeyType, paramiko.SSHException) as error:
        what = f"{device}: {file} is not a usable private key: {error or type(error).__name__}"
        raise AccessError(Problem(what, "name the private key, not its .pub, in key_file")) from None


def _reason(target: SshTarget, error: Exception) -> tuple[str, str]:
    """Explain a connection error, with a remedy."""
    place, key_file, remedy = f"{target.host} port {target.port}", target.key_file, UNREACHABLE
    match error:
        case paramiko.BadHostKeyException():
            what = f"the SSH host key of {place} is not the known one"
            remedy = "this may be a man in the middle: find out why it changed, then run netkit trust"
        case paramiko.PasswordRequiredException():
            what, remedy = f"{key_file or 'a key of ssh_config'} has a passphrase", "add the key to the SSH agent"
        case paramiko.AuthenticationException():
            what, remedy = f"refuses the login of {target.user}", "check the user, the key and the password"
        case TimeoutError():
            what = f"does not answer at {place} within {target.timeout_s:g} s"
        case socket.gaierror():
            what, remedy = f"{target.host} cannot be resolved", "check the name and DNS"
        case FileNotFoundError() if key_file:
            what, remedy = f"the key file {key_file} does not exist", "set key_file in access.yaml"
        case OSError():
            what = f"cannot be reached at {place}: {error.strerror or error}"
        case _:
            what = f"no SSH session at {place}: {error or 'the connection was closed'}"
    return what, remedy


def _text(chunks: list[bytes]) -> str:
    return b"".join(chunks).decode("utf-8", errors="replace")


class SshShell:
    """Base of transports that run the commands of a NOS over SSH."""

    question = QUESTION
    """See SshLine."""

    def __init__(self, target: SshTarget) -> None:
        self.device = target.device
        self.timeout_s = target.timeout_s
        self.line = SshLine(target, self.question)

    def open(self) -> None:
        self.line.open()

    def close(self) -> None:
        self.line.close()

    @property
    def is_alive(self) -> bool:
        return self.line.is_alive
