"""Where the files of a GPU host go, and what of them is there."""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from netkit.errors import DeviceError, Problem
from netkit.platforms.config import Files

LIST = "install.txt"
LINE = re.compile(r"(0[0-7]{3}) (\S+) (/\S+)")
ROW = re.compile(r"([0-7]{4}) (\d{1,9}) (/\S+)", re.ASCII)
NETPLAN, OIF = "netplan.yaml", "oif.conf"
NETWORKD = "/etc/systemd/network"
PLACES: Mapping[str, str] = {
    "/etc/netplan/60-netkit-rails.yaml": NETPLAN,
    f"{NETWORKD}/10-netplan-rail[0-9]*.network.d/oif.conf": OIF,
    f"{NETWORKD}/10-rail[0-9]*.network": "",
    f"{NETWORKD}/10-rail[0-9]*.link": "",
    "/etc/udev/rules.d/70-netkit-rails.rules": "",
    "/etc/sysctl.d/90-netkit-rails.conf": "",
    "/usr/local/sbin/netkit-nic-qos": "",
    "/etc/systemd/system/netkit-nic-qos@.service": "",
    "/etc/nccl.conf": "",
    "/etc/netkit/mlxconfig.conf": "",
}
"""Patterns of all places netkit has files in → the name it renders them under; empty where that is the same."""
MOST_RAILS = 16
RAIL = re.compile(r"^    (\w+):", re.MULTILINE)
DROP_IN = re.compile(rf"{NETWORKD}/10-netplan-(.+)\.network\.d/oif\.conf")
READ = """
for f in {places}; do if [ -f $f ]; then set -- "$@" $f; fi; done
if [ $# -gt 0 ]; then stat -L -c '%04a %s %n' "$@"; cat "$@" | base64 -w0; echo; fi; echo end
"""
"""Prints mode, size and name of each file, then all they hold as base64: it cannot be taken for anything else."""
NOTHING = "# None of netkit's files is there.\n"
"""The list of a host that has nothing of netkit's: what is to be as there has no files, and lacks none."""


def entries(files: Files, device: str) -> list[dict[str, str]]:
    """Return rendered files with the place and the mode of each; DeviceError when nothing says where they go."""
    found = []
    for line in files.get(LIST, "").splitlines():
        if line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            if match is None or match[2] not in files:
                raise DeviceError(Problem(f"{device}: {LIST}: {line!r} is not `mode file place`", "render it again"))
            found.append({"path": match[3], "mode": match[1], "content": files[match[2]]})
    if not found and files.get(LIST) != NOTHING:
        raise DeviceError(
            Problem(f"{device}: {LIST} is missing, so nothing says where its files go", "render it again")
        )
    return found


def staged(found: Iterable[Mapping[str, str]], secrets: Iterable[str] = ()) -> str:
    """Return files as the playbook finds them staged on a host, with what of them it must never show."""
    return json.dumps({"files": list(found), "secrets": sorted(secrets)})


def read_command() -> str:
    """Return the command that prints every file of netkit's that is on a host."""
    return READ.format(places=" ".join(PLACES))


def running(printed: str, device: str) -> dict[str, str | None]:
    """Return what the command printed as files by their rendered names; None for what is not there.

    The list of where they go is among them, so that a host can be brought back to what was read, to the byte.
    """
    try:
        there = dict(_there(printed.splitlines()))
    except ValueError:
        raise DeviceError(Problem(f"{device}: its files cannot be read", "look at its disk")) from None
    found = _absent()
    names = _names({place: text for place, (_, text) in there.items()})
    found.update({names[place]: text for place, (_, text) in there.items()})
    found[LIST] = "".join(f"{mode} {names[place]} {place}\n" for place, (mode, _) in there.items()) or NOTHING
    return found


def _there(lines: list[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the place of each file, its mode and its text; ValueError when the answer is not whole."""
    *rows, text, end = ["", *lines] if len(lines) == 1 else lines
    held, at = base64.b64decode(text, validate=True), 0
    for row in rows:
        found = ROW.fullmatch(row)
        if found is None:
            raise ValueError(row)
        size = int(found[2])
        yield found[3], (found[1], held[at : at + size].decode("utf-8", "replace"))
        at += size
    if end != "end" or at != len(held):
        raise ValueError(end)


def _absent() -> dict[str, str | None]:
    names = [name or place.rpartition("/")[2] for place, name in PLACES.items() if "*" not in place]
    rails = [f"10-rail{number}.{kind}" for number in range(MOST_RAILS) for kind in ("network", "link")]
    return dict.fromkeys([*names, *rails, OIF])


def _names(there: Mapping[str, str]) -> dict[str, str]:
    """Return the rendered name of each file. Drop-ins have one name if they are alike, and every rail has its own."""
    drop_ins = {match[1]: place for place in there if (match := DROP_IN.fullmatch(place))}
    netplan = next((there[place] for place, name in PLACES.items() if name == NETPLAN and place in there), "")
    rails = set(RAIL.findall(netplan)) or set(drop_ins)
    is_whole = rails == set(drop_ins) and len({there[place] for place in drop_ins.values()}) == 1
    names = {place: PLACES.get(place) or place.rpartition("/")[2] for place in there}
    return names | {place: OIF if is_whole else f"{rail}.{OIF}" for rail, place in drop_ins.items()}


def as_root(command: str, user: str) -> str:
    """Return a command as it is run by an account."""
    return command if user == "root" else f"sudo -n sh -c {shlex.quote(command)}"


class Reachable(Protocol):
    """What says where a host is, and as whom to log in."""

    @property
    def host(self) -> str:
        """Address or name."""

    @property
    def port(self) -> int:
        """Where its sshd listens."""

    @property
    def user(self) -> str:
        """The account."""

    @property
    def key_file(self) -> Path | None:
        """Private key; without one the agent is asked."""

    @property
    def known_hosts(self) -> Path | None:
        """The only file that is asked which key the host has; by default the user's own."""

    @property
    def ssh_config(self) -> Path | None:
        """OpenSSH's configuration, for jump hosts."""

    @property
    def timeout_s(self) -> float:
        """How long to wait for it."""


def variables(target: Reachable) -> dict[str, object]:
    """Return how Ansible reaches a host; its password, if it has one, is not among them."""
    words = ["-oStrictHostKeyChecking=yes"]
    words += [f"-oUserKnownHostsFile={target.known_hosts}"] if target.known_hosts is not None else []
    words += ["-F", str(target.ssh_config)] if target.ssh_config is not None else []
    words += ["-oIdentitiesOnly=yes"] if target.key_file is not None else []
    found: dict[str, object] = {
        "ansible_host": target.host,
        "ansible_port": target.port,
        "ansible_user": target.user,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_pipelining": True,
        # One connection a step: what is checked after a change is checked over a new one, and the host key with it.
        "ansible_ssh_args": "-o ControlMaster=no -o ControlPath=none",
        "ansible_ssh_common_args": shlex.join(words),
        "ansible_timeout": max(1, round(target.timeout_s)),
    }
    if target.key_file is not None:
        found["ansible_ssh_private_key_file"] = str(target.key_file)
    if target.user != "root":
        found["ansible_become"] = True
    return found
