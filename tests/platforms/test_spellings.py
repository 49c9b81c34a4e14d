"""Notations of devices that differ from rendered ones, and their meaning."""

import json

import pytest
import yaml

from netkit.errors import ConfigError
from netkit.platforms import config_lines
from netkit.platforms.compare import compare
from netkit.platforms.config import Config, flat, nested
from netkit.platforms.eos import model
from netkit.platforms.frr.model import MODEL as FRR
from netkit.platforms.linux import file_kinds, netplan
from netkit.platforms.linux.model import MODEL as LINUX
from netkit.platforms.nvue.model import MODEL as NVUE
from netkit.platforms.secrets import SECRET
from netkit.platforms.sonic.model import MODEL as SONIC
from tests.platforms.samples import samples

LEAF = samples("nvue")["5.16.1/full/leaf01"]


def nvue(text: str) -> Config:
    return NVUE.parse({"startup.yaml": text})


def tree() -> object:
    return yaml.load(LEAF["startup.yaml"], Loader=yaml.CSafeLoader)[0]["set"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"header": {"model": "x"}}, {"set": tree()}]),
        json.dumps([{"set": tree()}]),
        json.dumps({"set": tree()}),
        json.dumps(tree()),
        json.dumps(tree(), default=str).replace(": 9216", ': "9216"'),
        yaml.dump([{"header": {"rev-id": "1.0"}}, {"set": tree()}]),
    ],
    ids=["shown", "list", "set", "rest", "text-numbers", "yaml"],
)
def test_nvue_parses_every_form_of_a_configuration(text: str) -> None:
    assert nvue(text) == NVUE.parse(LEAF)


def test_nvue_keeps_on_and_off_as_words() -> None:
    assert nvue("- set: {qos: {roce: {enable: on, mode: off}}}") == {
        ("qos", "roce", "enable"): "on",
        ("qos", "roce", "mode"): "off",
    }


def test_nvue_expands_ranges_of_ports_and_neighbours() -> None:
    shown = nvue("- set: {interface: {'swp1s0-2,swp9': {type: swp}}, qos: {x-1-2: {y: z}}}")
    assert shown == {
        **{("interface", name, "type"): "swp" for name in ("swp1s0", "swp1s1", "swp1s2", "swp9")},
        ("qos", "x-1-2", "y"): "z",
    }


def test_nvue_merges_a_port_with_the_range_it_is_in() -> None:
    shown = nvue("- set: {interface: {swp1: {}, swp1-2: {type: swp}}}")
    assert shown == {("interface", name, "type"): "swp" for name in ("swp1", "swp2")}


def test_nvue_treats_null_as_absent() -> None:
    assert nvue('{"qos": null, "system": {"hostname": "leaf01", "dns": null}}') == {("system", "hostname"): "leaf01"}


def test_nvue_masks_values_that_the_switch_hides_or_hashes() -> None:
    shown = nvue(
        "- set: {system: {aaa: {user: {a: {hashed-password: '*'}, b: {hashed-password: $nvsec$x}}},"
        " snmp-server: {readonly-community: {public: {access: any}},"
        " username: {u: {auth-sha: {hidden: {encrypt-aes: {too: {}}}}}}}}}"
    )
    user = ("system", "aaa", "user")
    assert shown == {
        (*user, "a", "hashed-password"): SECRET,
        (*user, "b", "hashed-password"): SECRET,
        ("system", "snmp-server", "readonly-community", SECRET, "access"): "any",
        ("system", "snmp-server", "username", "u", "auth-sha"): SECRET,
        ("system", "snmp-server", "username", "u", "encrypt-aes"): SECRET,
    }


def test_a_rotated_secret_is_not_a_difference_and_a_missing_one_is() -> None:
    rotated = {"startup.yaml": LEAF["startup.yaml"].replace("@secret:SNMP_AUTH@", "another")}
    assert compare(NVUE, rotated, LEAF).changes == ()
    gone = {"startup.yaml": LEAF["startup.yaml"].replace("'@secret:SNMP_PRIV@': {}", "{}")}
    assert gone != LEAF
    (added,) = compare(NVUE, gone, LEAF).changes
    assert (added.path[-1], added.running, added.intended) == ("encrypt-aes", None, SECRET)


def test_a_secret_of_a_users_own_template_is_masked_on_the_device_too() -> None:
    wanted = {"startup.yaml": "- set: {system: {ntp: {vrf: 'x-@secret:A@', 'srv-@secret:B@': {k: v}}}}"}
    running = {"startup.yaml": "- set: {system: {ntp: {vrf: x-clear, srv-text: {k: w}}}}"}
    for one, other in ((running, wanted), (wanted, running)):
        found = compare(NVUE, dict(one), other)
        assert [change.path for change in found.changes] == [("system", "ntp", f"srv-{SECRET}", "k")]
        assert "clear" not in repr(found)
        assert "text" not in repr(found)


@pytest.mark.parametrize(
    "text", ["- 1", "[1]", "- [a]", "- set: {a: &a {b: *a}}", "{{}: 1}", "%", "- set: " + "{a: " * 99]
)
def test_nvue_refuses_text_that_is_not_a_tree(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^startup\.yaml"):
        nvue(text)


def test_sonic_parses_the_output_of_the_switch() -> None:
    files = samples("sonic")["202411/plain/leaf01"]
    shown = json.loads(files["config_db.json"])
    shown["bgpraw"] = "router bgp 65000\n"
    shown["LOOPBACK_INTERFACE"]["Loopback0"] = {"NULL": "NULL"}
    running = {**files, "config_db.json": json.dumps(shown)}
    assert compare(SONIC, dict(running), files).changes == ()


@pytest.mark.parametrize(
    "text", ["[]", '{"PORT": 1}', '{"PORT": {"a": []}}', '{"PORT": {"a": {"b": {}}}}', '{"a": {"b": {"c": null}}}']
)
def test_sonic_refuses_text_that_is_not_a_table(text: str) -> None:
    with pytest.raises(ConfigError, match=r"config_db\.json: .* does not have the form of CONFIG_DB"):
        SONIC.parse({"config_db.json": text})


def test_sonic_reports_where_json_is_malformed() -> None:
    with pytest.raises(ConfigError, match=r"config_db\.json:2: cannot be read"):
        SONIC.parse({"config_db.json": '{"PORT":\n}'})


def eos_change(before: str, after: str) -> list[str]:
    files = samples("eos")["4.35.1F/plain/leaf01"]
    assert before in files["eos.cfg"]
    running = {"eos.cfg": files["eos.cfg"].replace(before, after)}
    return [" ".join(change.path) for change in compare(model.MODEL, dict(running), files).changes]


def test_eos_prints_other_notations_of_the_same() -> None:
    dscps = "qos map dscp 24 25 26 27 28 29 30 31 to traffic-class 3"
    assert eos_change(dscps, "qos map dscp 24-31 to traffic-class 3") == []
    assert eos_change(dscps, "qos map dscp 24 25 26 to traffic-class 3\nqos map dscp 27-31 to traffic-class 3") == []
    merged = "   neighbor interface Et33/1,33/5 peer-group SPINES remote-as 4200000001\n"
    one, two = (f"   neighbor interface Ethernet33/{lane} peer-group SPINES remote-as 4200000001\n" for lane in (1, 5))
    assert eos_change(one + two, merged) == []
    hashed = "snmp-server user watcher NETKIT v3 localized f5717f00 auth sha 1a2b priv aes 3c4d"
    wanted = "snmp-server user watcher NETKIT v3 auth sha @secret:SNMP_AUTH@ priv aes @secret:SNMP_PRIV@"
    assert eos_change(wanted, hashed) == []
    assert eos_change("secret sha512 @secret:LOGIN_HASH@", "secret sha512 $6$abc$def") == []
    assert eos_change("priv aes @secret:SNMP_PRIV@", "priv des @secret:SNMP_PRIV@") == [
        "snmp-server user watcher NETKIT v3"
    ]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("Et1", "1"),
        ("Et1-2", "1 2"),
        ("Ethernet1/1,33/5", "1/1 33/5"),
        ("Et49/1-52/1", "49/1 50/1 51/1 52/1"),
        ("Et3/1/1,4/1/1", "3/1/1 4/1/1"),
        ("Et5/1-3", "5/1 5/2 5/3"),
        ("Et3/1/1-3/4/1", "3/1/1 3/2/1 3/3/1 3/4/1"),
    ],
)
def test_eos_joins_ports_in_one_word(short: str, long: str) -> None:
    assert model.ports(short) == [f"Ethernet{port}" for port in long.split()]


@pytest.mark.parametrize("word", ["Et1-", "Et9-2", "Et1/1-2/3", "Et1-999999", "Vlan100", "Et", "Et1/-2"])
def test_eos_keeps_ranges_it_cannot_expand(word: str) -> None:
    assert all(port == word or port.removeprefix("Ethernet") in word for port in model.ports(word))
    assert len(model.ports(word)) == 1


def test_eos_does_not_look_into_banners() -> None:
    shown = model.parse({"eos.cfg": "banner login\nrouter bgp 1\n   router-id 1.1.1.1\nEOF\nhostname leaf01\n"})
    assert shown == {("banner login\nrouter bgp 1\n   router-id 1.1.1.1\nEOF",): "", ("hostname",): "leaf01"}


@pytest.mark.parametrize(
    "line",
    [
        "neighbor 10.0.0.1 password 7 S3cr3t",
        "tacacs-server key 7 S3cr3t",
        "ntp authentication-key 1 sha1 7 S3cr3t",
        "snmp-server community S3cr3t ro",
        "username admin privilege 15 secret 5 S3cr3t",
    ],
)
def test_eos_masks_secrets_of_all_kinds(line: str) -> None:
    assert "S3cr3t" not in repr(model.parse({"eos.cfg": line}))


def test_frr_omits_defaults_and_reports_its_version() -> None:
    files = {"frr.conf": "bfd\n profile fabric\n  detect-multiplier 3\n  receive-interval 300\n exit\nexit\n"}
    preamble = "Building configuration...\n\nCurrent configuration:\n!\nfrr version 8.4.4\n"
    running = f"{preamble}bfd\n profile fabric\n exit\n !\nexit\n!\nend\n"
    assert compare(FRR, {"frr.conf": running}, files).changes == ()
    (change,) = compare(
        FRR, {"frr.conf": running.replace("fabric\n", "fabric\n  detect-multiplier 5\n")}, files
    ).changes
    assert (change.path[-1], change.running, change.intended) == ("detect-multiplier", "5", None)


def test_frr_and_snmpd_secrets_are_masked() -> None:
    text = repr(
        FRR.parse(
            {"frr.conf": "router bgp 1\n neighbor X password S3cr3t\n", "snmpd.conf": "rocommunity S3cr3t default\n"}
        )
    )
    assert "S3cr3t" not in text


def test_the_order_of_routes_does_not_matter() -> None:
    head = "network: {version: 2, ethernets: {rail0: {optional: %s, routes: [%s]}}}"
    one, two = "{to: 10.0.0.0/8, via: 10.1.0.0}", "{to: 10.0.0.0/8, via: 10.1.0.0, table: 100}"
    first = netplan.parse(head % ("true", f"{one}, {two}"), "netplan.yaml")
    assert first == netplan.parse(head % ("yes", f"{two}, {one}"), "netplan.yaml")
    other = netplan.parse(head % ("true", f"{two}, {{to: 10.0.0.0/8, via: 10.9.0.0}}"), "netplan.yaml")
    differing = {path for path, _ in first.items() ^ other.items()}
    assert {path[-1] for path in differing} == {"- to=10.0.0.0/8"}


def test_an_empty_list_is_not_a_missing_one() -> None:
    some = netplan.parse("network: {ethernets: {rail0: {link-local: []}}}", "n")
    assert some == {("n", "network", "ethernets", "rail0", "link-local"): "[]"}
    assert netplan.parse(netplan.text({path[1:]: value for path, value in some.items()}), "n") == some


def test_units_may_have_a_section_many_times() -> None:
    text = "[Network]\nAddress=10.0.0.1/31\n\n[Route]\nDestination=a\nGateway=b\n[Route]\nGateway=d\nDestination=c\n"
    assert file_kinds.parse_unit(text, "u") == {
        ("u", "[Network]"): "",
        ("u", "[Network]", "Address"): "10.0.0.1/31",
        ("u", "[Route]; Destination=a; Gateway=b"): "",
        ("u", "[Route]; Destination=c; Gateway=d"): "",
    }


def test_a_script_is_its_settings_and_the_rest() -> None:
    shown = LINUX.parse({"netkit-nic-qos": "#!/bin/sh\nPFC='0:1'\nsay() { echo; }\nPFC='0:2'\n"})
    assert shown == {("netkit-nic-qos", "PFC"): "'0:1'", ("netkit-nic-qos", "(text)"): "say() { echo; }\nPFC='0:2'"}


def test_comments_and_blank_lines_do_not_matter_on_a_host() -> None:
    files = samples("linux")["5.16.1/plain/gpu01"]
    bare = {
        name: "\n\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        for name, text in files.items()
        if name != "netplan.yaml"
    }
    running = {**files, **bare}
    assert compare(LINUX, running, files).changes == ()


def test_a_name_with_two_values_keeps_both() -> None:
    grammar = config_lines.Grammar(keyed=("mtu",))
    shown = config_lines.parse("mtu 1\nmtu 2\nmtu 1\n", grammar, "f")
    assert shown == {("mtu",): "1", ("mtu 2",): ""}
    assert config_lines.text(shown, grammar) == "mtu 1\nmtu 2\n"


def test_trees_and_flat_configurations_are_the_same() -> None:
    config = flat({"a": {"b": "1", "c": {}}, "d": ["x", "y"], "e": True}, "f")
    assert config == {("a", "b"): "1", ("a", "c"): "", ("d", "x"): "", ("d", "y"): "", ("e",): "true"}
    assert nested(config) == {"a": {"b": "1", "c": {}}, "d": {"x": {}, "y": {}}, "e": "true"}
