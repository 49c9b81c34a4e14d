"""The effect of keys on the view."""

from functools import reduce

import pytest

from netkit.terminal.screen import named
from netkit.watch.view_state import ViewState, key, pressed, shown
from tests.watch.scene import BEGAN_S, board

SCENE = board(30).view(BEGAN_S + 30.5)


def after(*names: str, look: ViewState | None = None) -> ViewState:
    return reduce(lambda one, name: pressed(one, name, shown(SCENE, one)), names, look or ViewState())


def ports(look: ViewState) -> list[str]:
    return [" ".join(key(row)) for row in shown(SCENE, look)]


def test_arrows_select_and_stop_at_the_ends() -> None:
    names = ports(ViewState())
    assert after("down").chosen == tuple(names[0].split())
    assert after("down", "down", "down", "up").chosen == tuple(names[1].split())
    assert after("end", "down").chosen == tuple(names[-1].split())
    assert after("end", "home", "up").chosen == tuple(names[0].split())
    assert after("page down").chosen == tuple(names[-1].split())


def test_enter_opens_the_selected_port_and_closes_it() -> None:
    assert after("enter").is_detail
    assert after("enter").chosen == after("down").chosen
    assert not after("enter", "escape").is_detail
    assert after("down", "down", "enter", "enter") == after("down", "down")


def test_a_filter_is_typed_applied_and_cleared() -> None:
    typed = after("/", *"GPU02 rail", "backspace", "enter")
    assert (typed.wanted, typed.is_typing) == ("GPU02 rai", False)
    assert ports(typed) == ["leaf01 swp1s1", "gpu02 rail0"]
    assert after("escape", look=typed) == ViewState()
    assert after("/", "q", "s", "tab", "escape") == ViewState()


def test_sort_orders_cycle() -> None:
    assert ports(after("s", "s")) == sorted(ports(ViewState()))
    assert sorted(ports(after("s"))) == sorted(ports(ViewState()))
    assert after("s", "s", "s") == ViewState()


def test_tab_and_p_toggle() -> None:
    assert after("tab").is_rails
    assert after("p").is_paused
    assert after("tab", "p", "tab", "p") == ViewState()


def test_keys_without_anything_to_select_have_no_effect() -> None:
    nothing = after("/", *"no such port", "enter")
    assert ports(nothing) == []
    for name in ("up", "down", "end", "enter"):
        assert after(name, look=nothing) == nothing


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("jk", ["j", "k"]),
        ("\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        ("\x1b[5~q", ["page up", "q"]),
        ("\x1b", ["escape"]),
        ("\x1b[1;5Cq", ["q"]),
        ("\x1b[24~s", ["s"]),
        ("\x7f\r\t", ["backspace", "enter", "tab"]),
        ("é", ["é"]),
    ],
)
def test_keys_are_recognised_by_terminal_sequences(sent: str, keys: list[str]) -> None:
    assert list(named(sent)) == keys
