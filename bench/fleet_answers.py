"""What the devices of a large fabric answer, made from what three devices of a small lab answered.

A host answers what the recorded host did, under names, addresses and serial numbers of its own. A switch answers for
each of its ports what a recorded port of the same role did. Counters are answered twice; in between each port has sent
and received the same amount.
"""

import json
import marshal
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import fabrics
from bench.fabrics import Shape
from bench.measure import BenchError, environment
from netkit.design import Fabric, Host, Port, Switch
from netkit.design.expectation import expectations
from netkit.observe import subject
from netkit.platforms.linux.facts import command, probe
from netkit.platforms.view import Reply
from netkit.project.project import Project

RECORDED = Shape(units=2, hosts=2, spines=2)
PLATFORM = "eos"
LAB = "benchfleet"
SECRETS = {f"NETKIT_SECRET_{name}": "bench-bench-bench" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")}
BYTES, PACKETS, CNPS = 400_000_000, 100_000, 500
"""What each port sends and receives between two readings."""
Recording = Mapping[str, Mapping[str, str]]
"""`host`, `leaf` or `spine` → command → answer."""
Answers = dict[str, tuple[str, str]]
"""Command → the answers before and after."""
SERIAL = re.compile(r"\bMT\d{4}[A-Z0-9]{8}\b")


def record(home: Path, file: Path) -> None:
    """Boot a small lab, and write what a host, a leaf and a spine answer to all commands of their views."""
    folder = fabrics.write(home / "recorded", RECORDED, PLATFORM)
    settings = {"NETKIT_LAB_DIR": str(home), "NETKIT_STATE_DIR": str(home / "state"), **SECRETS}
    netkit = str(Path(sys.executable).with_name("netkit"))

    def run(*words: str) -> None:
        done = subprocess.run(words, env=environment() | settings, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"{' '.join(words[:4])}: {done.stdout}{done.stderr}")

    run(netkit, "lab", "up", "--fabric", str(folder), "--lab", LAB)
    try:
        run(sys.executable, "-m", "bench.fleet_record", str(folder), LAB, str(file))
    finally:
        run(netkit, "lab", "down", "--lab", LAB)


def write(recording: Recording, project: Project, folder: Path) -> None:
    """Write the answers of all devices of a fabric, a file for each."""
    made = AnswerMaker(recording, project)
    for switch in project.fabric.switches:
        (folder / switch.name).write_bytes(marshal.dumps(made.of_switch(switch)))
    for host in project.fabric.hosts:
        (folder / host.name).write_bytes(marshal.dumps(made.of_host(host)))


class RecordedViewer:
    """A connection to a device that answers from a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._answers: Answers = {}
        self._asked = set[str]()

    def open(self) -> None:
        self._answers = marshal.loads(self._file.read_bytes())  # noqa: S302 (written by this benchmark)

    def close(self) -> None:
        self._answers = {}

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        at_s = time.time()
        return tuple(self._reply(one, at_s) for one in commands)

    def _reply(self, asked: str, at_s: float) -> Reply:
        found = self._answers.get(asked)
        if found is None:
            return Reply("", "exit code 127", at_s)
        is_again = asked in self._asked
        self._asked.add(asked)
        return Reply(found[is_again], "" if found[is_again] else "exit code 1", at_s)

    def running_files(self) -> Mapping[str, str | None]:
        raise NotImplementedError

    def os_version(self) -> str:
        raise NotImplementedError


class AnswerMaker:
    """Makes the answers of the devices of a fabric."""

    def __init__(self, recording: Recording, project: Project) -> None:
        self._recording, self._project, self._fabric = recording, project, project.fabric
        self._expected = expectations(project.fabric)
        self._host = _RecordedHost(recording["host"], project.fabric)
        switches = {
            name: {asked: _parsed(text) for asked, text in recording[name].items()} for name in ("leaf", "spine")
        }
        self._ports = _templates(switches)
        self._switch = switches["leaf"]

    def of_host(self, host: Host) -> Answers:
        return self._host.answers(host)

    def of_switch(self, switch: Switch) -> Answers:
        one = _SwitchAnswers(self._fabric, switch, self._ports)
        running = self._project.render(switch.name)[switch.name]
        special: dict[str, Callable[[], str]] = {
            "show running-config sanitized": lambda: _running(running),
            "show hostname": lambda: json.dumps({"hostname": switch.name, "fqdn": switch.name}),
            "show version": lambda: json.dumps({**self._switch["show version"], "serialNumber": f"LAB-{switch.name}"}),
            "show lldp neighbors detail": one.neighbors,
            "show bgp neighbors vrf all": one.sessions,
            "show ip bgp summary vrf all": one.summary,
            "show bfd peers": one.bfd,
            "show ip route": lambda: one.routes(self._expected[switch.name].widths),
            "show inventory": one.inventory,
            "show logging last 1 days | grep LINEPROTO": lambda: "",
        }
        found: Answers = {}
        for asked, node in self._switch.items():
            if asked in special:
                before = after = special[asked]()
            elif isinstance(node, str):
                before = after = one.lines(asked, node)
            else:
                tree = one.expanded(asked, node)
                before = json.dumps(tree)
                one.count(asked, tree, self._fabric)
                after = json.dumps(tree)
            found[asked] = before, after
        return found


def _parsed(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


LANES = ("1", "5")


def _templates(switches: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[tuple[str, str], tuple[str, str]]]:
    """For each command, by role and lane, a recorded port and its part of the answer, as text."""
    sources = {"host": ("leaf", "Ethernet1"), "up": ("leaf", "Ethernet33"), "down": ("spine", "Ethernet1")}
    found: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}
    for role, (device, cage) in sources.items():
        for asked, node in switches[device].items():
            if not isinstance(node, str):
                for lane in LANES:
                    port = f"{cage}/{lane}"
                    part = _part(node, port)
                    if part is not None:
                        found.setdefault(asked, {})[role, lane] = port, json.dumps(part)
    return found


def _part(node: Any, port: str) -> Any:
    """What an answer has under the name of a port, wherever."""
    if not isinstance(node, dict):
        return None
    if port in node:
        return node[port]
    return next((part for one in node.values() if (part := _part(one, port)) is not None), None)


class _SwitchAnswers:
    """Makes the answers of one switch."""

    def __init__(
        self, fabric: Fabric, switch: Switch, templates: Mapping[str, Mapping[tuple[str, str], tuple[str, str]]]
    ) -> None:
        self._fabric, self._switch, self._templates = fabric, switch, templates

    def expanded(self, asked: str, node: Any) -> Any:
        """An answer with a part for each port of this switch in place of the recorded ones."""
        if not isinstance(node, dict):
            return node
        if any(name.startswith("Ethernet") for name in node):
            others = {name: one for name, one in node.items() if not name.startswith("Ethernet")}
            return others | {port.name: self._port(asked, port) for port in self._switch.ports}
        return {name: self.expanded(asked, one) for name, one in node.items()}

    def _port(self, asked: str, port: Port) -> Any:
        recorded, text = self._templates[asked][port.role, port.name.rpartition("/")[2]]
        salt = f"{self._switch.name} {port.cage}"
        return json.loads(SERIAL.sub(lambda found: _serial(found[0], salt), text.replace(recorded, port.name)))

    def lines(self, asked: str, text: str) -> str:
        """A table, or blocks of lines, with one for each port of this switch."""
        if asked == "show interfaces transceiver hardware":
            (block, *_) = text.split("\n\n")
            return "\n\n".join(block.replace("Ethernet1/1", port.name) for port in self._switch.ports) + "\n"
        head = [line for line in text.splitlines() if not line.startswith("Ethernet")]
        row = next((line for line in text.splitlines() if line.startswith("Ethernet1/1 ")), "")
        rows = [f"{port.name:<12}{row[12:]}" for port in self._switch.ports] if row else []
        return "\n".join((*head, *rows)) + "\n"

    def count(self, asked: str, tree: Any, fabric: Fabric) -> None:
        """Add what each port counts between two readings."""
        if asked == "show interfaces":
            for port in self._switch.ports:
                counters = tree["interfaces"][port.name]["interfaceCounters"]
                for name, more in (("Octets", BYTES), ("UcastPkts", PACKETS)):
                    counters[f"in{name}"] += more
                    counters[f"out{name}"] += more
        if asked == "show interfaces counters queue detail":
            roce, cnp = fabric.lossless.roce.priority, fabric.lossless.cnp.priority
            for port in self._switch.ports:
                queues = tree["egressQueueCounters"]["interfaces"][port.name]["ucastQueues"]["trafficClasses"]
                _queue(queues, roce, PACKETS, BYTES)
                if port.role == "host":
                    _queue(queues, cnp, CNPS, CNPS * 64)

    def neighbors(self) -> str:
        found = {}
        for port in self._switch.ports:
            far = self._fabric.device(port.peer)
            if isinstance(far, Host):
                mac = _dotted(_mac(far.name, port.peer_port))
                inside = {"interfaceId": mac, "interfaceIdType": "macAddress", "interfaceDescription": port.peer_port}
            else:
                mac = _dotted(_mac(port.peer, ""))
                inside = {"interfaceId": f'"{port.peer_port}"', "interfaceId_v2": port.peer_port}
                inside["interfaceDescription"] = f"{self._switch.name}:{port.name}"
            about = {"chassisId": mac, "systemName": port.peer, "neighborInterfaceInfo": inside}
            found[port.name] = {"lldpNeighborInfo": [about]}
        return json.dumps({"lldpNeighbors": found})

    def sessions(self) -> str:
        shared = {"state": "Established", "bfdState": "up", "prefixesReceived": 31, "prefixesSent": 2}
        peers = [
            {"peerAddress": _peer(port), "ifName": port.name, "asn": str(port.peer_asn), "establishedTime": 90_000}
            | shared
            for port in self._switch.fabric_ports
        ]
        return json.dumps({"vrfs": {"default": {"peerList": peers}}})

    def summary(self) -> str:
        peers = {
            _peer(port): {
                "asn": str(port.peer_asn),
                "prefixReceived": 31,
                "prefixAccepted": 31,
                "peerState": "Established",
                "underMaintenance": False,
            }
            for port in self._switch.fabric_ports
        }
        return json.dumps({"vrfs": {"default": {"peers": peers}}})

    def bfd(self) -> str:
        peers = {
            _peer(port).partition("%")[0]: {"peerStats": {port.name: {"status": "up", "l3intf": port.name}}}
            for port in self._switch.fabric_ports
        }
        return json.dumps({"vrfs": {"default": {"ipv4Neighbors": {}, "ipv6Neighbors": peers}}})

    def routes(self, widths: Mapping[str, int]) -> str:
        """The routes a switch must have, over the expected number of its uplinks, or of its ports down."""
        ups = [port for port in self._switch.fabric_ports if port.role == "up"]
        ports = ups or list(self._switch.fabric_ports)
        vias = [
            {"nexthopAddr": _peer(port).partition("%")[0], "interface": port.name}
            for port in (*ports, *(port for port in self._switch.fabric_ports if port not in ports))
        ]
        head = {"hardwareProgrammed": True, "routeType": "eBGP", "routeAction": "forward", "preference": 20}
        found = {prefix: {**head, "vias": vias[:width]} for prefix, width in widths.items()}
        return json.dumps({"vrfs": {"default": {"routes": found}}})

    def inventory(self) -> str:
        text = self._templates["show interfaces transceiver dom thresholds"]["host", "1"][1]
        recorded = json.loads(text)["vendorSn"]
        slots = {
            str(port.cage): {
                "mfgName": "NVIDIA",
                "modelName": "MMS4X00-NS",
                "serialNum": _serial(recorded, f"{self._switch.name} {port.cage}"),
                "hardwareRev": "A3",
            }
            for port in self._switch.ports
        }
        return json.dumps({"systemInformation": {"name": self._switch.model.name}, "xcvrSlots": slots})


def _queue(queues: Any, priority: int, packets: int, octets: int) -> None:
    counts = queues[f"TC{priority}"]["dropPrecedences"]["DP0"]
    counts["enqueuedPackets"] += packets
    counts["enqueuedBytes"] += octets


def _running(files: Mapping[str, str | None]) -> str:
    text = next(iter(files.values())) or ""
    return text if text.endswith("end\n") else f"{text}end\n"


def _peer(port: Port) -> str:
    number = zlib.crc32(port.name.encode())
    return f"fe80::{number >> 16:x}:{number & 0xFFFF:x}%{port.name.replace('Ethernet', 'Et')}"


def _serial(recorded: str, salt: str) -> str:
    return f"{recorded[:6]}{zlib.crc32(f'{recorded} {salt}'.encode()):08X}"


def _mac(device: str, port: str) -> str:
    number = zlib.crc32(f"{device} {port}".encode())
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x10, *number.to_bytes(4, "big")))


def _dotted(mac: str) -> str:
    digits = mac.replace(":", "")
    return ".".join(digits[at : at + 4] for at in (0, 4, 8))


HOST_COUNTED = {
    **dict.fromkeys(("rx_bytes", "tx_bytes", "rx_bytes_phy", "tx_bytes_phy"), BYTES),
    **dict.fromkeys(("rx_packets", "tx_packets", "rx_packets_phy", "tx_packets_phy"), PACKETS),
    **dict.fromkeys(("rx_vport_rdma_unicast_bytes", "tx_vport_rdma_unicast_bytes"), BYTES),
    **dict.fromkeys(("rx_vport_rdma_unicast_packets", "tx_vport_rdma_unicast_packets"), PACKETS),
    **dict.fromkeys(("np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets"), CNPS),
}


class _RecordedHost:
    """Makes the answers of hosts."""

    def __init__(self, recorded: Mapping[str, str], fabric: Fabric) -> None:
        self._recorded, self._fabric = recorded, fabric
        files = next(text for asked, text in recorded.items() if "/proc/sys/kernel/hostname" in asked)
        self._name = re.search(r"kernel/hostname\0(\S+)", files)[1]  # type: ignore[index]
        self._links = {one["ifname"]: one for one in json.loads(recorded[command.ADDRESSES])}
        lossless = fabric.lossless
        counted = HOST_COUNTED | {
            f"{way}_prio{priority}_{what}": count
            for way in ("rx", "tx")
            for priority, packets, octets in (
                (lossless.roce.priority, PACKETS, BYTES),
                (lossless.cnp.priority, CNPS, CNPS * 64),
            )
            for what, count in (("packets", packets), ("bytes", octets))
        }
        self._counted = counted
        self._count = re.compile(rf"(?<=[/ ])({'|'.join(counted)})(\0|: )(\d+)")

    def answers(self, host: Host) -> Answers:
        renamed = self._renamed(host)
        about = subject(self._fabric, host)
        special = {
            command.lookups(about): _lookups(host, about.lookups),
            probe.command(about): self._probes(probe.asked(about)),
        }
        found: Answers = {asked: (text, text) for asked, text in special.items()}
        for asked, text in self._recorded.items():
            if not asked.startswith(("exec 3", "m=do")):
                before = self._neighbors(host) if asked == command.LLDP else renamed(text)
                found[asked] = before, self._count.sub(self._more, before)
        return found

    def _more(self, found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}{int(found[3]) + self._counted[found[1]]}"

    def _renamed(self, host: Host) -> Callable[[str], str]:
        """What puts the names and addresses of a host in the place of the recorded ones."""
        names = {self._name: host.name}
        for nic in host.nics:
            link = self._links[nic.interface]
            before = next(one["local"] for one in link["addr_info"] if one["family"] == "inet")
            names |= {before: nic.address, _hexadecimal(before): _hexadecimal(nic.address)}
            names[link["address"]] = _mac(host.name, nic.interface)
        words = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w-]|\.\d)")

        def renamed(text: str) -> str:
            text = words.sub(lambda found: names[found[0]], text)
            return SERIAL.sub(lambda found: _serial(found[0], host.name), text)

        return renamed

    def _neighbors(self, host: Host) -> str:
        found = json.loads(self._recorded[command.LLDP])
        nics = {nic.interface: nic for nic in host.nics}
        for one in found["lldp"][0]["interface"]:
            nic = nics[one["name"]]
            chassis, port = one["chassis"][0], one["port"][0]
            chassis["id"][0]["value"], chassis["name"][0]["value"] = _mac(nic.leaf, ""), nic.leaf
            port["id"][0]["value"], port["descr"][0]["value"] = nic.leaf_port, f"{host.name}:{nic.interface}"
        return json.dumps(found, indent=2)

    def _probes(self, asked: Sequence[tuple[str, str, str, int]]) -> str:
        return "".join(_probe(number, *one) for number, one in enumerate(asked))


def _lookups(host: Host, asked: Sequence[tuple[str, str, str]]) -> str:
    gateways = {nic.interface: nic.gateway for nic in host.nics}
    routes = [
        {"dst": to, "from": source, "gateway": gateways[interface], "dev": interface, "table": "100", "flags": []}
        for source, interface, to in asked
    ]
    return "\n".join((*(json.dumps([route]) for route in routes), "#@ complaints", "")) + "\n"


def _probe(number: int, source: str, interface: str, to: str, size: int) -> str:
    inside = size - probe.OVERHEAD_BYTES[4]
    lines = [
        f"PING {to} ({to}) from {source} {interface}: {inside}({size}) bytes of data.",
        *(f"{inside + 8} bytes from {to}: icmp_seq={at} ttl=61 time=0.0{50 + at} ms" for at in range(1, 11)),
        f"\n--- {to} ping statistics ---",
        "10 packets transmitted, 10 received, 0% packet loss, time 505ms",
        "rtt min/avg/max/mdev = 0.051/0.056/0.060/0.003 ms",
    ]
    return f"\n#@ probe {number}\n" + "\n".join(lines) + "\n#= end\n"


def _hexadecimal(address: str) -> str:
    first, second, third, fourth = (int(part) for part in address.split("."))
    return f"{first:02x}{second:02x}:{third:02x}{fourth:02x}"
