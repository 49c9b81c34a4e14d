"""FRR in a node: loading a configuration, and the timestamps of the last change of each link."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

from netkit.lab.namespace_holder import OWN
from netkit.lab.node import ConfigRefusedError, ProgramResult

SOCKET = "/run/frr/zebra.vty"
"""Its modification time is the start time of zebra."""
STAMP = "%Y/%m/%d %H:%M:%S"


class RoutingNode(Protocol):
    """The part of a node that link changes are read from."""

    kernel_names: Mapping[str, str]

    def file(self, path: str) -> Path: ...

    def vty(self, command: str, daemon: str = "bgpd") -> str: ...


class LinkChange(NamedTuple):
    """When a link last went down and last came up, in seconds since the epoch; None if never."""

    went_s: float | None = None
    came_s: float | None = None


NEVER = LinkChange()


def link_changes(node: RoutingNode) -> Mapping[str, LinkChange]:
    """The last changes of each port by its NOS name; empty while zebra does not answer."""
    try:
        interfaces = json.loads(node.vty("show interface json", "zebra"))
        started_s = node.file(SOCKET).stat().st_mtime
    except (OSError, ValueError):
        return {}
    changes = {}
    for name, kernel_name in node.kernel_names.items():
        if (interface := interfaces.get(kernel_name)) is None:
            continue
        went_s, came_s = _epoch_s(interface.get("lastLinkDown")), _epoch_s(interface.get("lastLinkUp"))
        if came_s is None and interface.get("operationalStatus") == "up":
            came_s = started_s  # it was up before zebra
        changes[name] = LinkChange(went_s, came_s)
    return changes


def _epoch_s(stamp: str | None) -> float | None:
    """Parse a timestamp in local time, with hundredths of a second."""
    if stamp is None:
        return None
    whole, _, hundredths = stamp.partition(".")
    return time.mktime(time.strptime(whole, STAMP)) + int(hundredths or 0) / 100


DAEMONS = ("zebra", "bgpd", "bfdd", "staticd")
FOLDER = "/usr/lib/frr"
CONFIG = "/etc/frr/frr.conf"
RELOAD = (f"{FOLDER}/frr-reload.py", "--reload", "--stdout", CONFIG)
PATIENCE_S = 60.0
BOOT_PATIENCE_S = 300.0
"""For programs that run but are not ready yet; generous, since labs run on busy machines."""
SCRIPT = f"{OWN}/as-configured.sed"
VTYSH = f"""#!/bin/sh
# Timers that the lab runs slower are shown as configured.
case "$*" in *"show run"*) [ ! -s {SCRIPT} ] || {{
  shown=$(/usr/bin/vtysh "$@"); code=$?
  printf '%s\\n' "$shown" | sed -f {SCRIPT}
  exit $code
}} ;; esac
exec /usr/bin/vtysh "$@"
"""
NEIGHBOR = re.compile(r"^ *neighbor (\S+) interface\b", re.MULTILINE)
ROUTER = re.compile(r"^router bgp \d+$", re.MULTILINE)
PREFIX_LIST = re.compile(r"^ip(?:v6)? prefix-list .*$", re.MULTILINE)
ROUTE_MAP = re.compile(r"^route-map (\S+) \S+ \d+\n(?:(?!exit|route-map).*\n)*exit\n", re.MULTILINE)
EMPTY = re.compile(r"(?:!.*|(?:frr|hostname|log|service) .*|no zebra nexthop .*|exit|end|)")
REMOVED = re.compile(r'Executed "(?!no hostname )')
CONFIGURED = "! configured "
BFD_DEFAULT_MS = "300"
TIMER = re.compile(r"^(\s*(?:receive|transmit)-interval )(\d+)$", re.MULTILINE)
TIMERS = ("transmit-interval", "receive-interval")
PROFILE = re.compile(r"^ profile \S+$")
OWNER = re.compile(r"^\s*(?:profile|peer) ")
SLOWED = re.compile(rf"^{CONFIGURED}(.+): (\S+) (\d+), runs at (\d+)$", re.MULTILINE)
COMPLAINTS = re.compile(r"^(?:%|line \d+:|\[.*?\] %).*$", re.MULTILINE)


class Shell(Protocol):
    """The part of a node that FRR runs in."""

    def file(self, path: str) -> Path: ...
    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult: ...
    def spawn(self, name: str, *command: str) -> None: ...
    def end(self, name: str) -> None: ...
    def is_running(self, name: str) -> bool: ...


def load(node: Shell, text: str, *, is_atomic: bool = False) -> None:
    """Apply a configuration to the daemons; start them if they do not run yet.

    frr-reload.py removes entries of prefix lists before it adds others, and names a new route map at neighbours before
    it makes it: until FRR looks again 5 s later, it denies all. `is_atomic` adds both first, for a NOS that changes all
    at once.
    """
    before = node.file(CONFIG).read_text(encoding="utf-8") if node.file(CONFIG).exists() else ""
    node.file(CONFIG).write_text(text, encoding="utf-8")
    # Have vtysh show the configured timers: slower ones are the lab's own, not a difference from the intent.
    node.file(SCRIPT).write_text(as_configured(text), encoding="utf-8")
    program = node.file(f"{OWN}/bin/vtysh")
    if not program.is_symlink():  # a personality's own vtysh shows the configuration it was given
        program.write_text(VTYSH, encoding="utf-8")
        program.chmod(0o755)
    is_running = all(node.is_running(daemon) for daemon in DAEMONS)
    if not is_running:
        start(node)
    if not is_running or all(map(EMPTY.fullmatch, before.splitlines())):
        done = node.run("vtysh", "-b")  # much faster than frr-reload.py, and nothing has to be removed
    else:
        new = [f"{line}\n" for line in PREFIX_LIST.findall(text) if f"{line}\n" not in before]
        new += [found[0] for found in ROUTE_MAP.finditer(text) if f"route-map {found[1]} " not in before]
        if is_atomic and before and new:
            node.run("vtysh", "-f", "/dev/stdin", stdin="".join(new))
        done = node.run(*RELOAD)
        if REMOVED.search(done.stdout + done.stderr):
            # frr-reload.py removes lines once, and one of them may restore or block another.
            done = node.run(*RELOAD)
    complaints = COMPLAINTS.findall(done.stdout + done.stderr)
    if complaints or done.exit_code != 0:
        reason = "; ".join(complaints) or (done.stderr or done.stdout).strip()[-500:]
        raise ConfigRefusedError(f"FRR refuses the configuration: {reason}")


def neighbors(text: str) -> frozenset[str]:
    """The interfaces with a BGP neighbour in a configuration."""
    return frozenset(NEIGHBOR.findall(text))


def part(node: Shell, text: str, interfaces: Iterable[str]) -> bool:
    """Remove the sessions on interfaces that are about to go down; return whether there were any.

    `text` is FRR's running configuration.

    After a link has gone down, bgpd 8.4.4 removes a neighbour on it but keeps its next hop, and crashes when the link
    comes back. The FRR of newer switches does not.
    """
    router = ROUTER.search(text)
    going = [f"no neighbor {interface} interface" for interface in sorted(neighbors(text).intersection(interfaces))]
    if router and going:
        node.run("vtysh", *(word for line in ("configure terminal", router[0], *going) for word in ("-c", line)))
    return bool(router and going)


def start(node: Shell, daemons: Sequence[str] = DAEMONS) -> None:
    """Start daemons with an empty configuration, zebra first, and wait until each listens.

    A daemon that finds no zebra tries again after 10 s. Up to FRR 10.2, bgpd never installs the BFD sessions that it
    was to install meanwhile (lib/bfd.c, zclient_bfd_session_replay), so that BFD stays down although BGP is up.
    """
    stop(node, daemons)
    for together in (daemons[:1], daemons[1:]):
        for daemon in together:
            options = ["-A", "127.0.0.1", "--log", "stdout"]
            if daemon == "zebra":
                options += ["-s", "90000000"]
            node.spawn(daemon, f"{FOLDER}/{daemon}", *options, "-f", "/etc/frr/vtysh.conf")
        for daemon in together:
            wait(lambda daemon=daemon: _listens(node, daemon), f"{daemon} does not listen")  # type: ignore[misc]


def stop(node: Shell, daemons: Sequence[str] = DAEMONS) -> None:
    """Stop daemons in reverse order."""
    for daemon in reversed(daemons):
        node.end(daemon)


def ask(node: Shell, daemon: str, command: str) -> str:
    """Run a command in a daemon: a command ends with a zero byte, an answer with three and a status."""
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.settimeout(PATIENCE_S)
        line.connect(str(node.file(f"/run/frr/{daemon}.vty")))
        _exchange(line, "enable")
        return _exchange(line, command)


def _exchange(line: socket.socket, command: str) -> str:
    line.sendall(command.encode() + b"\0")
    answer = bytearray()
    while answer[-4:-1] != b"\0\0\0":
        part = line.recv(1 << 16)
        if not part:
            raise OSError(f"the daemon hung up on {command!r}")
        answer += part
    return answer[:-4].decode(errors="replace")


def _listens(node: Shell, daemon: str) -> bool:
    if not node.is_running(daemon):
        raise ConfigRefusedError(f"{daemon} exited at once; see its log")
    try:
        ask(node, daemon, "show version")
    except OSError:
        return False
    return True


def wait(is_done: Callable[[], bool], what: str, patience_s: float = BOOT_PATIENCE_S) -> None:
    """Poll until a condition holds; raise ConfigRefusedError when time runs out."""
    deadline = time.monotonic() + patience_s
    while not is_done():
        if time.monotonic() > deadline:
            raise ConfigRefusedError(f"{what} within {patience_s:g} s")
        time.sleep(0.02)


def slower_bfd(text: str, interval_ms: int) -> str:
    """A configuration whose BFD timers this machine can sustain; leading comments list the changes.

    A timer that a profile leaves out is at FRR's default, which is too fast as well; FRR has no command to unset it.
    """
    lines, changes, owner = [], [], ""
    missing: list[str] = []
    for line in [*text.splitlines(keepends=True), ""]:
        expanded = [line]
        if not line.startswith("  "):  # the profile ends: add the timers it left out
            expanded, missing = [*(f"  {timer} {BFD_DEFAULT_MS}\n" for timer in missing), line], []
        for setting in expanded:
            match = TIMER.match(setting)
            is_fast = match is not None and int(match[2]) < interval_ms
            if match and match[1].strip() in missing:
                missing.remove(match[1].strip())
            if match and is_fast:
                changes.append(f"{CONFIGURED}{owner}: {match[1].strip()} {match[2]}, runs at {interval_ms}\n")
            lines.append(f"{match[1]}{interval_ms}\n" if match and is_fast else setting)
        if OWNER.match(line):
            owner = line.strip()
            missing = list(TIMERS) if PROFILE.match(line) and int(BFD_DEFAULT_MS) < interval_ms else []
    return "".join([*changes, *lines])


def as_configured(text: str) -> str:
    """A `sed` script that shows the original timers, from the comments of a slowed-down configuration."""
    script = ""
    for owner, timer, configured, runs in SLOWED.findall(text):
        command = f"s/^\\( *{timer} \\){runs}$/\\1{configured}/"
        if configured == BFD_DEFAULT_MS and "echo" not in timer:  # FRR prints no default
            command = f"{{ /^ *{timer} {runs}$/d }}"
        script += f"/^ *{re.escape(owner)}$/,/^ *exit$/ {command}\n"
    return script
