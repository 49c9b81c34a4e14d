"""The tools of RDMA devices: `rdma`, `ibv_devinfo`, `ibdev2netdev`, `show_gids`, and the defaults of RDMA-CM."""

import json
from collections.abc import Iterator, Sequence

from netkit.lab.personalities.linux_host import sysfs
from netkit.lab.personalities.linux_host.machine import HostMachine, RailCard
from netkit.lab.personality import Call
from netkit.lab.reading import NicReading

ROCE_HEADERS_BYTES = 96
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}


def _pairs(machine: HostMachine) -> Iterator[tuple[RailCard, NicReading]]:
    readings = {reading.interface: reading for reading in machine.node.nics()}
    for card in machine.cards.values():
        yield card, readings[card.interface]


def ibdev2netdev(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    for card, reading in _pairs(machine):
        state = "Up" if reading.is_up else "Down"
        if "-v" in call.arguments:
            kind = "ACTIVE" if reading.is_up else "DOWN"
            call.out(f"{card.pci} {card.rdma} (MT4129 - {reading.part}) fw {reading.firmware} port 1 ({kind}) ==> ")
            call.out(f"{card.interface} ({state})\n")
        else:
            call.out(f"{card.rdma} port 1 ==> {card.interface} ({state})\n")
    return 0


def rdma(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    flags = {word for word in call.arguments if word.startswith("-")}
    words = [word for word in call.arguments if not word.startswith("-")]
    wants_json = bool({"-j", "--json", "-jp", "-pj"} & flags)
    match words:
        case ["link"] | ["link", "show", *_]:
            rows = [_link(machine, card, reading) for card, reading in _named(machine, words[2:])]
        case ["dev"] | ["dev", "show", *_]:
            rows = [_device(number, *pair) for number, pair in enumerate(_named(machine, words[2:]))]
        case ["statistic"] | ["statistic", "show", *_] | ["stat", *_]:
            rows = [_statistic(*pair) for pair in _named(machine, words[3:])]
        case ["dev", "set", name, "name", wanted]:
            return _rename(machine, name, wanted, call)
        case ["system"] | ["system", "show"]:
            call.out("netns shared copy-on-fork on\n")
            return 0
        case _:
            call.err(f'Unknown argument "{" ".join(words)}".\n')
            return 1
    call.out(json.dumps(rows) + "\n" if wants_json else "".join(_line(words[0], row) for row in rows))
    return 0


def _named(machine: HostMachine, names: Sequence[str]) -> Iterator[tuple[RailCard, NicReading]]:
    card = machine.find(names[0]) if names else None
    return (pair for pair in _pairs(machine) if not names or pair[0] is card)


def _link(machine: HostMachine, card: RailCard, reading: NicReading) -> dict[str, object]:
    try:
        index = int(machine.node.file(f"/sys/class/net/{card.interface}/ifindex").read_text(encoding="ascii"))
    except (OSError, ValueError):
        index = 0
    return {
        "ifindex": list(machine.cards).index(card.interface),
        "ifname": card.rdma,
        "port": 1,
        "state": "ACTIVE" if reading.is_up else "DOWN",
        "physical_state": "LINK_UP" if reading.is_up else "DISABLED",
        "netdev": card.interface,
        "netdev_index": index,
    }


def _device(number: int, card: RailCard, reading: NicReading) -> dict[str, object]:
    guid = sysfs.guid(reading.mac)
    return {
        "ifindex": number,
        "ifname": card.rdma,
        "node_type": "ca",
        "fw": reading.firmware,
        "node_guid": guid,
        "sys_image_guid": guid,
    }


def _statistic(card: RailCard, reading: NicReading) -> dict[str, object]:
    return {"ifname": card.rdma, "port": 1, **reading.hw_counters}


def _line(kind: str, row: dict[str, object]) -> str:
    rest = " ".join(f"{key} {value}" for key, value in row.items() if key not in {"ifindex", "ifname", "port"})
    return f"{row['ifindex']}: {row['ifname']}: {rest} \n" if kind == "dev" else f"link {row['ifname']}/1 {rest} \n"


def _rename(machine: HostMachine, name: str, wanted: str, call: Call) -> int:
    if machine.find(name) is None or name != wanted:
        call.err("error: No such device\n" if machine.find(name) is None else "error: Operation not supported\n")
        return 1
    return 0


def ibv_devinfo(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    words = list(call.arguments)
    name = words[words.index("-d") + 1] if "-d" in words[:-1] else ""
    found = [pair for pair in _pairs(machine) if name in {"", pair[0].rdma}]
    if not found:
        call.err("No IB devices found\n")
        return 255
    for card, reading in found:
        call.out(_info(card, reading))
    return 0


def active_mtu(mtu_bytes: int) -> int:
    """Return the RoCE path MTU that fits an interface's MTU."""
    return max((size for size in MTUS if size <= mtu_bytes - ROCE_HEADERS_BYTES), default=256)


def _info(card: RailCard, reading: NicReading) -> str:
    guid, mtu = sysfs.guid(reading.mac), active_mtu(reading.mtu_bytes)
    return (
        f"hca_id:\t{card.rdma}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t{reading.firmware}\n"
        f"\tnode_guid:\t\t\t{guid}\n\tsys_image_guid:\t\t\t{guid}\n\tvendor_id:\t\t\t0x02c9\n"
        "\tvendor_part_id:\t\t\t4129\n\thw_ver:\t\t\t\t0x0\n\tboard_id:\t\t\tMT_0000000838\n\tphys_port_cnt:\t\t\t1\n"
        f"\t\tport:\t1\n\t\t\tstate:\t\t\t{'PORT_ACTIVE (4)' if reading.is_up else 'PORT_DOWN (1)'}\n"
        f"\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{mtu} ({MTUS[mtu]})\n"
        "\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\tEthernet\n\n"
    )


def show_gids(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    call.out("DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n")
    call.out("---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n")
    count = 0
    for card in machine.cards.values():
        if call.arguments and card.rdma not in call.arguments:
            continue
        for index, gid, version in _gids(machine, card):
            raw = gid.split(":")
            is_v4 = raw[5] == "ffff"
            number = int(raw[6] + raw[7], 16)
            address = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0)) if is_v4 else ""
            call.out(f"{card.rdma}\t1\t{index}\t{gid}\t{address:<12}  \t{version}\t{card.interface}\n")
            count += 1
    call.out(f"n_gids_found={count}\n\n")
    return 0


def _gids(machine: HostMachine, card: RailCard) -> Iterator[tuple[int, str, str]]:
    port = machine.node.file(f"/sys/class/infiniband/{card.rdma}/ports/1")
    for index in range(4):
        try:
            gid = (port / f"gids/{index}").read_text(encoding="ascii").strip()
            kind = (port / f"gid_attrs/types/{index}").read_text(encoding="ascii").strip()
        except OSError:
            continue
        if kind:
            yield index, gid, "v2" if kind.endswith("v2") else "v1"


def cma_roce_tos(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    return _cm_default(machine, call, "default_roce_tos", "-t", {str(value): str(value) for value in range(256)})


def cma_roce_mode(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    return _cm_default(machine, call, "default_roce_mode", "-m", {"1": "IB/RoCE v1", "2": "RoCE v2"})


def _cm_default(machine: HostMachine, call: Call, file: str, option: str, allowed: dict[str, str]) -> int:
    words = list(call.arguments)
    given = dict(zip(words[::2], words[1::2], strict=False))
    card = machine.find(given.get("-d", ""))
    if card is None or len(words) % 2 or not set(given) <= {"-d", "-p", option} or given.get("-p", "1") != "1":
        call.err(f"usage: {call.program} -d <dev> [-p <port>] [{option} <value>]\n")
        return 1
    path = machine.node.file(f"/sys/{sysfs.cm_folder(card)}/{file}")
    if option in given:
        if given[option] not in allowed:
            call.err(f"{call.program}: {given[option]} is out of range\n")
            return 1
        path.write_text(f"{allowed[given[option]]}\n", encoding="utf-8")
    call.out(path.read_text(encoding="utf-8"))
    return 0
