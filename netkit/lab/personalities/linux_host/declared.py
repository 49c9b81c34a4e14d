"""The files of a host: what they configure, where they are installed, and what a reboot keeps."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from netkit.design.fabric import Host
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.linux_host import networkd, udev, units
from netkit.lab.personalities.linux_host.machine import parameters_of
from netkit.private import without_secrets

BOOT_SYSCTLS: Mapping[tuple[str, str], str] = {
    ("ipv4", "arp_ignore"): "0",
    ("ipv4", "arp_announce"): "0",
    ("ipv4", "rp_filter"): "0",
    ("ipv6", "router_probe_interval"): "60",
}


def apply_sysctls(node: Node) -> None:
    """Reset the kernel's settings to their boot defaults, then load /etc/sysctl.d."""
    names = ("all", "default", *node.kernel_names.values())
    defaults = [
        f"net.{family}.conf.{name}.{key}={value}" for name in names for (family, key), value in BOOT_SYSCTLS.items()
    ]
    files = [f"/{SYSCTL_FOLDER}/{path.name}" for path in sorted(node.file(f"/{SYSCTL_FOLDER}").glob("*.conf"))]
    script = 'sysctl -qw "$@" || true; for file in $FILES; do sysctl -qp "$file"; done'
    result = node.run("env", f"FILES={' '.join(files)}", "sh", "-c", script, "sysctl", *defaults)
    if result.stderr:
        node.log(f"sysctl: {result.stderr.strip()}")


def parse(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield key, value and whether a failure matters; a malformed line has an empty key."""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        key, equals, value = line.partition("=")
        name = key.strip()
        yield (name.removeprefix("-"), value.strip(), not name.startswith("-")) if equals else ("", line, True)


NETWORK_FOLDER = "etc/systemd/network"
UNIT_FOLDER = "etc/systemd/system"
RULES_FOLDER = "etc/udev/rules.d"
SYSCTL_FOLDER = "etc/sysctl.d"
FIRMWARE_FILE = "etc/netkit/mlxconfig.conf"
NCCL_FILE = "etc/nccl.conf"
SCRIPT_FOLDER = "usr/local/sbin"
KEYS: Mapping[str, frozenset[str]] = {
    "Match": frozenset({"Name", "PermanentMACAddress", "MACAddress", "Path", "Property", "OriginalName", "Driver"}),
    "Link": frozenset({"Name", "MTUBytes", "RequiredForOnline", "WakeOnLan"}),
    "NetDev": frozenset({"Name", "Kind", "MTUBytes"}),
    "Bond": frozenset({"Mode", "LACPTransmitRate", "MIIMonitorSec", "TransmitHashPolicy", "MinLinks"}),
    "Network": frozenset({"Address", "Bond", "LinkLocalAddressing", "IPv6AcceptRA", "DHCP", "ConfigureWithoutCarrier"}),
    "Route": frozenset({"Destination", "Gateway", "Table", "Scope", "Type", "PreferredSource", "Metric", "MTUBytes"}),
    "RoutingPolicyRule": frozenset({"From", "To", "OutgoingInterface", "Family", "Table", "Priority"}),
}
NCCL_KEYS = frozenset(
    f"NCCL_{name}"
    for name in (
        *("IB_HCA", "IB_TC", "IB_GID_INDEX", "IB_ADDR_FAMILY", "IB_ROCE_VERSION_NUM", "IB_TIMEOUT", "IB_RETRY_CNT"),
        *("IB_QPS_PER_CONNECTION", "IB_SPLIT_DATA_ON_QPS", "IB_ADAPTIVE_ROUTING", "IB_PCI_RELAXED_ORDERING"),
        *("IB_AR_THRESHOLD", "IB_SL", "IB_DISABLE", "IB_CUDA_SUPPORT", "GIN_IB_TC", "SOCKET_IFNAME", "SOCKET_FAMILY"),
        *("CROSS_NIC", "NET_GDR_LEVEL", "NET_GDR_READ", "PXN_DISABLE", "NVLS_ENABLE", "DMABUF_ENABLE", "TOPO_FILE"),
        *("ALGO", "PROTO", "BUFFSIZE", "MIN_NCHANNELS", "MAX_NCHANNELS", "IGNORE_CPU_AFFINITY"),
        *("DEBUG", "DEBUG_SUBSYS", "DEBUG_FILE"),
    )
)
Section = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Declared:
    """The configuration a host's files describe."""

    links: Mapping[str, frozenset[Section]]
    """Name of each networkd unit, netplan's among them, with its drop-ins → its sections."""
    sysctls: Mapping[str, str]
    names: Mapping[str, udev.UdevOutcome]
    """Interface and RDMA device of each rail → what udev makes of it."""
    services: Mapping[str, Mapping[str, tuple[str, ...]]]
    scripts: frozenset[str]
    firmware: Mapping[str, int]
    nccl: Mapping[str, str]


def declare(top: Path, host: Host) -> Declared:
    """Read the files below a folder; raise ConfigRefusedError with every problem."""
    reader = _Reader(top, host)
    names = reader.names()
    found = Declared(
        links=reader.links(),
        sysctls=reader.sysctls(),
        names=names,
        services=reader.services(names),
        scripts=reader.scripts(),
        firmware=reader.firmware(),
        nccl=reader.nccl(),
    )
    if reader.problems:
        raise ConfigRefusedError("\n".join(reader.problems))
    return found


class _Reader:
    """Reads one host's files and collects their problems."""

    def __init__(self, top: Path, host: Host) -> None:
        self._top = top
        self._host = host
        self.problems: list[str] = []

    def links(self) -> Mapping[str, frozenset[Section]]:
        """The units that networkd reads, by name."""
        found: dict[str, list[Section]] = {}
        with tempfile.TemporaryDirectory() as scratch:
            folders = [self._top / NETWORK_FOLDER, *self._from_netplan(Path(scratch))]
            for folder in folders:
                for file in sorted(folder.rglob("*")):
                    if file.is_file() and file.suffix in {".network", ".link", ".netdev", ".conf"}:
                        unit = file.parent.name.removesuffix(".d") if file.suffix == ".conf" else file.name
                        found.setdefault(unit, []).extend(self._sections(file))
        known = {name for name in found if name.endswith((".network", ".link", ".netdev"))}
        self.problems += [f"{name}: not a unit" for name in set(found) - known]
        return {name: frozenset(sections) for name, sections in found.items()}

    def _from_netplan(self, scratch: Path) -> Iterator[Path]:
        files = sorted((self._top / "etc/netplan").glob("*.yaml"))
        if not files:
            return
        (scratch / "etc/netplan").mkdir(parents=True)
        for file in files:
            (scratch / "etc/netplan" / file.name).write_bytes(file.read_bytes())
            (scratch / "etc/netplan" / file.name).chmod(0o600)
        command = [networkd.generator(), "--root-dir", str(scratch)]
        result = subprocess.run(  # noqa: S603 - a fixed command
            command, env=without_secrets(), capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            self.problems.append(f"netplan: {result.stderr.replace(str(scratch), '').strip()}")
        yield scratch / "run/systemd/network"

    def _sections(self, file: Path) -> Iterator[Section]:
        name = ""
        rows: list[tuple[str, str]] = []
        for section, key, value in [*units.sections(file.read_text(encoding="utf-8")), ("", "", "")]:
            if not key and value:
                self.problems.append(f"{file.name}: {value!r} is not a setting")
            elif not key:
                if name:
                    yield name, tuple(sorted(rows))
                name, rows = section, []
                if section and section not in KEYS:
                    self.problems.append(f"{file.name}: unknown section [{section}]")
            elif key not in KEYS.get(name, frozenset()):
                self.problems.append(f"{file.name}: unknown key {key!r} in section [{name}]")
            else:
                rows.append((key, value))

    def sysctls(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        interfaces = {"all", "default", *(nic.interface for nic in self._host.nics)}
        for file in sorted((self._top / SYSCTL_FOLDER).glob("*.conf")):
            for key, value, _ in parse(file.read_text(encoding="utf-8")):
                words = key.split(".")
                is_number = value.isdecimal() if words[1:2] == ["ipv6"] else value in {"0", "1", "2"}
                if len(words) != 5 or words[0::2][:2] != ["net", "conf"] or words[3] not in interfaces:
                    self.problems.append(f"{file.name}: unknown key {key or value!r}")
                elif (words[1], words[4]) not in BOOT_SYSCTLS or not is_number:
                    self.problems.append(f"{file.name}: unsupported {key} = {value}")
                found[key] = value
        return found

    def names(self) -> Mapping[str, udev.UdevOutcome]:
        """The outcome of the udev rules for the rail NICs and for devices they must not match."""
        rules: list[tuple[udev.Token, ...]] = []
        for file in sorted((self._top / RULES_FOLDER).glob("*.rules")):
            try:
                rules += udev.rules(file.read_text(encoding="utf-8"), file.name)
            except udev.RuleError as error:
                self.problems.append(str(error))
        return {name: udev.apply(rules, device) for name, device in self._devices()}

    def _devices(self) -> Iterator[tuple[str, udev.Device]]:
        for nic in self._host.nics:
            yield nic.interface, udev.network_device(nic.interface, nic.pci)
            yield f"{nic.interface}-gone", udev.network_device(nic.interface, nic.pci, "remove")
            yield f"{nic.interface}-function", udev.function_of(nic.pci)
            yield f"{nic.interface}-representor", udev.representor_of(nic.pci)
            yield nic.rdma, udev.rdma_device(nic.rdma, nic.pci)
        yield "unrelated", udev.network_device("eth9", "0000:01:00.0")
        yield "other-subsystem", {**udev.network_device("x", self._host.nics[0].pci), "SUBSYSTEM": "block"}

    def services(self, names: Mapping[str, udev.UdevOutcome]) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        found = {}
        for file in sorted((self._top / UNIT_FOLDER).glob("*.service")):
            try:
                found[file.name] = units.load(file.name, file, f"/{UNIT_FOLDER}/{file.name}", is_strict=True).settings
            except units.UnitError as error:
                self.problems.append(str(error))
        started = {unit for outcome in names.values() for unit in outcome.wants}
        missing = sorted(unit for unit in started if units.template(unit) not in found)
        self.problems += [f"udev wants {unit}, which no file describes" for unit in missing]
        return found

    def scripts(self) -> frozenset[str]:
        scripts = {f"/{path.relative_to(self._top)}": path for path in (self._top / SCRIPT_FOLDER).glob("*")}
        for name, path in scripts.items():
            if not path.stat().st_mode & 0o111:
                self.problems.append(f"{name} is not executable")
        return frozenset(scripts)

    def firmware(self) -> Mapping[str, int]:
        """The firmware parameters of the NICs, including defaults."""
        parameters = parameters_of(self._host)
        found = {parameter.name: parameter.default for parameter in parameters.values()}
        for key, value in self._assignments(FIRMWARE_FILE).items():
            parameter = parameters.get(key)
            number = parameter.read(value) if parameter else None
            if number is None:
                self.problems.append(f"{FIRMWARE_FILE}: {key}={value} is unknown to the NICs")
            else:
                found[key] = number
        return found

    def nccl(self) -> Mapping[str, str]:
        found = self._assignments(NCCL_FILE)
        for key, value in found.items():
            if key not in NCCL_KEYS or not value:
                self.problems.append(f"{NCCL_FILE}: {key}={value} is unknown to NCCL")
        return found

    def _assignments(self, file: str) -> Mapping[str, str]:
        path = self._top / file
        if path.exists():
            lines = settings_of(path.read_text(encoding="utf-8"))
            self.problems += [f"{file}: {line!r} is not a setting" for line in lines if "=" not in line]
        return assignments(path)


def settings_of(text: str) -> list[str]:
    """The lines that are neither empty nor comments."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def assignments(path: Path) -> Mapping[str, str]:
    """Read a file of `key=value` lines; empty if there is no file."""
    try:
        lines = settings_of(path.read_text(encoding="utf-8"))
    except OSError:
        return {}
    rows = [line.partition("=") for line in lines]
    return {key: value for key, equals, value in rows if equals}


INSTALL_LIST = "install.txt"
INSTALL_LINE = re.compile(r"(0[0-7]{3}) (\S+) (/\S+)\Z")
FOLDERS = (
    "/etc/netplan",
    "/etc/systemd/network",
    "/etc/systemd/system",
    "/etc/sysctl.d",
    "/etc/udev/rules.d",
    "/etc/netkit",
    "/usr/local/sbin",
)
FILES = ("/etc/nccl.conf",)
INSTALLED = "/run/netkit/installed"


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """A line of install.txt."""

    mode: int
    file: str
    target: str


def installs(files: Mapping[str, str]) -> tuple[InstalledFile, ...]:
    """Parse install.txt; raise ConfigRefusedError with every problem."""
    found, problems = [], []
    for line in files.get(INSTALL_LIST, "").splitlines():
        if not line or line.startswith("#"):
            continue
        match = INSTALL_LINE.match(line)
        if match is None:
            problems.append(f"{INSTALL_LIST}: {line!r} is not 'mode file target'")
            continue
        found.append(InstalledFile(int(match[1], 8), match[2], match[3]))
    problems += _install_problems(found, files)
    if problems:
        raise ConfigRefusedError("\n".join(problems))
    return tuple(found)


def _install_problems(found: Iterable[InstalledFile], files: Mapping[str, str]) -> Iterator[str]:
    listed, targets = set(), set()
    for install in found:
        target = install.target
        if install.file not in files:
            yield f"{INSTALL_LIST}: there is no file {install.file}"
        if ".." in target or not (target in FILES or target.startswith(tuple(f"{folder}/" for folder in FOLDERS))):
            yield f"{INSTALL_LIST}: nothing may be installed as {target}"
        if target in targets:
            yield f"{INSTALL_LIST}: {target} is listed twice"
        listed.add(install.file)
        targets.add(target)
    for file in sorted(set(files) - listed - {INSTALL_LIST}):
        yield f"{file}: {INSTALL_LIST} does not list it"


def write(top: Path, files: Mapping[str, str], found: Iterable[InstalledFile]) -> None:
    """Replace the installed files below a folder."""
    shutil.rmtree(top, ignore_errors=True)
    for install in found:
        path = top / install.target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[install.file], encoding="utf-8")
        path.chmod(install.mode)


def restore(node: Node) -> None:
    """Copy the saved files to a new disk; after a mere power-off the disk still has its files."""
    marker = node.file(INSTALLED)
    if marker.exists():
        return
    node.run("mount", "-t", "tmpfs", "-o", "mode=755", "disk", "/usr/local/sbin")
    for folder in FOLDERS:
        node.file(folder).mkdir(parents=True, exist_ok=True)
    saved = node.saved / "disk"
    for path in sorted(saved.rglob("*")):
        if path.is_file():
            target = node.file(f"/{path.relative_to(saved)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    marker.touch()


def save(node: Node) -> None:
    """Save the files that are on the disk now."""
    saved = node.saved / "disk"
    shutil.rmtree(saved, ignore_errors=True)
    for place in (*FOLDERS, *FILES):
        source, target = node.file(place), saved / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.is_file():
            shutil.copy(source, target)
