"""The design described by the files of a GPU host: rendered ones give the whole design, others what they contain."""

from functools import cache
from ipaddress import IPv6Interface

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.adopt import survey
from netkit.adopt.survey import SurveyedHost, rails_of
from netkit.design import Fabric
from netkit.design.clusters import operated
from netkit.design.fabric import Host
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Config, Files
from netkit.platforms.existing import ExistingHost, ExistingNic, ExistingNicQos
from netkit.platforms.linux.existing import existing_host, host_config, host_files
from netkit.render import Engine, render
from tests import intents
from tests.lanes import examples
from tests.random_intents import Values
from tests.random_intents import intents as random_intents

CATALOG, ENGINE = Catalog(), Engine()
MODEL = MODELS["linux"]
NUMBERS: Values = {
    "lossless": {
        "roce": {"priority": 4, "dscp": [34], "weight": 70},
        "best_effort": {"weight": 30},
        "cnp": {"priority": 5, "dscp": 40},
    }
}
ODD_PCI = {"hosts": {"model": "dgx-h100", "pci": ["0000:01:00.0", "0000:02:00.0"]}}
IPV6 = {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}
SCENES: dict[str, Values] = {
    "netplan": {},
    "networkd": {"hosts": {"backend": "networkd"}},
    "vlan": {"attachment": "vlan"},
    "numbers": NUMBERS,
    "networkd numbers": {
        **NUMBERS,
        "hosts": {"backend": "networkd", "mtu_bytes": 4200, "management_interface": "eno1"},
    },
    "eight rails": {"rails": 8},
    "another model": {"hosts": {"model": "hgx-h100-xe9680"}, "rails": 8},
    "own PCI addresses": ODD_PCI,
    "MAC": {"tables": {"nics": [{"host": "gpu01", "rail": 0, "mac": "a0:88:c2:00:00:10"}]}},
    "networkd MAC": {
        "hosts": {"backend": "networkd"},
        "tables": {"nics": [{"host": "gpu01", "rail": 0, "mac": "a0:88:c2:00:00:10"}]},
    },
    "IPv6": {"pools": IPV6, "ceilings": {"addresses_per_nic": 2}},
    "networkd VLAN with IPv6": {"pools": IPV6, "attachment": "vlan", "hosts": {"backend": "networkd"}},
    "operated NICs": {
        "ceilings": {"addresses_per_nic": 9},
        "clusters": {"kubernetes": {"nic_qos": "operator"}},
    },
}


def described(fabric: Fabric, host: Host) -> ExistingHost:
    """The description that the files give; the models are those of the catalogue with rails at these PCI addresses."""
    lossless, pci = fabric.lossless, {nic.pci for nic in host.nics}
    names = CATALOG.names("hosts")
    return ExistingHost(
        models=tuple(name for name in names if pci <= {rail.pci for rail in CATALOG.host(name).rails}),
        backend=host.backend,
        management_interface=host.management_interface,
        nics=tuple(
            ExistingNic(
                nic.interface,
                nic.pci,
                nic.mac,
                host.mtu_bytes,
                address_v6=IPv6Interface(f"{nic.address_v6}/{nic.prefix_length_v6}") if nic.address_v6 else None,
            )
            for nic in host.nics
        ),
        qos=ExistingNicQos(dscp=lossless.tos >> 2)  # the operator sets the rest
        if host.name in operated(fabric)
        else ExistingNicQos(
            priority=lossless.roce.priority,
            dscp=lossless.tos >> 2,
            cnp_dscp=lossless.cnp_dscp,
            cnp_priority=lossless.cnp.priority,
            dscp_to_priority=dict(enumerate(lossless.dscp_to_priority)),
            weights={one.priority: one.weight for one in lossless.classes if not one.is_strict},
        ),
    )


def rendered(fabric: Fabric, host: Host) -> Files:
    (files,) = render(fabric, [host], ENGINE)
    return {name: text for name, text in files.files.items() if MODEL.reads(name)}


def agrees(fabric: Fabric) -> None:
    for host in fabric.hosts:
        files = rendered(fabric, host)
        config = MODEL.parse(files)
        assert existing_host(config) == described(fabric, host)
        own = host_config(files)
        assert existing_host(own) == described(fabric, host)
        assert MODEL.host_routes
        assert MODEL.host_routes(own) == MODEL.host_routes(config)


@pytest.mark.parametrize("scene", SCENES)
def test_rendered_files_describe_the_design(scene: str) -> None:
    agrees(intents.fabric(intents.values(SCENES[scene])))


@settings(max_examples=examples(25), deadline=None)
@given(random_intents(), st.sampled_from(["netplan", "networkd"]))
def test_any_rendered_files_say_what_is_designed(values: Values, backend: str) -> None:
    agrees(design.build(Intent.model_validate({**values, "hosts": {**values["hosts"], "backend": backend}}), CATALOG))


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_the_order_of_files_does_not_matter(data: st.DataObject) -> None:
    fabric = intents.fabric(intents.values(SCENES["networkd numbers"]))
    files = rendered(fabric, fabric.hosts[0])
    order = data.draw(st.permutations(sorted(files)))
    assert existing_host(host_config({name: files[name] for name in order})) == described(fabric, fabric.hosts[0])


OWN_NETPLAN = """\
network:
  version: 2
  renderer: networkd
  ethernets:
    rail-b:
      set-name: gpu1
      match: {macaddress: "B8:3F:D2:00:00:02"}
      addresses: ["172.16.1.5/31"]
      mtu: 4200
    gpu0:
      match:
        macaddress: b8:3f:d2:00:00:01
      set-name: gpu0
      mtu: 4200
      addresses:
        - 172.16.0.5/31:
            label: gpu0:0
      routing-policy:
        - from: 172.16.0.5/32
          table: 100
      routes:
        - to: 0.0.0.0/0
          via: 172.16.0.4
          table: 100
    others:
      match: {name: "en*"}
      dhcp4: true
    spare: {}
"""
CLOUD_INIT = """\
# written by cloud-init
network:
  ethernets:
    eno8303:
      addresses: [192.0.2.9/24]
      gateway4: 192.0.2.1
  version: 2
"""
OWN_RULES = """\
# our names
SUBSYSTEM=="net", ACTION=="add", NAME="gpu0", \\
  KERNELS=="0000:18:00.0"
ACTION=="add", SUBSYSTEM=="net", KERNELS=="0000:4F:00.0", NAME:="gpu1"
SUBSYSTEM=="infiniband", KERNELS=="0000:DC:00.0", NAME="gpu1"
SUBSYSTEM=="net", KERNELS=="0000:9a:00.*", NAME="gpu1"
SUBSYSTEM=="net", KERNELS=="0000:9a:00.0", ENV{NM_UNMANAGED}="1"
"""
OWN_SCRIPT = """\
#!/bin/bash
CNP_DSCP=48   # CS6
DEVICES="mlx5_0 mlx5_3"
TOS=104
TOS=106
for IF in gpu0 gpu1; do
  mlnx_qos -i $IF --trust dscp -f 0,0,0,1,0,0,0,0 >/dev/null || exit 1
  mlnx_qos -i "$IF" --dscp2prio 'set,26,3'
  mlnx_qos -i "$IF" --dscp2prio="set,48,6"
  mlnx_qos -i "$IF" --prio_tc=0,1,2,3,4,5,6,7 -s ets,ets,ets,ets,ets,ets,strict,ets \\
    -t 10,0,0,90,0,0,0,0
  echo ${CNP_DSCP} > /sys/class/net/$IF/ecn/roce_np/cnp_dscp
  echo 6 | sudo tee /sys/class/net/$IF/ecn/roce_np/cnp_802p_prio
done
mlnx_qos -i eno8303 --pfc 0,0,0,0,0,0,0,0
for dev in $DEVICES; do
  echo $TOS > /sys/class/infiniband/$dev/tc/1/traffic_class
done
"""
QOS = ExistingNicQos(3, None, 48, 6, {26: 3, 48: 6}, {0: 10, 3: 90})


def test_hand_written_files_are_read() -> None:
    files = {
        "etc/netplan/60-rails.yaml": OWN_NETPLAN,
        "etc/netplan/50-cloud-init.yaml": CLOUD_INIT,
        "etc/udev/rules.d/60-names.rules": OWN_RULES,
        "usr/local/bin/roce.sh": OWN_SCRIPT,
        "etc/kubernetes.yaml": "- not: netplan\n",
        "etc/fstab": "/dev/sda1 / ext4",
    }
    assert set(files) - set(host_files(files)) == {"etc/kubernetes.yaml", "etc/fstab"}
    config = host_config(files)
    assert existing_host(config) == ExistingHost(
        models=("dgx-h100", "dgx-h200"),
        backend="netplan",
        management_interface="eno8303",
        nics=(
            ExistingNic("eno8303"),
            ExistingNic("gpu1", "0000:4f:00.0", "b8:3f:d2:00:00:02", 4200),
            ExistingNic("gpu0", "0000:18:00.0", "b8:3f:d2:00:00:01", 4200),
        ),
        qos=QOS,
    )
    found = survey([("gpu-a", files)]).hosts["gpu-a"]
    assert isinstance(found, SurveyedHost)
    assert [(name, str(address)) for name, address in rails_of(found)] == [
        ("eno8303", "192.0.2.9/24"),
        ("gpu0", "172.16.0.5/31"),
        ("gpu1", "172.16.1.5/31"),
    ]


def test_hand_written_units_are_read() -> None:
    files = {
        "20-a.link": "[Match]\nPath=pci-0000:18:00.0*\n[Link]\nName=rdma0\nMTUBytes=9000\nDescription=leaf7 et12\n",
        "30-a.network": "[Match]\nPath=pci-0000:18:00.0\n[Network]\nAddress=10.9.0.1/31\n",
        "20-b.link": "; second\n[Link]\nName=rdma1\n[Match]\nPermanentMACAddress=B8-3F-D2-00-00-02\n",
        "30-b.network": "[Network]\n[Match]\nMACAddress=b8:3f:d2:00:00:02\n[Address]\nLabel=x\nAddress=10.9.1.1/31\n",
        "30-c.network": "[Match]\nName=eth0\n"
        "[Network]\nAddress=192.0.2.8/24\nAddress=2001:db8::8/64\nGateway=192.0.2.1\n",
        "30-d.network": "[Match]\nName=en*\n[Network]\nAddress=192.0.2.9/24\n",
        "30-e.network": "[Match]\nPath=pci-0000:99:00.0\n[Network]\nAddress=10.9.2.1/31\n",
        "30-f.network": "[Match]\nName=rdma7\n[Network]\nDHCP=no\n",
        "nccl.conf": "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=^lo,docker0\nNCCL_IB_TC=104\n",
        "rdma-qos@.service": "[Service]\nExecStart=/usr/bin/mlnx_qos -i %i --pfc=0,0,0,0,1,0,0,0\n"
        "ExecStart=/usr/bin/dcb app replace dev %i dscp-prio AF31:4 EF:4 CS6:6 nonsense:1 99:2 7:9\n"
        "ExecStart=/sbin/dcb ets set dev %i tc-tsa all:ets 6:strict tc-bw all:0 0:20 4:80\n",
        "mlxconfig.conf": "CNP_DSCP_P1=48\nCNP_802P_PRIO_P1=6\nLINK_TYPE_P1=2\n",
    }
    config = host_config(files)
    assert existing_host(config) == ExistingHost(
        models=("dgx-h100", "dgx-h200"),
        backend="networkd",
        management_interface="eth0",
        nics=(
            ExistingNic("rdma0", "0000:18:00.0", "", 9000, "leaf7 et12"),
            ExistingNic("rdma1", "", "b8:3f:d2:00:00:02"),
            ExistingNic("eth0", address_v6=IPv6Interface("2001:db8::8/64")),
        ),
        qos=ExistingNicQos(4, 26, 48, 6, {26: 4, 46: 4, 48: 6}, {0: 20, 4: 80}),
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", ExistingNicQos()),
        ("mlnx_qos -i $1 --pfc $PFC", ExistingNicQos()),
        ("mlnx_qos -i a --pfc 0,0,0,1,1,0,0,0", ExistingNicQos()),
        ("mlnx_qos -i a --pfc 0,0,0,1,0,0,0,0; mlnx_qos -i b --pfc 0,0,0,0,1,0,0,0", ExistingNicQos()),
        ("PFC=0,0,0,1,0,0,0,0\nmlnx_qos -i a --pfc $PFC", ExistingNicQos(priority=3)),
        ("for PFC in 1 2; do\nPFC=0,0,0,1,0,0,0,0\nmlnx_qos -i a --pfc $PFC", ExistingNicQos()),
        ("echo 48 > /sys/kernel/debug/mlx5/0000:18:00.0/cc_params/np_cnp_dscp", ExistingNicQos(cnp_dscp=48)),
        ("echo 48 > /tmp/cnp_dscp", ExistingNicQos()),
        ("mlnx_qos -i a --dscp2prio del,26,3 --dscp2prio set,30,3", ExistingNicQos(dscp_to_priority={30: 3})),
        ("cma_roce_tos -d mlx5_0 -t 106", ExistingNicQos(dscp=26)),
        ("echo 9999 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class", ExistingNicQos()),
        ("dcb pfc set dev a prio-pfc all:off 3:on", ExistingNicQos(priority=3)),
        ("dcb pfc show dev a prio-pfc 3:on", ExistingNicQos()),
        ("mlxconfig -d mlx5_0 -y set CNP_DSCP_P1=48 CNP_802P_PRIO_P1=6", ExistingNicQos(cnp_dscp=48, cnp_priority=6)),
    ],
)
def test_simple_shell_commands_are_read(script: str, expected: ExistingNicQos) -> None:
    assert existing_host(host_config({"qos": f"#!/bin/sh\n{script}\n"})).qos == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=eno1,eno2", "eno1"),
        ("=bootstrap", "bootstrap"),
        ('"=bootstrap"', "bootstrap"),
        ("bootstrap", ""),
        ("eno1", "eno1"),
        ("rail0", "rail0"),
        ("eth", ""),
        ("^eno1", ""),
        ("", ""),
    ],
)
def test_an_interface_name_prefix_is_not_a_management_interface(value: str, expected: str) -> None:
    config = host_config({"nccl.conf": f"NCCL_SOCKET_IFNAME={value}\n"})
    assert existing_host(config).management_interface == expected


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("[Route]\nGateway=192.0.2.1", "bootstrap"),
        ("[Route]\nDestination=0.0.0.0/0\nGateway=192.0.2.1", "bootstrap"),
        ("[Route]\nGateway=192.0.2.1\nTable=100", ""),
        ("[Route]\nGateway=192.0.2.1\nDestination=10.0.0.0/8", ""),
        ("[Network]\nGateway=192.0.2.1", "bootstrap"),
        ("", ""),
    ],
)
def test_the_default_route_reveals_the_management_interface(route: str, expected: str) -> None:
    unit = f"[Match]\nName=bootstrap\n[Network]\nAddress=192.0.2.9/24\n{route}\n"
    rail = "[Match]\nName=rail0\n[Network]\nAddress=10.0.0.1/31\n[Route]\nGateway=10.0.0.0\nTable=100\n"
    config = host_config({"1.network": unit, "2.network": rail})
    assert existing_host(config).management_interface == expected


def test_all_rails_with_extra_nics_still_match_the_model() -> None:
    rails = [rail.pci for rail in CATALOG.host("hgx-h100-xe9680").rails]
    units = {
        name: text
        for number, pci in enumerate([*rails, "0000:01:00.0"])
        for name, text in {
            f"{number}.link": f"[Match]\nPath=pci-{pci}\n[Link]\nName=nic{number}\n",
            f"{number}.network": f"[Match]\nName=nic{number}\n[Network]\nAddress=10.0.{number}.1/31\n",
        }.items()
    }
    assert existing_host(host_config(units)).models == ("hgx-h100-xe9680",)


WORDS = """
netplan.yaml network ethernets rail0 mtu addresses match macaddress set-name routes gateway4 10.0.0.1/31 netkit-nic-qos
RAILS rail0=0000:18:00.0 CLASSES_IN_USE 3:ets:50 TOS PRIORITY DSCP_MAP 10-rail0.network 10-rail0.link [Match] Name Path
pci-0000:18:00.0 [Link] MTUBytes [Network] Address [Service] ExecStart (text) 70-netkit-rails.rules nccl.conf oif.conf
NCCL_SOCKET_IFNAME NCCL_IB_TC 106 mlxconfig.conf CNP_DSCP_P1 name
"""
LINES = [
    "- 10.0.0.1/31",
    "- to=default",
    '- {"10.0.0.1/31": {"label": "x"}}',
    "[Address]; Address=10.0.0.1/31",
    "[Route]; Gateway=10.0.0.1",
    'KERNELS=="0000:18:00.0", NAME="rail0"',
    'ATTR{address}=="x", NAME="rail0"',
    "mlnx_qos -i x --pfc 1,1,1,1,1,1,1,1 --dscp2prio set,99,99 -t a,b,c,d,e,f,g,h",
    "dcb app add dev x dscp-prio CS9:9 all:3",
    "dcb ets set dev x tc-bw all:x 3:50 tc-tsa 3:strict",
    f"echo {'9' * 5000} > /traffic_class",
    "echo $CLASSES_IN_USE > roce_np/cnp_dscp",
]


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_no_configuration_raises(data: st.DataObject) -> None:
    words = st.sampled_from([*WORDS.split(), *LINES]) | st.text(max_size=12)
    paths = st.lists(words, min_size=1, max_size=7).map(tuple)
    config = data.draw(st.dictionaries(paths, words | st.integers().map(str), max_size=30))
    assert isinstance(existing_host(config), ExistingHost)


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data(), backend=st.sampled_from(["netplan", "networkd"]))
def test_no_damaged_configuration_raises(data: st.DataObject, backend: str) -> None:
    config = dict(sample(backend))
    words = st.sampled_from([*WORDS.split(), *LINES]) | st.text(max_size=12)
    for path in data.draw(st.lists(st.sampled_from(sorted(config)), max_size=30)):
        value, word = config.pop(path, ""), data.draw(words)
        place = data.draw(st.integers(0, len(path) - 1))
        changed = [((*path[:place], word, *path[place + 1 :]), value), (path[: place + 1], value), (path, word)]
        config.update(data.draw(st.lists(st.sampled_from(changed), max_size=2)))
    assert isinstance(existing_host(config), ExistingHost)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_no_text_raises(data: st.DataObject) -> None:
    backend = data.draw(st.sampled_from(["netplan", "networkd"]))
    fabric = intents.fabric(intents.values({"hosts": {"backend": backend}}))
    files = dict(rendered(fabric, fabric.hosts[0]))
    for _ in range(data.draw(st.integers(1, 6))):
        name = data.draw(st.sampled_from(sorted(files)))
        text = files[name]
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        files[name] = text[:start] + data.draw(st.sampled_from(LINES) | st.text(max_size=12)) + text[end:]
    found = survey([("gpu", files)])
    assert len(found.hosts) + len(found.unread) == 1


@cache
def sample(backend: str) -> Config:
    fabric = intents.fabric(intents.values({**NUMBERS, "hosts": {"backend": backend}}))
    return host_config(rendered(fabric, fabric.hosts[0]))
