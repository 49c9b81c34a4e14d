"""Faults of a device's management: its sshd, its sessions, its disk, and the answers of its commands."""

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from netkit.lab.entry import HungUpError, WireCall
from netkit.lab.faults import Faults, InjectedFault
from netkit.lab.live import LiveNode
from netkit.lab.namespace_holder import OWN
from netkit.lab.personality import Personality

REFRESH = ".refresh"
PULSE_S = 0.2
UNSETTLED_S = 0.3
"""A change of files without a command is noticed at the first command after this time."""
REST = 12
"""The pause between two refreshes is at least this many times their duration."""
VISIT_S = 60.0
"""How long after a login files below /sys are kept up to date."""
NONSENSE = "\x1b[?1049h\ufffd\x00{{%!#"
WELCOME = Path(OWN.lstrip("/")) / "welcome"
BABBLE = f'[ $# -eq 0 ] || {{ nsenter --net={OWN}/net -- /bin/sh "$@" | head -c 20 | rev; exit 0; }}\n'
REAL = {"frr", "linux-host"}
"""Personalities most of whose commands are the real programs."""
REFRESHES = f"{OWN}/bin/{REFRESH}\n"
PRIVATE = ("/etc", "/tmp", "/var/tmp", "/home", "/root", "/var/log")  # noqa: S108


@dataclass
class ManagedNode:
    """A node with the state of its management faults."""

    node: LiveNode
    personality: Personality
    restart_sshd: Callable[[LiveNode], None]
    apply_nic_settings: Callable[[LiveNode], None]
    """Passes a host's NIC settings to model and traffic, after anything may have changed them."""
    answered: int = 0
    away_until_s: float = 0.0
    login_s: float = -VISIT_S
    applied_s: float = -UNSETTLED_S
    applied_changes: int = 0
    """The number of NIC changes by commands at that time."""
    sizes: dict[str, int] = field(default_factory=dict)
    sshd_lock: threading.Lock = field(default_factory=threading.Lock)
    """Held to start or stop sshd: of two started at once, one would never be stopped."""


class BufferedCall(WireCall):
    """A call whose output is collected instead of sent."""

    def __init__(self, call: WireCall) -> None:
        self.__dict__.update(call.__dict__)
        self.text = ""

    def out(self, text: str) -> None:
        self.text += text

    err = out


class Incidents:
    """Applies the management faults of a lab; which are active is checked at every command."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._nodes: dict[str, ManagedNode] = {}

    def keep_fresh(self) -> None:
        """Refresh the files of hosts with a recent login, for as long as the lab runs.

        Once a second; less often with many such hosts, so that commands are not delayed.
        """
        took_s = 0.0
        while True:
            time.sleep(max(1.0, REST * took_s))
            began_s = time.monotonic()
            for managed in tuple(self._nodes.values()):
                if time.monotonic() - managed.login_s < VISIT_S:
                    self._refresh(managed)
            took_s = time.monotonic() - began_s

    @staticmethod
    def _refresh(managed: ManagedNode) -> None:
        with managed.node.lock:
            try:
                managed.personality.refresh()
                managed.apply_nic_settings(managed.node)
            except (OSError, RuntimeError) as error:
                managed.node.log(f"files below /sys: {error}")

    def add(self, managed: ManagedNode) -> None:
        """Register a node."""
        self._nodes[managed.node.name] = managed
        managed.node.on_refused = lambda: self._admit(managed)
        self._welcome(managed)

    def begin(self, fault: InjectedFault) -> None:
        """Apply a fault that has just become active."""
        self._switch(self._nodes[fault.device], fault, is_on=True)

    def end(self, fault: InjectedFault) -> None:
        """Undo `begin`."""
        self._switch(self._nodes[fault.device], fault, is_on=False)

    def answer(self, node: LiveNode, personality: Personality, call: WireCall) -> int:
        """Answer a command, subject to the device's faults."""
        managed = self._nodes[node.name]
        if call.program == REFRESH:
            managed.login_s = time.monotonic()
            self._refresh(managed)
            return 0
        managed.answered += 1
        if slow := self._faults.of("slow", node.name):
            time.sleep(slow.number("seconds"))
        hangs = self._faults.of("hangs", node.name)
        if hangs and managed.answered > hangs.number("after"):
            # Hang until the fault is healed or the caller leaves; the command is never run.
            while self._faults.of("hangs", node.name):
                readable, _, _ = select.select([call.line], [], [], PULSE_S)
                if readable and not call.line.recv(1, socket.MSG_PEEK):
                    break
            raise HungUpError
        if self._faults.of("garbage", node.name):
            buffered = BufferedCall(call)
            self._run(node, personality, buffered)
            call.out(NONSENSE + buffered.text[: len(buffered.text) // 2][::-1])
            return 0
        before = node.changes
        code = self._run(node, personality, call)
        changes, now_s = personality.nic_changes, time.monotonic()
        if changes != managed.applied_changes or now_s - managed.applied_s >= UNSETTLED_S:
            managed.applied_changes, managed.applied_s = changes, now_s
            managed.apply_nic_settings(node)
        if self.cut(node, before):
            raise HungUpError
        return code

    def cut(self, node: LiveNode, before: int) -> bool:
        """Disconnect a node that has just changed if a fault demands it; return whether the answer is lost."""
        dropping = self._faults.of("drops-after-commit", node.name)
        if dropping is None or node.changes == before:
            return False
        self._go_away(self._nodes[node.name], dropping.number("seconds"))
        return True

    def gate(self, device: str) -> float:
        """The delay before an answer; raise ConnectionError with the fault's name if there is none."""
        managed = self._nodes[device]
        faulty = ("unreachable", "hangs", "garbage", "refuses-auth")
        fault = next((name for name in faulty if self._faults.of(name, device)), "")
        if fault or time.monotonic() < managed.away_until_s or "https" in managed.node.refused:
            raise ConnectionError(fault)
        slow = self._faults.of("slow", device)
        return slow.number("seconds") if slow else 0.0

    @staticmethod
    def _run(node: LiveNode, personality: Personality, call: WireCall) -> int:
        """Run a command; an exception in the personality is logged and printed as an error."""
        with node.lock if personality.locks(call) else nullcontext():
            try:
                return personality.run(call)
            except HungUpError:
                raise
            except Exception as error:  # a bug in a personality must not end the lab
                node.log(f"{call.program} {' '.join(call.arguments)}: {type(error).__name__}: {error}")
                call.err(f"{call.program}: {error}\n")
                return 1

    def _switch(self, managed: ManagedNode, fault: InjectedFault, *, is_on: bool) -> None:
        node = managed.node
        if fault.name == "unreachable":
            if fault.text("manner") == "silently":
                node.signal("sshd", signal.SIGSTOP if is_on else signal.SIGCONT)
                self._cut_sessions(node)
            elif is_on:
                self._close(managed)
            else:
                with managed.sshd_lock:
                    managed.restart_sshd(node)
        elif fault.name == "refuses-auth":
            keys = node.file(f"{OWN}/authorized_keys")
            source, target = (keys, keys.with_suffix(".away")) if is_on else (keys.with_suffix(".away"), keys)
            if source.exists():
                source.replace(target)
        elif fault.name == "disk-full":
            self._resize_folders(managed, is_full=is_on)
            node.fill_flash(is_full=is_on)
        elif fault.name == "apply-fails-quietly" and hasattr(managed.personality, "fail_apply_quietly"):
            managed.personality.fail_apply_quietly = is_on
        elif fault.name == "hangs":
            managed.answered = 0
        self._welcome(managed)

    def _welcome(self, managed: ManagedNode) -> None:
        """Write the script that runs at login, where real programs are delayed, hung or garbled."""
        node, lines = managed.node, ""
        if slow := self._faults.of("slow", node.name):
            lines += f"sleep {slow.number('seconds')}\n"
        hangs = self._faults.of("hangs", node.name)
        if hangs and not hangs.number("after") and node.spec.personality in REAL:
            lines += "[ $# -eq 0 ] || exec sleep 86400\n"
        if self._faults.of("garbage", node.name):
            lines += BABBLE
        if managed.personality.refreshes:
            lines += REFRESHES
        file = node.holder.root / WELCOME
        if lines:
            file.write_text(lines, encoding="utf-8")
        else:
            file.unlink(missing_ok=True)

    def _admit(self, managed: ManagedNode) -> None:
        """Stop sshd while an access list refuses netkit, and start it again; open sessions stay."""
        with managed.sshd_lock:
            if "ssh" in managed.node.refused:
                managed.node.end("sshd")
            elif self._may_listen(managed):
                managed.restart_sshd(managed.node)

    def _may_listen(self, managed: ManagedNode) -> bool:
        is_away = time.monotonic() < managed.away_until_s
        return not is_away and not self._faults.of("unreachable", managed.node.name)

    def _go_away(self, managed: ManagedNode, seconds: float) -> None:
        """Drop every connection and accept none for a while."""
        managed.away_until_s = time.monotonic() + seconds
        self._close(managed)

        def reopen() -> None:
            with managed.sshd_lock:
                if self._may_listen(managed):
                    managed.restart_sshd(managed.node)

        timer = threading.Timer(seconds, reopen)
        timer.daemon = True
        timer.start()

    def _close(self, managed: ManagedNode) -> None:
        with managed.sshd_lock:
            managed.node.end("sshd")
            self._cut_sessions(managed.node)

    @staticmethod
    def _cut_sessions(node: LiveNode) -> None:
        """Kill open SSH sessions, but not detached processes started from them."""
        for pid in node.processes():
            try:
                name = Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if name == "sshd" and b"[listener]" not in words and b"-D" not in words:
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _resize_folders(managed: ManagedNode, *, is_full: bool) -> None:
        """Shrink every folder the device may write to down to its content, or restore the sizes."""
        if not is_full:
            for folder, size in managed.sizes.items():
                managed.node.run("mount", "-o", f"remount,size={size}", folder)
            managed.sizes.clear()
            return
        for folder in PRIVATE:
            usage = os.statvfs(managed.node.file(folder))
            managed.sizes[folder] = usage.f_blocks * usage.f_frsize
            used = max((usage.f_blocks - usage.f_bfree) * usage.f_frsize, usage.f_frsize)
            managed.node.run("mount", "-o", f"remount,size={used}", folder)
