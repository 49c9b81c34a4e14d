"""The few kernel calls about namespaces and mounts that Python 3.11 has no function for."""

import ctypes
import os

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
    """Give this process namespaces of its own."""
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Move this thread into a namespace."""
    _check(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system."""
    done = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
    )
    _check(done, target)


def bind(source: str, target: str, *, is_recursive: bool = False) -> None:
    """Show a file or folder at another place too."""
    mount(source, target, flags=MS_BIND | (MS_REC if is_recursive else 0))


def remount(target: str, options: str) -> None:
    """Change the options of a mount."""
    mount("none", target, "tmpfs", MS_REMOUNT, options)


def set_hostname(name: str) -> None:
    """Name this UTS namespace."""
    raw = name.encode()
    _check(_libc.sethostname(raw, len(raw)), "sethostname")


def set_process_name(name: str) -> None:
    """Show a name in process lists."""
    _libc.prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
