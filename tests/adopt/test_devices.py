"""Devices that are read for an adoption: lists that are wrong, devices that do not answer, and what LLDP says."""

import json
import socket
from pathlib import Path

import pytest
import yaml

from netkit.adopt.links import find_links
from netkit.adopt.survey import survey
from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor
from netkit.project.adopting import adopted, save_neighbors
from netkit.project.unadopted import cables
from tests import intents
from tests.adopt.test_noise import undescribed
from tests.adopt.test_round_trip import files_of
from tests.command import assert_refused, run

HEAD = "device,platform,address\n"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (HEAD, ["lists no devices", "one in each line"]),
        ("name\nleaf01\n", ["has no line of column names", "begin with device, platform, address"]),
        (f"{HEAD}leaf01,nvu,192.0.2.1\n", [":2: platform: 'nvu' is not known here", "did you mean nvue?"]),
        (f"{HEAD}leaf 01,frr,\n", [":2: device: 'leaf 01' is not a name", "inner hyphens, dots and underscores"]),
        (f"{HEAD},frr,192.0.2.1\n", [":2: device: is missing", "add device"]),
        (f"{HEAD}leaf01,frr,\nleaf01,frr,\n", [":3: device: 'leaf01' is there twice", "keep one"]),
    ],
)
def test_a_wrong_list_is_refused(rows: str, words: list[str], tmp_path: Path) -> None:
    devices = tmp_path / "devices.csv"
    devices.write_text(rows, encoding="utf-8")
    saved, own = tmp_path / "saved", tmp_path / "own"
    assert_refused(run("adopt", saved, "--devices", devices, "--out", own), *words)
    assert not saved.exists()
    assert not own.exists()


def test_devices_that_do_not_answer_are_listed(tmp_path: Path) -> None:
    with socket.socket() as closed:  # bound and not listening: nothing else takes the port
        closed.bind(("127.0.0.1", 0))
        own = tmp_path / "own"
        own.mkdir()
        access = {"platforms": {"frr": {"port": closed.getsockname()[1]}}, "user": "admin", "timeout_s": 5}
        (own / "access.yaml").write_text(yaml.safe_dump(access), encoding="utf-8")
        devices = tmp_path / "devices.csv"
        devices.write_text(f"{HEAD}leaf01,frr,127.0.0.1\n", encoding="utf-8")
        done = run("adopt", tmp_path / "saved", "--devices", devices, "--out", own)
    assert (done.returncode, done.stdout) == (4, "")
    first, last = done.stderr.splitlines()
    assert first.startswith("not read: leaf01: cannot be reached at 127.0.0.1 port ")
    assert last == f"error: no device could be read; check the list of devices, and access.yaml in {own}"
    assert [file.name for file in own.iterdir()] == ["access.yaml"]


def test_neighbours_become_cables() -> None:
    facts = {
        "leaf01": Facts(
            interfaces={"Ethernet0": Interface(alias="etp1a")},
            neighbors={
                "Ethernet0": (Neighbor("gpu01.example.com", "b8:3f:d2:00:00:01", "rail0"), Neighbor("old", "swp1")),
                "Ethernet4": (Neighbor("spine01", "swp1s0"),),
                "Ethernet8": (Neighbor("", "swp9"),),
                "Ethernet12": (Neighbor("RZ1.spine03.dc1.example.com", "etp9"),),
            },
        ),
        "RZ1.spine03": Facts(interfaces={"Ethernet9": Interface(alias="etp9")}),
        "spine01": Facts(neighbors={"swp1s0": (Neighbor("leaf01", "etp1a"),)}),
        "spine02": Facts(neighbors=Absent("lldpd does not run")),
    }
    assert [tuple(row.values()) for row in cables(facts)] == [
        ("leaf01", "Ethernet0", "gpu01", "b8:3f:d2:00:00:01"),
        ("leaf01", "Ethernet4", "spine01", "swp1s0"),
        ("leaf01", "Ethernet12", "RZ1.spine03", "Ethernet9"),
        ("spine01", "swp1s0", "leaf01", "Ethernet0"),
    ]


def test_devices_read_in_turns_keep_their_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "neighbors.csv"

    def row(device: str, peer: str) -> dict[str, str]:
        return {"device": device, "port": "swp1", "peer": peer, "peer_port": "swp9"}

    save_neighbors(file, {"leaf01", "leaf02"}, [row("leaf01", "spine01"), row("leaf02", "spine01")])
    save_neighbors(file, {"leaf02", "spine02"}, [row("spine02", "leaf02")])
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines == ["device,port,peer,peer_port", "leaf01,swp1,spine01,swp9", "spine02,swp1,leaf02,swp9"]


MAC = "b8:3f:d2:00:00:01"


def test_a_nic_is_known_by_its_mac_address_and_a_switch_by_its_hostname() -> None:
    changes = {"attachment": "vlan", "overrides": {"gpu01": {"macs": {0: MAC}}}}
    fabric = intents.fabric(intents.on_platform("sonic", "202411", changes))
    nic = fabric.hosts[0].nics[0]
    leaf = fabric.switch(nic.leaf)
    files = {  # none has a description, and the folder of the leaf another name
        f"row3-{name}" if name == leaf.name else name: {
            file: text.replace("description", "other") for file, text in own.items()
        }
        for name, own in files_of(fabric).items()
    }
    port = leaf.host_ports[0].name
    near, far = (fabric.hosts[0].name, nic.interface), (f"row3-{leaf.name}", port)
    for heard in ({near: (leaf.name, port)}, {far: ("gpu01", MAC.upper())}):
        links = find_links(survey(files.items()), heard).hosts
        assert [(link.near, link.far) for link in links if link.origin == "lldp"] == [(near, far)]


@pytest.mark.parametrize(
    ("system", "device"), [("gpu01.example.net", "gpu01"), ("GPU01.", "gpu01"), ("gpu01-bmc", "gpu01-bmc")]
)
def test_a_neighbour_is_known_by_its_name_with_a_domain_and_not_by_its_beginning(system: str, device: str) -> None:
    fabric = intents.fabric(intents.on_platform("sonic", "202411", {"attachment": "vlan"}))
    files = undescribed({name: dict(own) for name, own in files_of(fabric).items()})
    nic = fabric.hosts[0].nics[0]
    leaf = nic.leaf, fabric.switch(nic.leaf).host_ports[-1].name
    links = find_links(survey(files.items()), {leaf: (system, nic.interface)}).hosts
    assert [link.near for link in links if link.far == leaf] == [(device, nic.interface)]


@pytest.mark.parametrize(
    ("text", "is_host"),
    [("gpu01-hca0 eth0", True), ("gpu01-bmc eth0", False), ("GPU01_IPMI1:eth0", False), ("gpu01-bmcast", True)],
)
def test_a_management_controller_in_a_description_is_not_its_host(text: str, *, is_host: bool) -> None:
    fabric = intents.fabric(intents.on_platform("eos", "4.35.1F", {"attachment": "vlan"}))
    files = {name: dict(own) for name, own in files_of(fabric).items()}
    nic = fabric.hosts[0].nics[0]
    port = fabric.switch(nic.leaf).host_ports[0].name
    described = f"   description {fabric.hosts[0].name}:{nic.interface}\n"
    assert described in files[nic.leaf]["eos.cfg"]
    files[nic.leaf]["eos.cfg"] = files[nic.leaf]["eos.cfg"].replace(described, f"   description {text}\n")
    links = find_links(survey(files.items()), {}).hosts
    by_text = [link.near for link in links if link.far == (nic.leaf, port) and link.origin == "description"]
    assert by_text == ([(fabric.hosts[0].name, nic.interface)] if is_host else [])


def test_a_port_is_known_by_the_alias_in_the_file_of_its_switch() -> None:
    """The switch that announces it was read in another turn, or not at all."""
    fabric = intents.fabric(intents.on_platform("sonic", "202411", {"attachment": "vlan"}))
    files = files_of(fabric)
    link = next(link for link in fabric.links() if link.kind == "spine")
    near, far = (link.device, link.port), (link.peer, link.peer_port)
    alias = json.loads(files[link.peer]["config_db.json"])["PORT"][link.peer_port]["alias"]
    bare = {
        name: {file: text.replace("description", "other") for file, text in own.items()} for name, own in files.items()
    }
    (found,) = find_links(survey(bare.items()), {near: (link.peer, alias)}).switches
    assert (set(found.ends), found.origin) == ({near, far}, "lldp")
    others = (one for one in fabric.links() if one.peer == link.peer and one.device != link.device)
    wrong = next((one.device, one.port) for one in others)
    recorded = {far: wrong, wrong: far}
    assert find_links(survey(bare.items()), {near: (link.peer, alias)}, recorded=recorded).switches == (found,)


def test_the_name_of_a_port_comes_before_the_alias_of_another() -> None:
    fabric = intents.fabric(intents.on_platform("sonic", "202411"))
    files = {name: dict(own) for name, own in files_of(fabric).items()}
    link, other = [link for link in fabric.links() if link.peer == "spine01"][:2]
    config = json.loads(files["spine01"]["config_db.json"])
    config["PORT"][other.peer_port]["alias"] = link.peer_port
    files["spine01"]["config_db.json"] = json.dumps(config)
    heard = {(link.device, link.port): (link.peer, link.peer_port)}
    links = find_links(survey(undescribed(files).items()), heard).switches
    assert [set(one.ends) for one in links if one.origin == "lldp"] == [{*heard, *heard.values()}]


def test_cables_that_lldp_contradicts_are_found_by_all_names_of_their_ends() -> None:
    """MAC addresses, aliases, hostnames and capitals are other names of the listed ends."""
    changes = {"attachment": "vlan", "overrides": {"gpu01": {"macs": {0: MAC}}}}
    fabric = intents.fabric(intents.on_platform("sonic", "202411", changes))
    files = {name: dict(own) for name, own in files_of(fabric).items()}
    found = survey(files.items())
    nic = fabric.hosts[0].nics[0]
    host, near = (fabric.hosts[0].name, nic.interface), (nic.leaf, fabric.switch(nic.leaf).host_ports[0].name)
    other = (nic.leaf, fabric.switch(nic.leaf).host_ports[1].name)
    uplink, second = [link for link in fabric.links() if link.kind == "spine" and link.device == nic.leaf][:2]
    spine, up = (uplink.peer, uplink.peer_port), (uplink.device, uplink.port)
    listed = {(host[0].upper(), host[1]): near, up: spine}
    alias = json.loads(files[spine[0]]["config_db.json"])["PORT"][spine[1]]["alias"]
    same = {near: ("anything", MAC.upper()), up: (spine[0].upper(), alias), host: near}
    assert find_links(found, same, listed).contradicted == ()
    wrong = {near: host, host: near, up: (second.peer, second.peer_port)}
    assert find_links(found, wrong, {host: other, up: spine}).contradicted == (
        (host, other, near),
        (up, spine, (second.peer, second.peer_port)),
    )


def test_only_cables_of_adopted_devices_are_listed_as_contradicted(tmp_path: Path) -> None:
    fabric = intents.fabric(intents.on_platform("sonic", "202411"))
    link, other = list(fabric.links())[:2]
    near, far, by_lldp = (link.device, link.port), (link.peer, link.peer_port), (other.peer, other.peer_port)
    away, away_listed = ("leaf99", "Ethernet0"), ("spine99", "Ethernet0")
    heard, listed = {near: by_lldp, away: ("spine98", "Ethernet0")}, {near: far, away: away_listed}
    found = adopted("again", files_of(fabric), heard, tmp_path, listed=listed)
    assert found.contradicted == ((near, far, by_lldp),)
