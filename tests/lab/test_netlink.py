"""Readings over netlink equal the output of `ip` and `nft` in the same namespace."""

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from netkit.lab import netlink
from tests.lab.traffic_scene import inside, namespace
from tests.namespace import needs_root

pytestmark = needs_root

OWN_NETWORK = Path("/proc/thread-self/ns/net")
LINKS = """link add p1 mtu 9216 type veth peer name far1
link add p2 address 02:00:00:00:00:02 type veth peer name far2
link add p3 type veth peer name far3
link set p1 up
link set far1 up
link set p2 up
addr add 192.0.2.1/24 dev p1
neigh add 192.0.2.7 lladdr 02:00:00:00:00:07 dev p1
"""
COUNTED = """table netdev held {
  counter empty { }
  counter p1.sent { }
  counter other { packets 7 bytes 4294967296 }
  chain out { type filter hook egress device "p1" priority 0; counter name "p1.sent"; }
}
table netdev another {
  counter not-asked { packets 1 bytes 1 }
}
table inet held {
  counter family { packets 1 bytes 1 }
}
"""


@pytest.fixture
def where() -> Iterator[str]:
    """A namespace with links, counters and some packets."""
    with namespace() as found:
        inside(found, "ip", "-batch", "-", text=LINKS)
        inside(found, "nft", "-f", "-", text=COUNTED)
        inside(found, "sh", "-c", "ping -q -c 3 -i 0.2 -s 500 -W 1 192.0.2.7; true")  # no host answers
        for name in ("p1", "p2"):
            inside(found, "ip", "link", "set", name, "down")
            inside(found, "ip", "link", "set", name, "up")
        inside(found, "ip", "link", "set", "p3", "addrgenmode", "none")
        yield found


def shown(where: str) -> Mapping[str, netlink.KernelLink]:
    """The links as `ip` prints them."""
    listed: list[dict[str, Any]] = json.loads(inside(where, "ip", "-j", "-s", "-s", "link", "show"))
    return {one["ifname"]: link(one) for one in listed}


def link(one: Mapping[str, Any]) -> netlink.KernelLink:
    """A link as `ip` prints it."""
    rx, tx = one["stats64"]["rx"], one["stats64"]["tx"]
    both = [way[count] for count in ("packets", "bytes", "errors", "dropped") for way in (rx, tx)]
    flags = one["flags"]
    return netlink.KernelLink(
        "UP" in flags, "LOWER_UP" in flags, one["address"], one["mtu"], tx.get("carrier_changes", 0), *both
    )


def test_links_equal_those_of_ip(where: str) -> None:
    for _ in range(20):  # packets that the kernel sends by itself may come between the two
        found, reported = netlink.links(where), shown(where)
        if found == reported:
            break
    assert found == reported
    assert {name: (one.is_enabled, one.has_carrier) for name, one in found.items() if name.startswith("p")} == {
        "p1": (True, True),
        "p2": (True, False),
        "p3": (False, False),
    }
    assert (found["p1"].mtu_bytes, found["p2"].mac) == (9216, "02:00:00:00:00:02")
    assert found["p1"].tx_bytes > 1500
    assert found["p1"].carrier_changes > 2


def test_counters_equal_those_of_nft(where: str) -> None:
    listed = json.loads(inside(where, "nft", "-j", "list", "counters", "table", "netdev", "held"))["nftables"]
    rows = [one["counter"] for one in listed if "counter" in one]
    found = netlink.counters(where, "held")
    assert found.keys() == {"empty", "p1.sent", "other"} == {row["name"] for row in rows}
    assert (found["empty"], found["other"]) == ((0, 0), (7, 1 << 32))
    packets, size = found["p1.sent"]
    assert packets > 2
    assert size > 1500
    assert netlink.counters(where, "no-such-table") == {}


def test_many_links_and_counters_take_several_messages(where: str) -> None:
    links = "".join(f"link add many{number} type veth peer name away{number}\n" for number in range(400))
    inside(where, "ip", "-batch", "-", text=links)
    many = "".join(f"counter many{number} {{ packets {number} bytes 0 }}\n" for number in range(3000))
    inside(where, "nft", "-f", "-", text=f"table netdev many {{\n{many}}}\n")
    assert len([name for name in netlink.links(where) if name.startswith("many")]) == 400
    assert netlink.counters(where, "many") == {f"many{number}": (number, 0) for number in range(3000)}


def test_the_reading_thread_returns_to_its_namespace(where: str) -> None:
    own = OWN_NETWORK.readlink()
    netlink.links(where)
    assert OWN_NETWORK.readlink() == own
    with pytest.raises(OSError, match="No such file"):
        netlink.links(where.replace("net", "gone"))
    with pytest.raises(OSError, match="Invalid argument"):
        netlink.links("/proc/self/ns/mnt")
    assert OWN_NETWORK.readlink() == own


def test_a_table_that_changes_during_a_dump_is_read_completely(where: str) -> None:
    """Readers in other threads see a complete table, however often a ruleset is loaded meanwhile."""
    rules = "".join(f"counter steady{number} {{ packets {number} bytes 1 }}\n" for number in range(500))
    inside(where, "nft", "-f", "-", text=f"table netdev loaded {{\n{rules}}}\n")
    steady = {f"steady{number}": (number, 1) for number in range(500)}
    wrong: list[object] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            try:
                found = netlink.counters(where, "loaded")
            except netlink.InterruptedDumpError:
                continue
            if {name: count for name, count in found.items() if name in steady} != steady:
                wrong.append(found)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(30):
        inside(where, "nft", "-f", "-", text=f"table netdev loaded {{\ncounter fresh{number} {{ }}\n}}\n")
    is_over.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_a_removed_namespace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        netlink.counters(str(tmp_path / "net"), "held")
