"""The process that runs a lab: it starts in the background, builds the nodes, and answers requests until its end.

It runs in its own PID and mount namespaces: when the init process there ends, the kernel kills all others, and their
network namespaces and mounts go with them.
"""

import contextlib
import gc
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.errors import LabError, NetkitError, Problem
from netkit.lab import faults, namespace_holder, proof, world
from netkit.lab.builder import Builder
from netkit.lab.faults.breaking import Breaker
from netkit.lab.folder import INIT, LOG, LabJob, began_at
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personality import FIND_ON
from netkit.lab.proof import Caller
from netkit.lab.traffic import flow
from netkit.lab.traffic.engine import TrafficProcess
from netkit.lab.traffic.flow import FlowEnd
from netkit.private import without_secrets

ACCOUNTS = 65535


def start(job: LabJob, run: Callable[[LabJob], None]) -> None:
    """Start the keeper of a lab in the background, as the second process of a new PID namespace."""
    is_root = os.geteuid() == 0
    ready, ready_write = os.pipe()
    mapped, mapped_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        os.close(mapped_write)
        _detach(job, run, ready_write, mapped, is_root=is_root)
    os.close(ready_write)
    os.close(mapped)
    with os.fdopen(ready, "rb") as pipe, os.fdopen(mapped_write, "wb") as mapping:
        if pipe.read(1) == b"u" and not is_root:
            # Map the accounts FRR and sshd need in an unprivileged lab, from this user's subordinate IDs.
            name = pwd.getpwuid(os.getuid()).pw_name
            for tool, own, file in (
                ("newuidmap", os.getuid(), "/etc/subuid"),
                ("newgidmap", os.getgid(), "/etc/subgid"),
            ):
                first, size = _range(Path(file), name, os.getuid())
                words = [tool, str(pid), "0", str(own), "1", "1", str(first), str(size)]
                done = subprocess.run(words, env=without_secrets(), capture_output=True, text=True, check=False)  # noqa: S603
                if done.returncode != 0:
                    raise LabError(
                        Problem(f"{tool} maps no accounts for {name}: {done.stderr.strip()}", f"check {file}")
                    )
        mapping.write(b"m")
        mapping.flush()
        pipe.read()
    os.waitpid(pid, 0)


def _detach(job: LabJob, run: Callable[[LabJob], None], ready: int, mapped: int, *, is_root: bool) -> None:
    """Become the lab's own process tree; never returns."""
    try:
        os.setsid()
        log = job.folder.path / LOG
        null = os.open(os.devnull, os.O_RDWR)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, target in ((null, 0), (out, 1), (out, 2)):
            os.dup2(descriptor, target)
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), FIND_ON])
        if not is_root:
            namespace_holder.unshare(namespace_holder.CLONE_NEWUSER)
        os.write(ready, b"u")
        os.read(mapped, 1)
        if not is_root:
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        namespace_holder.unshare(namespace_holder.CLONE_NEWPID | namespace_holder.CLONE_NEWNS)
        recorded, recorded_write = os.pipe()
        init = os.fork()
        if init == 0:
            os.close(ready)
            os.close(recorded_write)
            if os.read(recorded, 1):  # the pid is recorded as the outer namespace sees it
                _be_init(job, run)
            os._exit(1)  # a lab without a record could not be ended
        (job.folder.path / INIT).write_text(f"{init} {began_at(init)}\n", encoding="ascii")
        os.write(recorded_write, b"w")
        os._exit(0)
    except BaseException:  # a child must not continue in its parent's code
        traceback.print_exc()
        os._exit(1)


def _range(file: Path, name: str, uid: int) -> tuple[int, int]:
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        owner, first, size = line.split(":")
        if owner in {name, str(uid)} and int(size) >= ACCOUNTS:
            return int(first), ACCOUNTS
    option = f"--add-{file.name}s"  # --add-subuids, --add-subgids
    remedy = f"as root: usermod {option} 100000-{100000 + ACCOUNTS} {name}, or another range that is free"
    raise LabError(Problem(f"{file} does not assign {ACCOUNTS} subordinate IDs to {name}", remedy))


def _be_init(job: LabJob, run: Callable[[LabJob], None]) -> None:
    """Reap orphans of the lab; the kernel kills everything else when this process ends. Never returns."""
    os.closerange(3, 256)
    namespace_holder.set_process_name("netkit-lab-init")
    keeper = os.fork()
    if keeper == 0:
        try:
            run(job)
        except NetkitError as error:
            sys.stderr.write(f"{error}\n")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(1)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        try:
            pid, _ = os.wait()
        except ChildProcessError:
            break
        if pid == keeper:
            break
    os._exit(0)


Request = Mapping[str, Any]
Answer = Mapping[str, Any]
ANSWERED_EARLY = {"progress", "again"}
"""Requests that are answered before every node is built."""


@dataclass
class Status:
    """Progress and outcome of building the lab."""

    step: str = "starting"
    done: int = 0
    total: int = 0
    is_up: bool = False
    is_built: bool = False
    unbooted: list[proof.Shortfall] = field(default_factory=list)
    shortfalls: list[proof.Shortfall] = field(default_factory=list)
    failure: str = ""
    began_s: float = field(default_factory=time.monotonic)

    def progress(self, step: str, done: int, total: int) -> None:
        self.step, self.done, self.total = step, done, total


def run(job: LabJob) -> None:
    """Run the keeper of a lab until it ends."""
    gc.enable()
    gc.freeze()
    namespace_holder.set_process_name("netkit-lab")
    namespace_holder.mount("none", "/", flags=namespace_holder.MS_PRIVATE | namespace_holder.MS_REC)
    with contextlib.suppress(OSError):
        namespace_holder.mount("proc", "/proc", "proc")
    nodes = job.folder.path / "nodes"
    nodes.mkdir(exist_ok=True)
    namespace_holder.mount("lab", str(nodes), "tmpfs", namespace_holder.MS_NOSUID, "mode=755")
    Keeper(job).serve()


class Keeper:
    """Serves the requests for one lab."""

    def __init__(self, job: LabJob) -> None:
        self._job = job
        self._status = Status()
        self._world = world.begin(job.fabric, job.fabric_folder, job.folder)
        self._world.is_rendered = job.is_rendered
        self._builder = Builder(self._world, job.files, self._status.progress)
        self._breaker = Breaker(self._world)
        caller = Caller(self._world.nodes)
        self._verbs: Mapping[str, Callable[[Request], Answer]] = {
            "progress": self._progress,
            "again": self._again,
            "status": self._devices,
            "restart": self._restart,
            "check": self._check,
            "break": self._break,
            "heal": self._heal,
            "faults": self._faults,
            "incast": self._incast,
            "calm": self._calm,
            "load": self._load,
            "examine": self._examine,
            "begin-calls": caller.begin,
            "end-calls": caller.end,
        }

    def serve(self) -> None:
        """Build the lab in one thread, and answer requests in others until the end."""
        listener = _listening(self._job.folder.control)
        threading.Thread(target=self._build, name="build", daemon=True).start()
        while True:
            line, _ = listener.accept()
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _build(self) -> None:
        status = self._status
        try:
            status.unbooted = self._builder.build()
            status.is_built = True
            threading.Thread(target=self._world.incidents.keep_fresh, name="fresh", daemon=True).start()
            threading.Thread(target=self._supervise, name="supervise", daemon=True).start()
            self._settle()
        except Exception as error:  # `netkit lab up` waits for the lab and reports the failure
            traceback.print_exc()
            status.failure = f"{type(error).__name__}: {error}"

    def _supervise(self) -> None:
        """Restart the daemons that have died on nodes that are not being changed, once a second."""
        while True:
            time.sleep(1.0)
            for node in tuple(self._world.nodes.values()):
                if node.lock.acquire(blocking=False):
                    try:
                        if restarted := node.restart_dead_daemons():
                            node.log(f"died and was restarted: {', '.join(restarted)}")
                    except (ConfigRefusedError, OSError, RuntimeError) as error:
                        node.log(f"routing: {error}")
                    finally:
                        node.lock.release()

    def _settle(self) -> None:
        """Wait until the configured state is reached; devices with factory defaults are not checked."""
        status = self._status
        shortfalls = []
        if {name for name, files in self._job.files.items() if files} >= set(self._world.nodes):
            fabric, nodes = self._job.promised or self._job.fabric, self._world.nodes
            shortfalls = proof.wait(
                fabric, nodes, self._job.patience_s, lambda done, total: status.progress("convergence", done, total)
            )
            if not shortfalls:
                status.progress("reachability", 0, 1)
                shortfalls = proof.unreached(nodes, proof.some_trips(fabric))
        status.shortfalls = [*status.unbooted, *shortfalls]
        status.is_up = True

    def _answer(self, line: socket.socket) -> None:
        with line, line.makefile("rw", encoding="utf-8") as stream:
            try:
                request = json.loads(stream.readline())
                verb = str(request.get("verb"))
                if verb not in self._verbs:
                    raise LabError(
                        Problem(f"the lab does not know {verb!r}", "another version of netkit started it; restart it")
                    )
                if not self._status.is_built and verb not in ANSWERED_EARLY:
                    raise LabError(Problem("the lab is still being built", "netkit lab up waits until it is up"))
                answer = self._verbs[verb](request)
            except LabError as error:
                answer = {"error": [str(problem) for problem in error.problems]}
            except Exception as error:  # a bug here must not leave the caller waiting
                traceback.print_exc()
                answer = {"error": [f"{type(error).__name__}: {error}"]}
            with contextlib.suppress(OSError):
                stream.write(json.dumps(answer) + "\n")

    def _progress(self, _request: Request) -> Answer:
        status = self._status
        return {
            "step": status.step,
            "done": status.done,
            "total": status.total,
            "is_up": status.is_up,
            "shortfalls": [[found.device, found.port, found.what] for found in status.shortfalls],
            "notes": [
                [name, node.gnmi.lack] for name, node in self._world.nodes.items() if node.gnmi and node.gnmi.lack
            ],
            "failure": status.failure,
            "block": self._world.block,
            "seconds": round(time.monotonic() - status.began_s, 1),
        }

    def _again(self, request: Request) -> Answer:
        """Wait again, for a second `up`, for what was missing when the first gave up."""
        if self._status.is_up and self._status.shortfalls:
            self._status.is_up = False
            threading.Thread(target=self._settle, name="settle", daemon=True).start()
        return self._progress(request)

    def _devices(self, _request: Request) -> Answer:
        missing = proof.missing(self._job.fabric, self._world.nodes)
        devices = [
            {
                "name": spec.name,
                "personality": spec.personality,
                "address": spec.address,
                "port": self._world.port(world.SSH_PORT),
                "state": "; ".join(missing.get(spec.name, ())) or "ready",
            }
            for spec in self._world.layout.nodes.values()
        ]
        return {"devices": devices}

    def _restart(self, request: Request) -> Answer:
        try:
            self._builder.restart(str(request["device"]))
        except ConfigRefusedError as error:
            return {"problem": str(error)}
        return {}

    def _break(self, request: Request) -> Answer:
        return {"fault": self._breaker.make(request["fault"], request["place"], request["options"]).to_json()}

    def _heal(self, request: Request) -> Answer:
        return {"healed": [fault.to_json() for fault in self._breaker.heal(request["fault"], request["place"])]}

    def _faults(self, _request: Request) -> Answer:
        return {"faults": self._world.services.faults.to_json()}

    def _incast(self, request: Request) -> Answer:
        """Make several NICs send to one at line rate, for a while."""
        device, interface = faults.locate(self._job.fabric, str(request["place"]))
        flows = flow.incast(self._job.fabric, FlowEnd(device, interface), request["senders"], request["seconds"])
        self._generator().start(flows)
        self._world.services.model.incast(device, interface, request["seconds"], time.monotonic())
        return {"flows": [flow.name for flow in flows]}

    def _calm(self, _request: Request) -> Answer:
        """End every incast; the steady exchange continues."""
        generator = self._generator()
        names = [name for name in generator.flows() if name.startswith("incast")]
        generator.stop(names)
        self._world.services.model.calm(time.monotonic())
        return {"stopped": names}

    def _load(self, request: Request) -> Answer:
        """Start or stop the modelled job that loads all cables."""
        self._world.services.set_load(is_on=bool(request["is_on"]))
        return {}

    def _generator(self) -> TrafficProcess:
        generator = self._world.services.generator
        if generator is None:
            raise LabError(Problem("the lab has no traffic yet", "wait until it is up"))
        return generator

    def _check(self, _request: Request) -> Answer:
        return proof.check(self._job.fabric, self._world.nodes)

    def _examine(self, request: Request) -> Answer:
        most, patience_s = int(request["most"]), float(request["patience_s"])
        return proof.examine(self._job.fabric, self._world.nodes, most, patience_s)


def _listening(control: Path) -> socket.socket:
    """A socket that listens before its file appears: clients wait for the file."""
    unseen = control.with_name(".c")
    unseen.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(unseen))
    unseen.chmod(0o600)
    listener.listen(32)
    unseen.replace(control)
    return listener
