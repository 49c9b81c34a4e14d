"""A drain of netkit's: told from an intended one, hidden, and ended as it began. Secrets on their way there."""

import json
from typing import Any

import pytest

from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms.nvue import drain
from netkit.platforms.nvue.dialects import dialect
from netkit.platforms.nvue.patch import NvuePatch
from netkit.platforms.nvue.resolver import Resolver

SECRETS = {"ONE": "a'b: #c", "TWO": "a'b"}


def tree(shutdown: str = "", saves: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"router": {"bgp": {"autonomous-system": 65001}}, "system": {"hostname": "leaf01"}}
    if shutdown:
        found["router"]["bgp"]["graceful-shutdown"] = shutdown
    if saves:
        found["system"]["config"] = {"auto-save": {"state": saves}}
    return found


@pytest.mark.parametrize(
    ("applied", "startup", "is_own"),
    [
        (tree("enabled", "disabled"), tree(), True),
        (tree("enabled", "disabled"), tree("disabled", "enabled"), True),
        (tree("enabled", "disabled"), tree("enabled", "disabled"), False),
        (tree("enabled", "enabled"), tree(), False),
        (tree("enabled"), tree(), False),
        (tree("", "disabled"), tree(), False),
    ],
)
def test_a_drain_is_netkits_when_it_is_neither_saved_nor_being_saved(
    applied: dict[str, Any], startup: dict[str, Any], *, is_own: bool
) -> None:
    assert drain.is_own(applied, startup) is is_own


def test_each_release_is_drained_in_its_words() -> None:
    assert drain.begun(dialect("5.16.1")).set == {
        "router": {"bgp": {"graceful-shutdown": "enabled"}},
        "system": {"config": {"auto-save": {"state": "disabled"}}},
    }
    assert drain.begun(dialect("5.14.0")).set == {
        "router": {"bgp": {"graceful-shutdown": "on"}},
        "system": {"config": {"auto-save": {"enable": "off"}}},
    }


@pytest.mark.parametrize("startup", [tree(), tree("disabled", "enabled"), tree("", "enabled")])
def test_without_its_drain_a_switch_runs_what_it_would_boot(startup: dict[str, Any]) -> None:
    shown = json.dumps([{"header": {"version": "x"}}, {"set": tree("enabled", "disabled")}])
    assert drain.tree_of(drain.unseen(shown, startup)) == startup


def test_the_end_of_a_drain_sets_what_was_and_unsets_what_was_not() -> None:
    assert drain.ended(tree("", "enabled"), tree("enabled", "disabled")) == NvuePatch(
        unset={"router": {"bgp": {"graceful-shutdown": None}}},
        set={"system": {"config": {"auto-save": {"state": "enabled"}}}},
    )


def test_an_object_that_only_the_drain_has_left_goes_with_it() -> None:
    applied = {"router": {"bgp": {"graceful-shutdown": "enabled"}}, "system": tree("", "disabled")["system"]}
    assert drain.ended(tree(), applied) == NvuePatch(unset={"router": {"bgp": None}, "system": {"config": None}})
    assert drain.back(tree(), applied, drain.SHUTDOWN) == NvuePatch(unset={"router": {"bgp": None}})


def test_secrets_go_into_values_and_names() -> None:
    resolver = Resolver(SECRETS.__getitem__)
    intended = NvuePatch(set={"a": {"@secret:ONE@": {"b": "x@secret:TWO@y", "mtu": 9216}}})
    assert resolver.document(intended).set == {"a": {"a'b: #c": {"b": "xa'by", "mtu": 9216}}}
    assert repr(resolver) == "Resolver()"


def test_secrets_are_quoted_in_lines() -> None:
    text = "# note\nnv set a b '@secret:ONE@ z'\nnv set c d\n"
    assert Resolver(SECRETS.__getitem__).text(text) == "# note\nnv set a b 'a'\"'\"'b: #c z'\nnv set c d\n"


def test_secrets_are_quoted_in_yaml() -> None:
    found = Resolver(SECRETS.__getitem__).text("- set: {a: {b: '@secret:ONE@', c: '5'}}\n")
    assert json.loads(found) == [{"set": {"a": {"b": "a'b: #c", "c": "5"}}}]


def test_an_error_hides_every_secret_that_was_resolved() -> None:
    resolver = Resolver(SECRETS.__getitem__)
    resolver.document(NvuePatch(set={"a": "@secret:ONE@", "b": "@secret:TWO@"}))

    def refuse() -> None:
        with resolver.hiding():
            raise DeviceError(Problem("bad value a'b: #c and a'b", "mend it"))

    with pytest.raises(DeviceError) as caught:
        refuse()
    assert str(caught.value) == "bad value <secret> and <secret>; mend it"


def test_without_a_source_a_secret_is_asked_for_in_vain() -> None:
    with pytest.raises(AccessError, match="the secret ONE is not to be had"):
        Resolver(None).text("nv set a @secret:ONE@")
    assert issubclass(AccessError, NetkitError)
