"""Answers of agents as files: `> COMMAND`, then the output; and the facts of the leaf under test."""

from collections.abc import Mapping
from pathlib import Path

from netkit.facts import Facts
from netkit.facts.device import Interface, Neighbor, System
from netkit.facts.optic import Lane, Limits, Module
from netkit.observe import assemble
from netkit.platforms.snmp.facts import views
from netkit.platforms.view import Reply, ViewSubject

CASES = Path(__file__).parent / "cases"
PLATFORMS = ("eos", "frr", "nvue", "sonic")
VERSIONS = {"nvue": "5.16.1", "sonic": "202411", "eos": "4.33.1F", "frr": "10.2"}
MODELS = {"nvue": "", "sonic": "SN5600", "eos": "DCS-7060X6-64PE", "frr": ""}
NAMES = {
    "nvue": ("swp1s0", "swp1s1", "swp2s0"),
    "sonic": ("Ethernet0", "Ethernet4", "Ethernet8"),
    "eos": ("Ethernet1/1", "Ethernet1/5", "Ethernet2/1"),
    "frr": ("swp1s0", "swp1s1", "swp2s0"),
}
ALIAS = {"sonic": "etp1a"}
OWN_LIMITS = {
    "rx_dbm": Limits(-10.0, -8.0, 4.0, 5.0),
    "temperature_c": Limits(-5.0, 0.0, 70.0, 75.0),
}
NEIGHBOR = Neighbor("gpu01", "02:00:00:00:00:0a", "rail0")


def subject(platform: str) -> ViewSubject:
    return ViewSubject("leaf-7", VERSIONS[platform], NAMES[platform], lossless=(3,), platform=platform)


def answers(platform: str) -> dict[str, str]:
    blocks = (CASES / f"{platform}.txt").read_text(encoding="utf-8").removeprefix("> ").split("\n\n> ")
    return {command: text.strip("\n") for command, _, text in (block.partition("\n") for block in blocks)}


def facts(platform: str, parsed: Mapping[str, str]) -> Facts:
    return assemble.facts(views(subject(platform)), {command: Reply(text) for command, text in parsed.items()})


def system(platform: str) -> System:
    return System(hostname="leaf-7", version=VERSIONS[platform], model=MODELS[platform])


def interfaces(platform: str) -> dict[str, Interface]:
    first, second, third = NAMES[platform]
    return {
        first: _interface(1, is_up=True, description="to gpu01", alias=ALIAS.get(platform, "")),
        second: _interface(3, is_up=True),
        third: _interface(2, is_up=False),
    }


def _interface(seed: int, *, is_up: bool, description: str = "", alias: str = "") -> Interface:
    mac = f"02:00:00:00:00:{seed:02x}"
    return Interface(is_up, True, 400.0, 9216, mac=mac, description=description, alias=alias)


def modules(platform: str) -> dict[str, Module]:
    first, second, third = NAMES[platform]
    return {first: _module(platform, is_lit=True), second: _module(platform, is_lit=True), third: _module(platform)}


def _module(platform: str, *, is_lit: bool = False) -> Module:
    return Module(
        kind="optic" if is_lit else "unknown",
        identifier="" if platform == "eos" else "OSFP",
        vendor="Lightworks",
        part="LW-800",
        serial="S0001",
        firmware="1.2.3",
        temperature_c=45.5 if is_lit else None,
        voltage_v=3.3 if is_lit else None,
        lanes={lane: Lane(-1.0 - lane, 0.0, 75.25) for lane in range(1, 5)} if is_lit else {},
        limits=OWN_LIMITS if is_lit and platform == "eos" else {},  # type: ignore[arg-type]
    )


def counters(platform: str) -> dict[str, dict[str, int]]:
    seeds = dict(zip(NAMES[platform], (1, 3, 2), strict=True))
    ports = {
        "rx_bytes": {name: 2**33 + seed for name, seed in seeds.items()},
        "tx_bytes": {name: 2**40 + seed for name, seed in seeds.items()},
        "rx_packets": {name: 2 * seed for name, seed in seeds.items()},
        "tx_packets": {name: 6 * seed for name, seed in seeds.items()},
        "rx_errors": {name: 4 * seed for name, seed in seeds.items()},
        "tx_errors": {name: 8 * seed for name, seed in seeds.items()},
        "rx_drops": {name: 3 * seed for name, seed in seeds.items()},
        "tx_drops": {name: 7 * seed for name, seed in seeds.items()},
        "port_rx_pause": {name: sum(100 * seed + at for at in range(8)) for name, seed in seeds.items()},
        "port_tx_pause": {name: sum(200 * seed + at for at in range(8)) for name, seed in seeds.items()},
    }
    return ports | _numbered(platform, seeds)


def _numbered(platform: str, seeds: dict[str, int]) -> dict[str, dict[str, int]]:
    if platform == "frr":
        return {}
    places = {f"{name}/{at}": (seed, at) for name, seed in seeds.items() for at in range(8)}
    found = {
        "rx_pause": {place: 100 * seed + at for place, (seed, at) in places.items()},
        "tx_pause": {place: 200 * seed + at for place, (seed, at) in places.items()},
        "queue_tx_packets": {place: 1000 + at for place, (_, at) in places.items()},
        "queue_tx_bytes": {place: 2000 + at for place, (_, at) in places.items()},
        "queue_drops": {place: 3000 + at for place, (_, at) in places.items()},
    }
    marks = {"queue_ecn_marked": {place: 4000 + at for place, (_, at) in places.items()}}
    own = {
        "nvue": {
            "port_buffer_drops": dict.fromkeys(seeds, 28),
            "carrier_changes": dict.fromkeys(seeds, 3),
            "link_downs": {name: 1 if seed % 2 else 2 for name, seed in seeds.items()},
            **marks,
        },
        "sonic": {},
        "eos": {
            "watchdog_detected": {place: 5 + at for place, (_, at) in places.items()},
            "watchdog_restored": {place: 4 + at for place, (_, at) in places.items()},
            **marks,
        },
    }
    return found | own[platform]
