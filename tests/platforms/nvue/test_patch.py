"""From changes to the input of `nv config patch`: by examples, and for any two configurations."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import ConfigError
from netkit.platforms.change import Change
from netkit.platforms.compare import apply, diff
from netkit.platforms.config import Config, nested
from netkit.platforms.nvue.model import MODEL
from netkit.platforms.nvue.patch import NvuePatch, document_in, documents, entries, users, whole
from netkit.platforms.secrets import SECRET

Tree = dict[str, Any]


def patched(running: Tree, document: NvuePatch) -> Tree:
    """The configuration of a switch after a document is applied."""
    result: Tree = json.loads(json.dumps(running))
    _unset(result, document.unset)
    _set(result, document.set)
    return {key: below for key, below in result.items() if below}


def _unset(tree: Tree, gone: Tree) -> None:
    for key, below in gone.items():
        if isinstance(below, dict) and isinstance(tree.get(key), dict):
            _unset(tree[key], below)
        elif below is None:
            tree.pop(key, None)


def _set(tree: Tree, made: Tree) -> None:
    for key, below in made.items():
        if isinstance(below, dict):
            if not isinstance(tree.get(key), dict):
                tree[key] = {}
            _set(tree[key], below)
        else:
            tree[key] = below


def config_of(tree: Tree) -> Config:
    return MODEL.parse({"startup.yaml": json.dumps([{"set": tree}])})


def made(running: Tree, intended: Tree) -> tuple[NvuePatch, ...]:
    have, want = config_of(running), config_of(intended)
    return documents({"startup.yaml": json.dumps([{"set": intended}])}, diff(MODEL, have, want), have)


def port(**more: Any) -> Tree:
    return {"type": "swp", **more}


BREAKOUT_2, BREAKOUT_4 = ({"type": "swp", "link": {"breakout": {f"{count}x": {}}}} for count in (2, 4))
NAMES = st.sampled_from(["a", "b", "swp1", "swp1s0", "swp2s1", "10.0.0.0/31", "on"])
LEAVES = st.one_of(
    st.integers(0, 99999), st.sampled_from(["on", "x y", "0", "01", "1:2", "null", "-", "'", "é", "1e3"])
)
TREES = st.dictionaries(
    st.sampled_from(["interface", "router", "qos", "vrf"]),
    st.dictionaries(
        NAMES,
        st.recursive(
            st.one_of(LEAVES, st.just({})), lambda inner: st.dictionaries(NAMES, inner, min_size=1), max_leaves=8
        ),
        min_size=1,
        max_size=4,
    ),
)


@given(TREES, TREES)
def test_patching_makes_any_configuration_the_intended_one(running: Tree, intended: Tree) -> None:
    after = running
    for document in made(running, intended):
        after = patched(after, document)
    assert config_of(after) == config_of(intended)


@given(TREES)
def test_replacing_makes_it_the_intended_one(intended: Tree) -> None:
    document = whole({"startup.yaml": json.dumps([{"set": intended}])})
    assert config_of(patched({}, document)) == config_of(intended)


@given(TREES)
def test_an_intended_configuration_needs_no_document(running: Tree) -> None:
    assert [document.items() for document in made(running, running)] == [[]]


def test_a_change_is_set_and_nothing_else() -> None:
    running = {"interface": {"swp1": port(description="old", link={"mtu": 9216})}}
    intended = {"interface": {"swp1": port(description="new", link={"mtu": 9000})}}
    (document,) = made(running, intended)
    assert document == NvuePatch(set={"interface": {"swp1": {"description": "new", "link": {"mtu": 9000}}}})


def agent(**users: Any) -> Tree:
    return {"system": {"snmp-server": {"state": "enabled", "username": users}}}


RENDERED: Tree = {"auth-sha": {"@secret:A@": {"encrypt-aes": {"@secret:P@": {}}}}}
SHAPES: list[Tree] = [
    {"auth-sha": {"x": {"encrypt-aes": {"y": {}}}}},
    {"auth-sha": {"password": "x"}, "encrypt-aes": {"password": "y"}},
    {"auth-sha": "x", "encrypt-aes": "y"},
    {"auth": {"protocol": "auth-sha", "secret": "x"}, "priv": {"protocol": "encrypt-aes", "secret": "y"}},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_users_are_as_intended_in_any_form_of_the_switch(shape: Tree) -> None:
    assert [document.items() for document in made(agent(u=shape), agent(u=RENDERED))] == [[]]


@pytest.mark.parametrize("shape", SHAPES)
def test_users_are_written_as_they_are_rendered(shape: Tree) -> None:
    config = config_of(agent(u=shape))
    written = MODEL.text(config)
    user: Tree = {"auth-sha": {SECRET: {"encrypt-aes": {SECRET: {}}}}}
    assert yaml.safe_load(written["startup.yaml"]) == [{"set": agent(u=user)}]
    assert MODEL.read(written) == config


def test_users_are_staged_separately() -> None:
    have, want = config_of(agent()), config_of(agent(u=RENDERED))
    files = {"startup.yaml": json.dumps([{"set": agent(u=RENDERED)}])}
    changes = diff(MODEL, have, want)
    (document,) = documents(files, changes, have)
    lines, rendered = users(files, changes)

    assert document.items() == []
    assert lines == "nv set system snmp-server username u auth-sha @secret:A@ encrypt-aes @secret:P@\n"
    assert json.loads(rendered) == [{"set": {"system": {"snmp-server": {"username": {"u": RENDERED}}}}}]
    assert all(MODEL.is_apart(change.path) for change in changes)
    assert "username" not in json.dumps(whole(files).items())
    assert users(files, ()) == ()


def test_a_changed_user_is_unset_and_set_again() -> None:
    running = agent(u={"auth-md5": {"x": {}}}, gone=SHAPES[0])
    have, want = config_of(running), config_of(agent(u=RENDERED))
    files = {"startup.yaml": json.dumps([{"set": agent(u=RENDERED)}])}
    (document,) = documents(files, diff(MODEL, have, want), have)

    assert document == NvuePatch(unset={"system": {"snmp-server": {"username": {"u": None, "gone": None}}}})
    assert users(files, diff(MODEL, have, want))[0].startswith("nv set system snmp-server username u auth-sha ")


def test_an_object_is_removed_as_a_whole() -> None:
    bgp: Tree = {"state": "enabled", "neighbor": {"swp1": {"type": "unnumbered", "bfd": {"profile": "u"}}}}

    def vrf(**bgp: Any) -> Tree:
        return {"vrf": {"default": {"router": {"bgp": bgp}}}}

    (document,) = made(vrf(**bgp), vrf(state="enabled"))
    assert document == NvuePatch(unset=vrf(neighbor=None))


def test_no_branch_is_unset_at_its_root() -> None:
    (document,) = made({"qos": {"roce": {"mode": "lossless", "state": "enabled"}}}, {})
    assert document == NvuePatch(unset={"qos": {"roce": None}})


def test_a_range_on_the_switch_is_expanded() -> None:
    running = {"interface": {"swp1-3": port(link={"mtu": 9216})}}
    intended = {"interface": {f"swp{number}": port(link={"mtu": 9216}) for number in (1, 3)}}
    (document,) = made(running, intended)
    assert document == NvuePatch(unset={"interface": {"swp2": None}})


def test_numbers_stay_numbers_and_quoted_ones_text() -> None:
    text = "- set:\n    a: {mtu: 9216, lanes: '4', 10: {x: 01}, mac: 00:11, on: on, none: , octal: 0o17}\n"
    assert entries({"startup.yaml": text}) == {
        ("a", "mtu"): 9216,
        ("a", "lanes"): "4",
        ("a", "10", "x"): "01",
        ("a", "mac"): "00:11",
        ("a", "on"): "on",
        ("a", "none"): None,
        ("a", "octal"): "0o17",
    }


def test_a_name_that_is_a_secret_is_reported_by_its_parent() -> None:
    running: Tree = {"system": {"snmp-server": {"readonly-community": {"$nvsec$1": {"access": {"10.0.0.0/8": {}}}}}}}
    community: Tree = {"@secret:READ@": {"access": {"10.0.0.0/8": {}, "10.1.0.0/16": {}}}}
    intended: Tree = {"system": {"snmp-server": {"readonly-community": community}}}
    (document,) = made(running, intended)
    assert document == NvuePatch(set=intended)


def test_a_changed_breakout_takes_two_steps() -> None:
    sessions = {"default": {"router": {"bgp": {"neighbor": {"swp1s0": {"type": "unnumbered"}}}}}}
    ports = {"swp1s0": port(description="a"), "swp1s1": port(description="b")}
    running = {"interface": {"swp1": BREAKOUT_2, "swp2": port(), **ports}, "vrf": sessions}
    intended = {"interface": {"swp1": BREAKOUT_4, "swp2": port(description="x"), **ports}, "vrf": sessions}
    first, second = made(running, intended)
    assert first == NvuePatch(
        unset={
            "interface": {"swp1s0": None, "swp1s1": None},
            "vrf": {"default": {"router": {"bgp": {"neighbor": {"swp1s0": None}}}}},
        }
    )
    assert second.unset == {"interface": {"swp1": {"link": {"breakout": {"2x": None}}}}}
    assert second.set["vrf"] == sessions
    assert config_of(patched(patched(running, first), second)) == config_of(intended)


def test_the_first_breakout_of_a_cage_takes_one_step() -> None:
    intended = {"interface": {"swp1": BREAKOUT_2, "swp1s0": port()}}
    assert len(made({"interface": {"swp2": port()}}, intended)) == 1


def test_a_plan_that_sets_unintended_values_is_refused() -> None:
    change = Change(("system", "hostname"), "a", "b")
    with pytest.raises(ConfigError, match=r"the plan sets system\.hostname, which is not intended; plan again"):
        documents({"startup.yaml": "- set: {}\n"}, (change,), {("system", "hostname"): "a"})


def test_a_file_written_by_a_user_is_parsed_or_refused() -> None:
    text = "- unset: {a: {b: }}\n- set: {a: {c: 1}}\n- set: {a: {d: 2}}\n"
    assert document_in(text) == NvuePatch({"a": {"b": None}}, {"a": {"c": 1, "d": 2}})
    for wrong in ("- replace: {}\n", "- 1\n", "[", "\t"):
        with pytest.raises(ConfigError):
            document_in(wrong)


def test_documents_are_merged_and_the_later_wins() -> None:
    one, other = NvuePatch({"a": {"b": None}}, {"x": {"y": 1, "z": 1}}), NvuePatch({"a": None}, {"x": {"y": 2}})
    assert one.joined(other) == NvuePatch({"a": None}, {"x": {"y": 2, "z": 1}})
    assert one.joined(NvuePatch()) == one


def test_changes_and_documents_agree() -> None:
    running, intended = {"qos": {"a": {"b": 1}}}, {"qos": {"a": {"c": 2}}}
    have, want = config_of(running), config_of(intended)
    assert apply(have, diff(MODEL, have, want)) == want
    assert nested(want) == {"qos": {"a": {"c": "2"}}}
