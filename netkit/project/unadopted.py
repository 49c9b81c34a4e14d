"""Devices that no intent has yet: what each runs and which neighbours it hears, saved for `netkit adopt`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from netkit.access import settings
from netkit.access.endpoints import lab_endpoints, listed_endpoints
from netkit.access.secrets import SecretStore
from netkit.access.settings import PlatformName
from netkit.errors import ConfigError, Problem, UsageError
from netkit.facts import Absent, Facts
from netkit.facts.device import without_domain
from netkit.intent import csv_table
from netkit.intent.complaint import problem
from netkit.intent.scalars import DottedName
from netkit.lab.folder import lab_folder
from netkit.observe import Collected, CollectOptions, Target, collect, target
from netkit.platforms import HOSTS
from netkit.platforms.backup import joined, separated, without_secrets
from netkit.platforms.compare import MODELS
from netkit.platforms.config import VERSION
from netkit.platforms.secrets import masked_line
from netkit.platforms.view import Viewer, ViewSubject
from netkit.project.adopting import COLUMNS
from netkit.project.connections import Connections, lab_path
from netkit.project.observing import OnlyViewing
from netkit.project.project import Feedback

READING = "reading"
WANTED = frozenset({"neighbors", "interfaces"})
HOST_FILES = """\
for file in /etc/netplan/*.yaml /etc/systemd/network/*.network /etc/systemd/network/*.link /etc/udev/rules.d/*.rules \
/etc/nccl.conf $(grep -lsE 'mlnx_qos|cnp_dscp|dcb |mlxconfig' /etc/*.conf /etc/*.sh /etc/systemd/system/*.service \
/usr/local/bin/* /usr/local/sbin/*); do
[ -f "$file" ] && echo "==> ${file##*/} <==" && cat "$file"; done; true"""
"""Prints the files of a host that adopt reads, whatever their names."""


class ListedDevice(BaseModel):
    """A row of a list of devices."""

    device: DottedName
    platform: PlatformName
    address: str = ""


class _HostViewer(OnlyViewing):
    """A host that netkit did not configure: its files under all names, and those of netkit."""

    def __init__(self, viewer: Viewer) -> None:
        super().__init__(viewer)
        self.running_files = lambda: {**viewer.running_files(), **separated(viewer.ask((HOST_FILES,))[0].text)}


def listed(file: Path) -> list[ListedDevice]:
    """Read a list of devices: a CSV file with device, platform and, unless DNS has it, address."""
    table = csv_table.read(file, ListedDevice)
    found: list[ListedDevice] = []
    for row, line in zip(table.rows, table.lines, strict=True):
        try:
            found.append(ListedDevice.model_validate(row))
            if row["device"] in {one.device for one in found[:-1]}:
                table.refuse(f"{row['device']!r} is there twice", "keep one", line, "device")
        except ValidationError as error:
            wrong = problem(error.errors()[0])
            table.refuse(wrong.message, wrong.remedy, line, str(wrong.path[0]))
    if table.problems or not found:
        raise UsageError(table.problems or Problem(f"{file} lists no devices", "one in each line"))
    return found


def connections(devices: Sequence[ListedDevice], folder: Path, lab: str) -> Connections:
    """Find how listed devices are reached, with the access.yaml of a folder; those of a lab need no list."""
    access = settings.load(folder)
    secrets = SecretStore(access.secrets)
    if lab:
        path = lab_path(lab)
        return Connections(lab_endpoints(lab_folder(lab).record(), path, access), secrets, lab)
    rows = [(one.device, one.platform, one.address or access.addresses.get(one.device, one.device)) for one in devices]
    return Connections(listed_endpoints([(*row, "") for row in rows], access, folder), secrets)


@dataclass(frozen=True)
class Unadopted:
    """What was read of devices."""

    texts: Mapping[str, str]
    """Device → what it runs, as a backup has it."""
    cables: Sequence[Mapping[str, str]]
    """LLDP neighbours as rows of a list of cables."""
    missed: Mapping[str, str]
    """Device → why it is not there."""


def read(reached: Connections, names: Sequence[str], feedback: Feedback) -> Unadopted:
    """Read devices, each over one connection that cannot change anything."""
    platforms = {name: reached.endpoint(name).platform for name in names}

    def viewer(name: str) -> Viewer:
        only = _HostViewer if platforms[name] == HOSTS else OnlyViewing
        return only(reached.viewer(name))

    with feedback.progress(READING, len(names)) as count:
        targets = [_target(name, platform) for name, platform in platforms.items()]
        found = collect("", targets, viewer, CollectOptions(has_config=True), count)
    texts: dict[str, str] = {}
    missed: dict[str, str] = {}
    for name, platform in platforms.items():
        try:
            texts[name] = _text(platform, name, found)
        except ConfigError as error:
            missed[name] = f"its configuration cannot be parsed: {error.problems[0]}"
        else:
            if not texts[name]:
                del texts[name]
                missed[name] = found.snapshot.devices[name].failure or "it returns no configuration"
    facts = {name: one.facts for name, one in found.snapshot.devices.items()}
    return Unadopted(texts, list(cables(facts)), missed)


def _target(name: str, platform: str) -> Target:
    whole = target(platform, ViewSubject(name, platform=platform))
    return replace(whole, views=tuple(view for view in whole.views if view.yields & WANTED))


def _text(platform: str, name: str, found: Collected) -> str:
    """What a device runs, as a backup has it; empty if it could not be read."""
    config = found.configs.get(name)
    if config is None:
        return ""
    model = MODELS[platform]
    files = {file: text for file, text in config.files.items() if model.reads(file)}
    others = {file: text for file, text in config.files.items() if file not in files and text and platform == HOSTS}
    masked = {file: "".join(f"{masked_line(line)}\n" for line in text.splitlines()) for file, text in others.items()}
    version = {} if platform == HOSTS else {VERSION: f"{config.version}\n"}
    return joined({**without_secrets(model, files, {}), **masked, **version})


def cables(facts: Mapping[str, Facts]) -> Iterator[dict[str, str]]:
    """Yield the neighbours of all devices; a port may announce another name that only its device can translate."""
    aliases: dict[tuple[str, str], str] = {}
    for name, one in facts.items():
        for port, state in {} if isinstance(one.interfaces, Absent) else one.interfaces.items():
            aliases |= {(name, port): port, (name, state.alias): port}
    for name, one in facts.items():
        for port, neighbors in {} if isinstance(one.neighbors, Absent) else one.neighbors.items():
            for neighbor in neighbors[:1]:
                system = without_domain(neighbor.system, facts.get)
                known = (aliases.get((system, one)) for one in (neighbor.port, neighbor.description))
                far = system, next(filter(None, known), neighbor.port)
                if all(far):
                    yield dict(zip(COLUMNS, (name, port, *far), strict=True))
