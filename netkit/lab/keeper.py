"""The process a lab lives in: it builds the nodes, answers for them, and when it ends everything ends."""

import contextlib
import gc
import json
import secrets
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.design.fabric import Host, Switch
from netkit.errors import LabError, Problem
from netkit.lab import block, convergence, faults, https, reach, shell, syscalls
from netkit.lab.agents.snmp import SnmpAgent
from netkit.lab.folder import LabFolder
from netkit.lab.holder import Holder, hold
from netkit.lab.job import Job
from netkit.lab.layout import PERSONALITY_OF_HOSTS, Layout, lay_out
from netkit.lab.live import FLASH_BYTES, LiveNode
from netkit.lab.node import RefusedError
from netkit.lab.personalities import personality
from netkit.lab.personality import Personality
from netkit.lab.server import serve
from netkit.lab.services import Services
from netkit.lab.trouble import Patient, Trouble

BUILDERS = 4
SSH_PORT = 22
LOW_PORTS, PORT_SHIFT = 1023, 8000
Verb = Callable[[Mapping[str, Any]], Mapping[str, Any]]
NOWHERE = "Host *\n  ProxyCommand false\n"
"""With this a name that is no device of the lab is not even looked up."""


@dataclass
class Status:
    """What the keeper says of itself."""

    step: str = "starting"
    done: int = 0
    total: int = 0
    is_up: bool = False
    shortfalls: list[convergence.Shortfall] = field(default_factory=list)
    failure: str = ""
    began_s: float = field(default_factory=time.monotonic)


def run(job: Job) -> None:
    """Be the keeper of a lab, until it ends."""
    Keeper(job).run()


class Keeper:
    """Builds and answers for the nodes of one lab."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.status = Status()
        self.nodes: dict[str, LiveNode] = {}
        self.personalities: dict[str, Personality] = {}

    def run(self) -> None:
        """Build the lab, then answer until the end."""
        gc.enable()
        gc.freeze()
        syscalls.set_process_name("netkit-lab")
        self._prepare()
        listener = self._listen()
        threading.Thread(target=self._build_or_tell, name="build", daemon=True).start()
        while True:
            line, _ = listener.accept()
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _prepare(self) -> None:
        syscalls.mount("none", "/", flags=syscalls.MS_PRIVATE | syscalls.MS_REC)
        with contextlib.suppress(OSError):
            syscalls.mount("proc", "/proc", "proc")
        Path(self.job.folder.path, "nodes").mkdir(exist_ok=True)
        syscalls.mount("lab", str(self.job.folder.path / "nodes"), "tmpfs", syscalls.MS_NOSUID, "mode=755")
        self.block, self._claim = block.claim(self.job.folder.name)
        self.layout: Layout = lay_out(self.job.fabric, self.block)
        is_root = self._owns_low_ports()
        self.ports = {"ssh": 22 if is_root else 2222, "snmp": 161 if is_root else 1161}
        shell.make_key(self.job.folder.path)
        self._password = secrets.token_urlsafe(18)
        https.password_file(self.job.folder.path).touch(mode=0o600)
        https.password_file(self.job.folder.path).write_text(self._password + "\n", encoding="utf-8")
        self._certificates: dict[str, str] = {}

    def _owns_low_ports(self) -> bool:
        with socket.socket() as trial:
            try:
                trial.bind((f"{self.block}.255.254", 22))
            except PermissionError:
                return False
            return True

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        self.job.folder.control.unlink(missing_ok=True)
        listener.bind(str(self.job.folder.control))
        self.job.folder.control.chmod(0o600)
        listener.listen(32)
        return listener

    def _build_or_tell(self) -> None:
        try:
            self._build()
        except Exception as error:  # whoever waits for the lab must hear why it will not come
            traceback.print_exc()
            self.status.failure = f"{type(error).__name__}: {error}"

    def _build(self) -> None:
        seats = tuple(self.layout.seats.values())
        holders = {}
        for seat in self._counted("namespaces", seats):
            holders[seat.name] = hold(seat.name, is_host=seat.personality == PERSONALITY_OF_HOSTS)
        self._lay_cables(holders)
        self.services = Services(self.job.fabric)
        self.trouble = Trouble(self.services.faults)
        for seat in seats:
            saved = self.job.folder.path / "nodes" / seat.name
            saved.mkdir()
            syscalls.mount("flash", str(saved), "tmpfs", syscalls.MS_NOSUID, f"mode=755,size={FLASH_BYTES}")
            log = self.job.folder.path / f"{seat.name}.log"
            self.nodes[seat.name] = LiveNode(seat, holders[seat.name], saved, log, self.services)
        self._boot_all()
        threading.Thread(target=self.trouble.keep_fresh, name="fresh", daemon=True).start()
        self.services.start_traffic({name: holder.network for name, holder in holders.items()})
        self._converge()

    def _counted(self, step: str, items: Any) -> Any:
        self.status.step, self.status.done, self.status.total = step, 0, len(items)
        for item in items:
            yield item
            self.status.done += 1

    def _lay_cables(self, holders: Mapping[str, Holder]) -> None:
        self.status.step, self.status.done, self.status.total = "cables", 0, len(self.layout.strands)
        lines = [
            f"link add {strand.left_interface} netns {holders[strand.left].pid} type veth "
            f"peer name {strand.right_interface} netns {holders[strand.right].pid}"
            for strand in self.layout.strands
        ]
        if not lines:
            return
        first = next(iter(holders.values()))
        words = [*first.enter(), "ip", "-batch", "-"]
        done = subprocess.run(words, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            raise LabError(Problem(f"the cables could not be laid: {done.stderr.strip()}"))

    def _boot_all(self) -> None:
        self.status.step, self.status.done, self.status.total = "devices", 0, len(self.nodes)
        public_key = (self.job.folder.path / "key.pub").read_text(encoding="utf-8")
        client = Path(__file__).with_name("client.py").read_text(encoding="utf-8")
        self._keys: dict[str, str] = {}
        with ThreadPoolExecutor(BUILDERS) as pool:
            for name, problem in pool.map(lambda node: self._first_boot(node, public_key, client), self.nodes.values()):
                self.status.done += 1
                if problem:
                    self.status.shortfalls.append(convergence.Shortfall(name, problem))
        self._write_record()

    def _first_boot(self, node: LiveNode, public_key: str, client: str) -> tuple[str, str]:
        try:
            kind = personality(node.seat.personality)
            mind = self.personalities[node.name] = kind(node)
            prompt = kind.prompt.format(user=kind.login, host=node.name)
            shell.furnish(
                node.holder.root,
                public_key=public_key,
                prompt=prompt,
                programs=kind.programs,
                client=f"#!{_interpreter()} -IS\n{client}",
            )
            self.trouble.add(Patient(node, mind, self._start_sshd))
            serve(node, mind, self.trouble.answer)
            if kind.https_port:
                self._certificates[node.name] = https.make_certificate(node)
                https.serve(node, mind, self._port(kind.https_port), self._password, self.trouble.gate)
            self._start_agents(node)
            files = self.job.files.get(node.name, {})
            with node.lock:
                if files:
                    mind.provision(files)
                mind.boot()
            self._tell_settings(node, mind)
            if isinstance(node.device, Host):
                node.lldp.apply()
        except RefusedError as error:
            return node.name, str(error)
        except Exception as error:  # one node that fails must not take the others with it
            traceback.print_exc()
            return node.name, f"{type(error).__name__}: {error}"
        return node.name, ""

    def _port(self, number: int) -> int:
        """Return a port as this lab has it: without root the low ones are 8000 higher."""
        return number if number > LOW_PORTS or self.ports["ssh"] == SSH_PORT else number + PORT_SHIFT

    def _tell_settings(self, node: LiveNode, mind: Personality) -> None:
        """Tell model and traffic how a host's NICs are set."""
        if isinstance(node.device, Host):
            found = {nic.interface: mind.settings(nic.interface) for nic in node.device.nics}
            self.services.host_told(node.device, {name: one for name, one in found.items() if one is not None})

    def _start_agents(self, node: LiveNode) -> None:
        self._keys[node.name] = shell.host_key(node.holder.root, node.saved)
        config = shell.sshd_config(node.seat.address, self.ports["ssh"])
        node.file("/etc/ssh/sshd_config").write_text(config, encoding="utf-8")
        if isinstance(node.device, Switch) and node.agent is None:
            node.agent = SnmpAgent(node, node.seat.address, self.ports["snmp"], node.lldp.surroundings)
        self._start_sshd(node)

    def _start_sshd(self, node: LiveNode) -> None:
        """Let people in; a device that is unreachable by fault stays so."""
        if not self.services.faults.of("unreachable", node.name):
            node.spawn("sshd", "/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/sshd_config", network=False)

    def _converge(self) -> None:
        self.status.step = "convergence"
        begun = {name for name, files in self.job.files.items() if files}
        if begun >= set(self.nodes):
            self._wait_for_routes()
        self.status.is_up = True

    def _wait_for_routes(self) -> None:
        def tell(done: int, total: int) -> None:
            self.status.done, self.status.total = done, total

        switches = {switch.name for switch in self.job.fabric.switches}
        nodes = {name: node for name, node in self.nodes.items() if name in switches}
        missing = convergence.wait(self.job.fabric, nodes, self.job.patience_s, tell)
        if not missing:
            self.status.step = "reachability"
            missing = reach.unreached(self.nodes, reach.some_trips(self.job.fabric))
        self.status.shortfalls += missing

    def _write_record(self) -> None:
        devices = {
            seat.name: {
                "address": seat.address,
                "port": self.ports["ssh"],
                "snmp_port": self.ports["snmp"],
                "https_port": self._port(personality(seat.personality).https_port),
                "certificate": self._certificates.get(seat.name, ""),
                "personality": seat.personality,
                "login": personality(seat.personality).login,
                "pid": self.nodes[seat.name].holder.pid,
            }
            for seat in self.layout.seats.values()
        }
        folder = self.job.folder
        folder.write({"lab": folder.name, "fabric": self.job.fabric_folder, "block": self.block, "devices": devices})
        known = [f"[{d['address']}]:{d['port']} {self._keys[name]}" for name, d in devices.items()]
        known += [f"{d['address']} {self._keys[name]}" for name, d in devices.items()]
        (folder.path / "known_hosts").write_text("\n".join(known) + "\n", encoding="utf-8")
        entries = [_ssh_entry(folder, name, device) for name, device in devices.items()]
        folder.ssh_config.write_text("".join([*entries, NOWHERE]), encoding="utf-8")

    def _answer(self, line: socket.socket) -> None:
        with line, line.makefile("rw", encoding="utf-8") as stream:
            try:
                request = json.loads(stream.readline())
                answer = self._verb(str(request.get("verb")))(request)
            except LabError as error:
                answer = {"error": [str(problem) for problem in error.problems]}
            except Exception as error:
                traceback.print_exc()
                answer = {"error": [f"{type(error).__name__}: {error}"]}
            with contextlib.suppress(OSError):
                stream.write(json.dumps(answer) + "\n")

    def _verb(self, verb: str) -> Verb:
        verbs: dict[str, Verb] = {
            "progress": self._tell_progress,
            "status": self._tell_status,
            "restart": self._restart,
            "check": self._check,
            "break": self._break,
            "heal": self._heal,
            "faults": self._tell_faults,
        }
        if verb not in verbs:
            raise LabError(Problem(f"the lab knows no {verb!r}"))
        return verbs[verb]

    def _tell_status(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        missing = convergence.missing(self.job.fabric, self.nodes)
        devices = [
            {
                "name": seat.name,
                "personality": seat.personality,
                "address": seat.address,
                "port": self.ports["ssh"],
                "state": "; ".join(missing.get(seat.name, ())) or "ready",
            }
            for seat in self.layout.seats.values()
        ]
        return {"devices": devices}

    def _break(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        options = faults.parse_options(request["options"])
        fault = faults.check(self.job.fabric, request["fault"], request["place"], options, time.monotonic())
        self.services.faults.add(fault)
        if faults.known(fault.name).maker == "management":
            self.trouble.begin(fault)
        return {"fault": fault.to_json()}

    def _heal(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        device, port = faults.locate(self.job.fabric, request["place"])
        if request["fault"]:
            faults.known(request["fault"])
        gone = self.services.faults.heal(request["fault"], device, port, now_s=time.monotonic())
        for fault in gone:
            if faults.known(fault.name).maker == "management":
                self.trouble.end(fault)
        return {"healed": [fault.to_json() for fault in gone]}

    def _tell_faults(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"faults": self.services.faults.to_json()}

    def _check(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Prove the whole fabric: sessions, routes, and a ping between every two NICs that the design connects."""
        fabric = self.job.fabric
        lacks = [f"{name}: {what}" for name, whats in convergence.missing(fabric, self.nodes).items() for what in whats]
        own = list(reach.every_trip(fabric, is_across=False))
        across = list(reach.every_trip(fabric, is_across=True))
        lacks += map(str, reach.unreached(self.nodes, own))
        silent = reach.unreached(self.nodes, across)
        if fabric.cross_rail == "routed":
            lacks += map(str, silent)
        elif len(silent) < len(across):
            lacks.append(
                f"{len(across) - len(silent)} of {len(across)} trips across rails succeed; the design blocks them"
            )
        return {
            "shortfalls": lacks,
            "own": len(own),
            "across": len(across),
            "is_blocked": fabric.cross_rail == "blocked",
        }

    def _restart(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        node = self.nodes[str(request["device"])]
        mind = self.personalities[node.name]
        with node.lock:
            mind.stop()
            node.kill_all()
            node.forget()
            self._start_agents(node)
            try:
                mind.boot()
            except RefusedError as error:
                return {"problem": str(error)}
        if isinstance(node.device, Host):
            self._tell_settings(node, mind)
            node.lldp.apply()
        return {}

    def _tell_progress(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        status = self.status
        return {
            "step": status.step,
            "done": status.done,
            "total": status.total,
            "is_up": status.is_up,
            "shortfalls": [[lack.device, lack.port, lack.what] for lack in status.shortfalls],
            "failure": status.failure,
            "seconds": round(time.monotonic() - status.began_s, 1),
        }


def _interpreter() -> str:
    system = Path("/usr/bin/python3")
    return str(system if system.exists() else Path(sys.executable).resolve())


def _ssh_entry(folder: LabFolder, name: str, device: Mapping[str, Any]) -> str:
    return (
        f"Host {name}\n  HostName {device['address']}\n  Port {device['port']}\n  User {device['login']}\n"
        f"  IdentityFile {folder.key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder.path / 'known_hosts'}\n  StrictHostKeyChecking yes\n"
        "  ProxyCommand none\n"
    )
