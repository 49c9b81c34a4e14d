"""Paths of netkit's files on a GPU host, and how they are read and staged."""

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
BESIDE = "15-netkit-"
"""The files of networks beside the rails, over which no traffic of a rail goes."""
PLACES: Mapping[str, str] = {
    "/etc/netplan/60-netkit-rails.yaml": NETPLAN,
    f"{NETWORKD}/10-netplan-rail[0-9]*.network.d/oif.conf": OIF,
    f"{NETWORKD}/10-rail[0-9]*.network": "",
    f"{NETWORKD}/10-rail[0-9]*.link": "",
    f"{NETWORKD}/{BESIDE}*.netdev": "",
    f"{NETWORKD}/{BESIDE}*.network": "",
    "/etc/udev/rules.d/70-netkit-rails.rules": "",
    "/etc/sysctl.d/90-netkit-rails.conf": "",
    "/usr/local/sbin/netkit-nic-qos": "",
    "/etc/systemd/system/netkit-nic-qos@.service": "",
    "/etc/nccl.conf": "",
    "/etc/netkit/mlxconfig.conf": "",
    "/etc/netkit/nicctl.conf": "",
}
"""Path pattern → the name under which netkit renders the file; empty if it is the file's own name."""
MOST_RAILS = 16
RAIL = re.compile(r"^    (\w+):", re.MULTILINE)
DROP_IN = re.compile(rf"{NETWORKD}/10-netplan-(.+)\.network\.d/oif\.conf")
READ = """
for f in {places}; do if [ -f $f ]; then set -- "$@" $f; fi; done
if [ $# -gt 0 ]; then stat -L -c '%04a %s %n' "$@"; cat "$@" | base64 -w0; echo; fi; echo end
"""
"""Prints mode, size and name of each file, then the content of all of them as base64, which is unambiguous."""
PYTHON = "/usr/bin/python3"
STAGE = """
umask 077
{python} -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null ||
    {{ echo '{python} is missing, or older than 3.8, and Ansible needs it' >&2; exit 1; }}
folder=$(mktemp -d) && rmdir "$folder" && mkdir -p {folder} && cat >{place}.new && mv {place}.new {place}
"""
"""Stages a file on a host that has what Ansible's modules need: Python, and room for temporary files."""
NOTHING = "# None of netkit's files is there.\n"
"""The list of a host without files of netkit, which is a valid state to roll back to."""


def entries(files: Files, device: str) -> list[dict[str, str]]:
    """Add path and mode to the rendered files; DeviceError if the list of them is missing or invalid."""
    found = []
    for line in files.get(LIST, "").splitlines():
        if line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            if match is None or match[2] not in files:
                raise DeviceError(Problem(f"{device}: {LIST}: {line!r} is not `mode file place`", "render it again"))
            found.append({"path": match[3], "mode": match[1], "content": files[match[2]]})
    if not found and files.get(LIST) != NOTHING:
        raise DeviceError(
            Problem(f"{device}: {LIST} is missing, so the places of its files are unknown", "render it again")
        )
    return found


def staged(found: Iterable[Mapping[str, str]], secrets: Iterable[str] = ()) -> str:
    """Write the staging file of the playbook, with the secrets that it must not print."""
    return json.dumps({"files": list(found), "secrets": sorted(secrets)})


def read_command() -> str:
    """Build the command that prints every file of netkit on a host."""
    return READ.format(places=" ".join(PLACES))


def stage_command(place: str) -> str:
    """Build the command that stages its input as a file, unless Ansible could not change the host."""
    return STAGE.format(python=PYTHON, place=place, folder=place.rpartition("/")[0])


def running(printed: str, device: str) -> dict[str, str | None]:
    """Parse the command's output into files by their rendered names; None for absent ones.

    The list of their paths is included, so that a host can be restored exactly.
    """
    try:
        present = dict(_present(printed.splitlines()))
    except ValueError:
        raise DeviceError(Problem(f"{device}: its files cannot be read", "check its disk")) from None
    fixed = [name or place.rpartition("/")[2] for place, name in PLACES.items() if "*" not in place]
    rails = [f"10-rail{number}.{kind}" for number in range(MOST_RAILS) for kind in ("network", "link")]
    found: dict[str, str | None] = dict.fromkeys([*fixed, *rails, OIF])
    texts = {place: text for place, (_, text) in present.items()}
    # Drop-ins have one name if all rails have the same, else one for each rail.
    drop_ins = {match[1]: place for place in texts if (match := DROP_IN.fullmatch(place))}
    netplan = next((texts[place] for place, name in PLACES.items() if name == NETPLAN and place in texts), "")
    configured = set(RAIL.findall(netplan)) or set(drop_ins)
    is_shared = configured == set(drop_ins) and len({texts[place] for place in drop_ins.values()}) == 1
    names = {place: PLACES.get(place) or place.rpartition("/")[2] for place in texts}
    names |= {place: OIF if is_shared else f"{rail}.{OIF}" for rail, place in drop_ins.items()}
    found.update({names[place]: text for place, text in texts.items()})
    found[LIST] = "".join(f"{mode} {names[place]} {place}\n" for place, (mode, _) in present.items()) or NOTHING
    return found


def _present(lines: list[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the path of each file, with its mode and text; ValueError if the output is truncated."""
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


def as_root(command: str, user: str) -> str:
    """Wrap a command with sudo unless the user is root."""
    return command if user == "root" else f"sudo -n sh -c {shlex.quote(command)}"


class Reachable(Protocol):
    """Where a host is, and how to log in."""

    @property
    def host(self) -> str:
        """Address or name."""

    @property
    def port(self) -> int:
        """Port of its sshd."""

    @property
    def user(self) -> str:
        """The account."""

    @property
    def key_file(self) -> Path | None:
        """Private key; without one the agent is used."""

    @property
    def known_hosts(self) -> Path | None:
        """The only file of host keys that is used; by default the user's own."""

    @property
    def ssh_config(self) -> Path | None:
        """OpenSSH's configuration, for jump hosts."""

    @property
    def timeout_s(self) -> float:
        """Time limit of the connection, and of a sign of life."""


def variables(target: Reachable) -> dict[str, object]:
    """Build the variables with which Ansible reaches a host, without its password."""
    words = ["-oStrictHostKeyChecking=yes"]
    # A host that gives no sign of life within the time limit is lost, as over netkit's own connections.
    words += [f"-oServerAliveInterval={max(1, round(target.timeout_s / 4))}", "-oServerAliveCountMax=3"]
    words += [f"-oUserKnownHostsFile={target.known_hosts}"] if target.known_hosts is not None else []
    words += ["-F", str(target.ssh_config)] if target.ssh_config is not None else []
    words += ["-oIdentitiesOnly=yes"] if target.key_file is not None else []
    found: dict[str, object] = {
        "ansible_host": target.host,
        "ansible_port": target.port,
        "ansible_user": target.user,
        "ansible_python_interpreter": PYTHON,
        "ansible_pipelining": True,
        # One connection per step: checks after a change use a new one, and verify the host key again.
        "ansible_ssh_args": "-o ControlMaster=no -o ControlPath=none",
        "ansible_ssh_common_args": shlex.join(words),
        "ansible_timeout": max(1, round(target.timeout_s)),
    }
    if target.key_file is not None:
        found["ansible_ssh_private_key_file"] = str(target.key_file)
    if target.user != "root":
        found["ansible_become"] = True
    return found
