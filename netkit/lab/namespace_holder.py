"""The process that holds the namespaces of a node, programs that run in them, and system calls."""

import contextlib
import ctypes
import os
import pwd
import shutil
import subprocess
import sys
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from netkit.lab.node import ProgramResult

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_RDONLY = 1
MS_NOSUID = 2
MS_REMOUNT = 32
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
PR_SET_NAME = 15

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Move this thread into a namespace."""
    _check(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    done = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
    )
    _check(done, target)


def bind(source: str, target: str, *, is_recursive: bool = False) -> None:
    mount(source, target, flags=MS_BIND | (MS_REC if is_recursive else 0))


def remount(target: str, options: str) -> None:
    """Change the options of a tmpfs."""
    mount("none", target, "tmpfs", MS_REMOUNT, options)


def set_hostname(name: str) -> None:
    raw = name.encode()
    _check(_libc.sethostname(raw, len(raw)), "sethostname")


def set_process_name(name: str) -> None:
    _libc.prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


OWN = "/run/netkit"
BOOT_ID = "boot_id"
BLANK = ("/run", "/tmp", "/var/log", "/var/tmp", "/home", "/root", "/var/lib/snmp", "/var/lib/lldpd")  # noqa: S108
PORTED = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/hostname", "/etc/hosts")
UNSEEN = ("frr", "netplan", "systemd", "ssh", "sysctl.d", "udev", "profile", "profile.d", "snmp", "lldpd.d", "chrony")
ACCOUNTS = ("root", "cumulus", "admin", "netkit")
TOOLS = "/run/netkit/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/frr"
ENVIRONMENT = {"PATH": TOOLS, "HOME": "/root", "USER": "root", "LC_ALL": "C.UTF-8"}
SYSCTLS: Mapping[str, str] = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/fib_multipath_hash_policy": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/ping_group_range": "0 65535",
    "net/ipv6/conf/all/forwarding": "1",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/all/accept_dad": "0",
    "net/ipv6/conf/default/dad_transmits": "0",
    "net/ipv6/conf/all/keep_addr_on_down": "1",
    "net/ipv4/conf/all/ignore_routes_with_linkdown": "1",
}
HOST_SYSCTLS: Mapping[str, str] = {
    "net/ipv4/ping_group_range": "0 65535",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/default/dad_transmits": "0",
}


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a device's namespaces, by its pid inside the lab."""

    name: str
    pid: int

    @property
    def root(self) -> Path:
        """The device's file system as seen by other processes of the lab."""
        return Path(f"/proc/{self.pid}/root")

    @property
    def network(self) -> str:
        """The file of the device's network namespace."""
        return f"/proc/{self.pid}/ns/net"

    def enter(self, *, network: bool = True) -> list[str]:
        """The command prefix that enters the device; optionally outside its network namespace."""
        return ["nsenter", "-t", str(self.pid), "-m", "-u", *(["-n"] if network else []), "--"]


def hold(name: str, *, is_host: bool) -> Holder:
    """Create the namespaces of a device, and wait until they are set up."""
    ready, ready_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        _be_holder(name, ready_write, is_host=is_host)
    os.close(ready_write)
    with os.fdopen(ready, "rb") as pipe:
        answer = pipe.read()
    if answer != b"ready":
        os.waitpid(pid, 0)
        raise OSError(f"{name}: {answer.decode(errors='replace') or 'cannot create its namespaces'}")
    return Holder(name, pid)


def _be_holder(name: str, ready: int, *, is_host: bool) -> None:
    """Create the namespaces, then become a sleeping process. Never returns."""
    try:
        unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS)
        set_hostname(name)
        _furnish(name)
        for key, value in (HOST_SYSCTLS if is_host else SYSCTLS).items():
            try:
                Path("/proc/sys", key).write_text(value, encoding="ascii")
            except OSError as error:
                sys.stderr.write(f"sysctl {key}: {error.strerror}\n")
        os.write(ready, b"ready")
        os.close(ready)
        os.execve("/bin/sleep", [f"lab:{name}", "infinity"], ENVIRONMENT)  # noqa: S606
    except BaseException as error:  # the parent waits for an answer
        traceback.print_exc()
        os.write(ready, f"{type(error).__name__}: {error}".encode())
        os._exit(1)


def _furnish(name: str) -> None:
    mount("none", "/", flags=MS_PRIVATE | MS_REC)
    for folder in BLANK:
        if Path(folder).is_dir():
            mount("lab", folder, "tmpfs", MS_NOSUID, ("mode=1777" if folder.endswith("tmp") else "mode=755"))
    for folder in (f"{OWN}/etc", f"{OWN}/bin", "/run/frr", "/run/sshd", "/run/lock", "/var/log/frr", "/var/tmp/frr"):  # noqa: S108
        Path(folder).mkdir(parents=True)
    account = pwd.getpwnam("frr")
    for folder in ("/run/frr", "/var/log/frr", "/var/tmp/frr"):  # noqa: S108
        os.chown(folder, account.pw_uid, account.pw_gid)
    _own_etc(name)
    os.chown("/etc/frr", account.pw_uid, account.pw_gid)
    network = Path(f"{OWN}/net")
    network.touch()
    bind("/proc/self/ns/net", str(network))
    write_boot_id(Path("/"))
    bind(f"{OWN}/{BOOT_ID}", "/proc/sys/kernel/random/boot_id")
    with contextlib.suppress(OSError):  # an unprivileged lab on an older kernel keeps the machine's view
        mount("none", "/sys", "sysfs", MS_RDONLY)


def write_boot_id(root: Path) -> None:
    """Give a device a new boot ID, as after a power cycle: the kernel has one for the whole machine."""
    (root / OWN.lstrip("/") / BOOT_ID).write_text(f"{uuid.uuid4()}\n", encoding="ascii")


def _own_etc(name: str) -> None:
    """Replace /etc by links to the machine's files, except the device's own files."""
    bind("/etc", f"{OWN}/etc", is_recursive=True)
    mount("lab", "/etc", "tmpfs", MS_NOSUID, "mode=755")
    for entry in Path(f"{OWN}/etc").iterdir():
        if entry.name not in UNSEEN and f"/etc/{entry.name}" not in PORTED:
            Path("/etc", entry.name).symlink_to(entry)
    for folder in ("frr", "netplan", "systemd/network", "ssh", "sysctl.d", "udev/rules.d", "snmp", "lldpd.d", "chrony"):
        Path("/etc", folder).mkdir(parents=True)
    Path("/etc/frr/vtysh.conf").touch()
    Path("/etc/hostname").write_text(f"{name}\n", encoding="utf-8")
    Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {name}\n", encoding="utf-8")
    for file in ("passwd", "group"):
        shutil.copy(f"{OWN}/etc/{file}", f"/etc/{file}")
    _own_accounts()


def _own_accounts() -> None:
    """Give every login account the shell that enters the device's network namespace."""
    passwd = Path("/etc/passwd")
    others = [
        line for line in passwd.read_text(encoding="utf-8").splitlines() if line.partition(":")[0] not in ACCOUNTS
    ]
    own = [f"{account}:x:0:0::/home/{account}:{OWN}/login" for account in ACCOUNTS]
    passwd.write_text("\n".join([*own, *others]) + "\n", encoding="utf-8")
    Path("/etc/shadow").write_text("".join(f"{account}:*:19000:0:99999:7:::\n" for account in ACCOUNTS), "utf-8")
    for account in ACCOUNTS:
        Path("/home", account).mkdir()


class ProgramRunner:
    """Runs programs in the namespaces of a node, short ones and those that stay."""

    def __init__(self, holder: Holder, log: Path) -> None:
        self.holder = holder
        self._log = log
        self._programs: dict[str, subprocess.Popen[bytes]] = {}

    def file(self, path: str) -> Path:
        """The path on this side of a file of the node."""
        return self.holder.root / path.lstrip("/")

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60, network: bool = True) -> ProgramResult:
        """Run a program inside the node."""
        words = [*self.holder.enter(network=network), *command]
        try:
            done = subprocess.run(  # noqa: S603
                words,
                input=stdin.encode(),
                capture_output=True,
                check=False,
                timeout=timeout_s,
                env=ENVIRONMENT,
            )
        except subprocess.TimeoutExpired as expired:
            return ProgramResult(
                124, (expired.stdout or b"").decode(errors="replace"), f"no answer in {timeout_s:g} s\n"
            )
        return ProgramResult(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )

    def spawn(
        self,
        name: str,
        *command: str,
        fds: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        network: bool = True,
    ) -> None:
        """Start a long-running program; the descriptors become its 3, 4 and so on."""
        self.end(name)
        words = [*self.holder.enter(network=network), *command]
        if fds:
            moves = " ".join(f"{3 + index}<&{fd}" for index, fd in enumerate(fds))
            words = ["/bin/bash", "-c", f'exec "$@" {moves}', "spawn", *words]
        with self._log_file() as log:
            self._programs[name] = subprocess.Popen(  # noqa: S603
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=fds,
                env={**ENVIRONMENT, **(environment or {})},
                start_new_session=True,
            )

    def end(self, name: str) -> None:
        """Stop a program that was spawned under a name."""
        program = self._programs.pop(name, None)
        if program is None:
            return
        program.terminate()
        try:
            program.wait(timeout=5)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def is_running(self, name: str) -> bool:
        program = self._programs.get(name)
        return program is not None and program.poll() is None

    def has_died(self, name: str) -> bool:
        """Whether a program ended by itself."""
        program = self._programs.get(name)
        return program is not None and program.poll() is not None

    def _log_file(self) -> BinaryIO:
        return self._log.open("ab")
