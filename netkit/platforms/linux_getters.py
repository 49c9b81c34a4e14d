"""NAPALM getters that the kernel and FRR serve in the same way on every switch with a Linux shell."""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

ENVIRONMENT = (
    "head -n 1 /proc/stat; sleep 1; head -n 1 /proc/stat; grep -E '^Mem(Total|Available):' /proc/meminfo; "
    "cd /sys/class/hwmon 2>/dev/null && grep -H . */name */temp*_label */temp*_input */temp*_max */temp*_crit "
    "*/fan*_label */fan*_input 2>/dev/null; true"
)
SENSOR = re.compile(
    r"^(?P<chip>[^/:]+)/(?P<kind>temp|fan)(?P<number>\d+)_(?P<what>label|input|max|crit):(?P<value>.+)$"
)
CHIP = re.compile(r"^(?P<chip>[^/:]+)/name:(?P<name>.+)$")
PROBE = re.compile(r"bytes from (?P<address>\S+?):? .*time=(?P<ms>[\d.]+) ms")
SENT = re.compile(r"(?P<sent>\d+) packets transmitted, (?P<received>\d+) (?:packets )?received")
TIMES = re.compile(r"= (?P<min>[\d.]+)/(?P<avg>[\d.]+)/(?P<max>[\d.]+)/(?P<stddev>[\d.]+) ms")
MEMORY = re.compile(r"(?P<name>MemTotal|MemAvailable): +(?P<kb>\d+)")
Row = Mapping[str, Any]


class LinuxGetters:
    """Mixin for drivers with a shell."""

    def _printed(self, command: str) -> str:
        """Run a shell command and return its output; empty if it fails."""
        raise NotImplementedError(command)

    def get_interfaces_ip(self) -> dict[str, Any]:
        """Read the addresses of each interface that has one."""
        return interfaces_ip(_rows(self._printed("ip -j address show")))

    def get_arp_table(self, vrf: str = "") -> list[dict[str, Any]]:
        """Read the kernel's IPv4 neighbours, of all VRFs or of one; ages are in seconds."""
        of_vrf = f" vrf {shlex.quote(vrf)}" if vrf else ""
        return arp_table(_rows(self._printed(f"ip -4 -j -s neighbour show{of_vrf}")))

    def get_mac_address_table(self) -> list[dict[str, Any]]:
        """Read the learned and static MAC addresses of bridges."""
        return mac_address_table(_rows(self._printed("bridge -j fdb show")))

    def get_route_to(self, destination: str = "", protocol: str = "", longer: bool = False) -> dict[str, Any]:
        """Read FRR's routes to a destination, one entry per next hop."""
        wanted = f" {ip_network(destination, strict=False)}" if destination else ""
        more = " longer-prefixes" if longer else ""
        return routes(self._printed(f"vtysh -c 'show ip route{wanted}{more} json'"), protocol)

    def get_environment(self) -> dict[str, Any]:
        """Read CPU load over one second, memory in kB, temperatures and fans; power supplies are not read."""
        return environment(self._printed(ENVIRONMENT))

    def ping(
        self,
        destination: str,
        source: str = "",
        ttl: int = 255,
        timeout: int = 2,
        size: int = 100,
        count: int = 5,
        vrf: str = "",
        source_interface: str = "",
    ) -> dict[str, Any]:
        """Ping from the switch; `timeout` applies to each packet."""
        origin = source_interface or source
        words = ["ping", "-n", f"-c{count}", f"-t{ttl}", f"-W{timeout}", f"-s{size}"]
        words += [*(["-I", origin] if origin else []), "--", destination]
        within = ["ip", "vrf", "exec", vrf] if vrf else []
        return ping_result(self._printed(f"{shlex.join([*within, *words])} 2>&1; true"))


def _rows(text: str) -> list[Row]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def interfaces_ip(links: list[Row]) -> dict[str, Any]:
    """Group addresses by interface, family and address."""
    families = {"inet": "ipv4", "inet6": "ipv6"}
    found: dict[str, Any] = {}
    for link in links:
        for one in link.get("addr_info", ()):
            if one.get("family") in families:
                of_family = found.setdefault(link["ifname"], {}).setdefault(families[one["family"]], {})
                of_family[one["local"]] = {"prefix_length": one["prefixlen"]}
    return found


def arp_table(neighbors: list[Row]) -> list[dict[str, Any]]:
    """Convert neighbours that have a link-layer address."""
    return [
        {
            "interface": one["dev"],
            "mac": one["lladdr"].upper(),
            "ip": one["dst"],
            "age": float(one.get("updated", -1)),
        }
        for one in neighbors
        if "lladdr" in one
    ]


def mac_address_table(entries: list[Row]) -> list[dict[str, Any]]:
    """Convert the entries of bridges; the number of moves is unknown."""
    return [
        {
            "mac": one["mac"].upper(),
            "interface": one["ifname"],
            "vlan": one.get("vlan", 0),
            "static": one.get("state") in {"permanent", "static"},
            "active": True,
            "moves": -1,
            "last_move": -1.0,
        }
        for one in entries
        if "master" in one and "mac" in one
    ]


def routes(text: str, protocol: str) -> dict[str, Any]:
    """Convert FRR's routes to NAPALM's form."""
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    found = {}
    for prefix, entries in answer.items() if isinstance(answer, dict) else ():
        hops = [hop for one in entries if protocol in {"", one.get("protocol")} for hop in _hops(one)]
        if hops:
            found[prefix] = hops
    return found


def _hops(route: Row) -> Iterator[dict[str, Any]]:
    for hop in route.get("nexthops", ()):
        yield {
            "protocol": route.get("protocol", ""),
            "current_active": bool(route.get("selected")),
            "last_active": bool(route.get("selected")),
            "age": _seconds(route.get("uptime", "")),
            "next_hop": hop.get("ip", ""),
            "outgoing_interface": hop.get("interfaceName", ""),
            "selected_next_hop": bool(hop.get("fib")),
            "preference": route.get("distance", -1),
            "inactive_reason": "" if hop.get("active") else "inactive",
            "routing_table": route.get("vrfName", "default"),
            "protocol_attributes": {"metric": route.get("metric", -1)},
        }


def _seconds(uptime: str) -> int:
    """Convert FRR's uptime to seconds: 01:02:03, 1d02h03m or 01w2d03h; -1 for anything else."""
    if clock := re.fullmatch(r"(\d+):(\d\d):(\d\d)", uptime):
        hours, minutes, seconds = map(int, clock.groups())
        return hours * 3600 + minutes * 60 + seconds
    units = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60}
    parts = re.findall(r"(\d+)([wdhm])", uptime)
    return sum(int(number) * units[unit] for number, unit in parts) if parts else -1


def environment(text: str) -> dict[str, Any]:
    lines = text.splitlines()
    memory = {found["name"]: int(found["kb"]) for found in map(MEMORY.match, lines) if found}
    total = memory.get("MemTotal", 0)
    temperature, fans = _sensors(lines)
    return {
        "fans": fans,
        "temperature": temperature,
        "power": {},
        "cpu": {0: {"%usage": _usage([line for line in lines if line.startswith("cpu ")])}},
        "memory": {"available_ram": total, "used_ram": total - memory.get("MemAvailable", total)},
    }


def _usage(samples: list[str]) -> float:
    """Compute the load of all CPUs between two samples, in percent."""
    if len(samples) != 2:
        return -1.0
    early, late = ([int(word) for word in sample.split()[1:]] for sample in samples)
    spent = [after - before for before, after in zip(early, late, strict=True)]
    idle = sum(spent[3:5])  # idle and iowait
    return round(100 * (1 - idle / sum(spent)), 1) if sum(spent) > 0 else 0.0


def _sensors(lines: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    chips = {found["chip"]: found["name"] for found in map(CHIP.match, lines) if found}
    values: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for found in filter(None, map(SENSOR.match, lines)):
        values[found["kind"], found["chip"], found["number"]][found["what"]] = found["value"]
    temperature, fans = {}, {}
    for (kind, chip, number), sensor in values.items():
        name = f"{chips.get(chip, chip)} {sensor.get('label', f'{kind}{number}')}"
        if "input" not in sensor:
            continue
        if kind == "fan":
            fans[name] = {"status": int(sensor["input"]) > 0}
            continue
        now = int(sensor["input"]) / 1000
        high, critical = (int(sensor[what]) / 1000 if what in sensor else float("inf") for what in ("max", "crit"))
        temperature[name] = {"temperature": now, "is_alert": now >= high, "is_critical": now >= critical}
    return temperature, fans


def ping_result(text: str) -> dict[str, Any]:
    """Convert ping's output to NAPALM's form; an error if nothing was sent."""
    sent = SENT.search(text)
    if sent is None:
        return {"error": text.strip() or "ping printed nothing"}
    times = TIMES.search(text)
    rtt = {name: float(times[name]) if times else 0.0 for name in ("min", "max", "avg", "stddev")}
    probes = [{"ip_address": one["address"], "rtt": float(one["ms"])} for one in PROBE.finditer(text)]
    return {
        "success": {
            "probes_sent": int(sent["sent"]),
            "packet_loss": int(sent["sent"]) - int(sent["received"]),
            **{f"rtt_{name}": value for name, value in rtt.items()},
            "results": probes,
        }
    }
