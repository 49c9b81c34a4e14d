"""The SNMP agent of a switch: Debian's snmpd in the node, on the node's loopback address."""

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from netkit.design.fabric import Switch
from netkit.lab.agents.agentx import AgentxSession
from netkit.lab.agents.snmp_objects import LldpState, MibTree, SnmpSnapshot, snapshot
from netkit.lab.agents.vendor_mibs import mibs
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.state import SnmpState, SwitchState

SHORTEST_SECRET = 8
MODULES = (
    "snmpEngine",
    "snmpMPDStats",
    "snmp_mib",
    "sysORTable",
    "system_mib",
    "target_counters",
    "usmConf",
    "usmStats",
    "usmUser",
    "vacm_conf",
    "vacm_context",
    "vacm_vars",
)
"""The modules of snmpd itself; everything else comes from the lab's subagent."""
OBJECT_IDS = {"nvue": ".1.3.6.1.4.1.40310", "eos": ".1.3.6.1.4.1.30065.1"}
LINUX_OBJECT_ID = ".1.3.6.1.4.1.8072.3.2.10"
DESCRIPTIONS = {
    "nvue": "Cumulus-Linux {version} (Linux Kernel, {model})",
    "sonic": "SONiC Software Version: SONiC.{version} - HwSku: {model} - Distribution: Debian",
    "eos": "Arista Networks EOS version {version} running on an Arista Networks {model}",
    "frr": "Linux with FRRouting {version} on {model}",
}


def config(snmp: SnmpState, hostname: str, switch: Switch, listen: str, agentx: str) -> str:
    """snmpd.conf, without the users' secrets."""
    return "".join(f"{line}\n" for line in _lines(snmp, hostname, switch, listen, agentx))


def secrets(snmp: SnmpState, hostname: str, boots: int) -> str:
    """The persistent file of snmpd: engine ID, engine boots, and users with their secrets."""
    lines = [f"engineBoots {boots}", f"oldEngineID {engine_id(hostname)}"]
    lines += [
        f"createUser {_quoted(user.name)} SHA {_secret(user.name, user.auth_secret)}"
        f" AES {_secret(user.name, user.priv_secret)}"
        for user in snmp.users
    ]
    return "".join(f"{line}\n" for line in lines)


def engine_id(hostname: str) -> str:
    """A stable engine ID for a hostname, in net-snmp's text format."""
    return "0x80001f8804" + hostname.encode()[:27].hex()


def description(switch: Switch) -> str:
    """sysDescr, which LLDP announces too."""
    text = DESCRIPTIONS.get(switch.platform, DESCRIPTIONS["frr"])
    return text.format(version=switch.version, model=switch.model.name)


def _lines(snmp: SnmpState, hostname: str, switch: Switch, listen: str, agentx: str) -> Iterator[str]:
    yield f"agentAddress udp:{listen}"
    yield f"exactEngineID {engine_id(hostname)}"
    yield "master agentx"
    yield f"agentXSocket {agentx}"
    yield "agentXTimeout 60"
    yield f"sysName {_text(hostname)}"
    yield f"sysDescr {description(switch)}"
    yield f"sysObjectID {OBJECT_IDS.get(switch.platform, LINUX_OBJECT_ID)}"
    # Always set, so that the machine's own values do not show.
    yield f"sysLocation {_text(snmp.location) or 'unknown'}"
    yield f"sysContact {_text(snmp.contact) or 'unknown'}"
    yield "sysServices 6"
    for user in snmp.users:
        yield f"rouser {_quoted(user.name)} priv"
    for community in snmp.communities:
        yield f"rocommunity {_quoted(community)}"


def _secret(user: str, secret: str) -> str:
    if len(secret) < SHORTEST_SECRET:
        raise ConfigRefusedError(f"the secrets of SNMP user {user} need at least {SHORTEST_SECRET} characters")
    return _quoted(secret)


def _quoted(word: str) -> str:
    if not word or not word.isprintable():
        raise ConfigRefusedError("an SNMP user, community or secret is empty or has unprintable characters")
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def _text(value: str) -> str:
    """Put text on one line: snmpd reads a value to the end of the line."""
    return " ".join(value.split())


NAME = "snmpd"
FOLDER = "/run/netkit/snmp"
# Socket activation: LISTEN_PID must be snmpd's own pid, which only the process that executes snmpd knows.
BECOME = (
    f"export LISTEN_PID=$$ LISTEN_FDS=1 MIBS= MIBDIRS= SNMPCONFPATH={FOLDER}:{FOLDER}/private "
    f'SNMP_PERSISTENT_DIR={FOLDER}/private; exec "$@"'
)
SNMPD = ("/usr/sbin/snmpd", "-f", "-r", "-LOw", "-I", ",".join(MODULES))
START_S = 60
PAUSE_S = 0.02


class AgentNode(Node, Protocol):
    """A node that can pass file descriptors to a program."""

    def spawn(self, name: str, *command: str, fds: Sequence[int] = ()) -> None:
        """Start a long-running program; the descriptors become its 3, 4 and so on."""


class SnmpAgent:
    """The SNMP agent of one switch. It listens in the machine's network namespace; port 0 picks a free port."""

    def __init__(self, node: AgentNode, address: str, port: int, listen: Callable[[], LldpState]) -> None:
        if not isinstance(node.device, Switch):
            raise TypeError(f"{node.name} is not a switch")
        self._node, self._switch, self._address = node, node.device, address
        self._state = SwitchState(node.name)
        self._config = ""
        # To a manager that outlives a lab, the next lab's engine of the same name must look rebooted.
        self._boots = int(time.time())
        self._connection: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._tree = MibTree(mibs(self._switch.platform, self._snapshot, listen))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._udp.bind((address, port))
        except OSError:
            self._udp.close()
            raise
        self.port: int = self._udp.getsockname()[1]

    def apply(self, state: SwitchState) -> None:
        """Start, restart or stop snmpd to match a configuration; raise ConfigRefusedError for what snmpd rejects."""
        self._state = state
        self._tree.forget()
        config = "".join(self._files(state, boots=0).values())
        if config == self._config and (not config or self._node.is_running(NAME)):
            return
        self.end()
        if config:
            self._start(state)
        self._config = config

    def end(self) -> None:
        """Stop snmpd, so that the next state starts it again; the UDP port stays bound."""
        self._node.end(NAME)
        self._config = ""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()
        self._connection = self._thread = None

    def close(self) -> None:
        """Stop snmpd and release the UDP port."""
        self.end()
        self._udp.close()

    def _files(self, state: SwitchState, boots: int) -> dict[str, str]:
        """The configuration of snmpd by file name; empty if the switch has no SNMP."""
        if state.snmp is None or not (state.snmp.users or state.snmp.communities):
            return {}
        return {
            "snmpd.conf": config(
                state.snmp, state.hostname, self._switch, f"{self._address}:{self.port}", f"{FOLDER}/agentx"
            ),
            "private/snmpd.conf": secrets(state.snmp, state.hostname, boots),
        }

    def _start(self, state: SwitchState) -> None:
        folder = self._node.file(FOLDER)
        private = folder / "private"
        private.mkdir(parents=True, exist_ok=True)
        private.chmod(0o700)
        for name, text in self._files(state, self._boots).items():
            (folder / name).write_text(text, encoding="utf-8")
        self._boots += 1
        (folder / "agentx").unlink(missing_ok=True)
        # Discard requests that arrived while snmpd was not running.
        with suppress(BlockingIOError):
            while self._udp.recv(65535, socket.MSG_DONTWAIT):
                pass
        self._node.spawn(NAME, "/bin/sh", "-c", BECOME, "sh", *SNMPD, fds=(self._udp.fileno(),))
        self._connection = self._connect(folder)
        session = AgentxSession(self._connection, self._tree, self._node.log)
        session.open()
        self._thread = threading.Thread(target=self._serve, args=(session, self._connection), daemon=True)
        self._thread.start()

    def _connect(self, folder: Path) -> socket.socket:
        """Connect once snmpd listens. A path through a descriptor never exceeds the length limit of a socket path."""
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        deadline = time.monotonic() + START_S
        try:
            while True:
                try:
                    connection.connect(f"/proc/self/fd/{descriptor}/agentx")
                    return connection
                except OSError as error:
                    if time.monotonic() > deadline or not self._node.is_running(NAME):
                        connection.close()
                        what = f"{self._node.name}: snmpd did not start: {error}; is it installed? see its log"
                        raise RuntimeError(what) from error
                    time.sleep(PAUSE_S)
        finally:
            os.close(descriptor)

    def _serve(self, session: AgentxSession, connection: socket.socket) -> None:
        try:
            session.serve()
        except (OSError, ValueError, RuntimeError) as error:
            self._node.log(f"snmp: {error}")
        finally:
            connection.close()

    def _snapshot(self) -> SnmpSnapshot:
        return snapshot(self._switch, self._state, self._node.ports())
