"""Where the files of a GPU host go, and what of them is there."""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping

from netkit.errors import DeviceError, Problem
from netkit.platforms.config import Files

LIST = "install.txt"
LINE = re.compile(r"(0[0-7]{3}) (\S+) (/\S+)")
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
READ = "for f in {places}; do if [ -f $f ]; then echo $(stat -c %04a $f) $f $(base64 -w0 $f); fi; done; echo end"
"""Prints each file on a line, as base64: whatever is in it, it cannot be taken for another."""
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
    lines = printed.splitlines()
    try:
        there = dict(map(_file, lines[:-1]))
    except ValueError:
        lines = []
    if lines[-1:] != ["end"]:
        raise DeviceError(Problem(f"{device}: its files cannot be read", "look at its disk"))
    found = _absent()
    names = _names({place: text for place, (_, text) in there.items()})
    found.update({names[place]: text for place, (_, text) in there.items()})
    found[LIST] = "".join(f"{mode} {names[place]} {place}\n" for place, (mode, _) in there.items()) or NOTHING
    return found


def _file(line: str) -> tuple[str, tuple[str, str]]:
    mode, place, *text = line.split(" ")
    return place, (mode, base64.b64decode("".join(text), validate=True).decode("utf-8", "replace"))


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
