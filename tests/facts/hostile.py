"""Malformed answers that some devices do send: JSON of other types, truncated, with colour codes, endless."""

import json
from typing import Any

from hypothesis import strategies as st

STRANGE = (
    "",
    "null",
    "{}",
    r'{"version": "\ud83d", "lldpNeighbors": {"\udc00": "\ud83d\ude00"}}',
    "[[], [[]], {}]",
    "\x1b[1;31m{\x1b[0m}",
    "[" * 100_000,
    "{\n" * 20_000,
    '{"interfaces": {"Ethernet1/1": NaN}, "vrfs": -Infinity}',
    f'{{"interfaces": {{"Ethernet1/1": {{"mtu": {"9" * 5000}}}}}}}',
    "Befehl nicht gefunden\n",
    "% Invalid input\n",
    "\ufffd\x00\x1b[?1049h{{%!#",
    "Port Enabled\nEthernet1/1\nPort\n",
    "interface \nroute-map\n set community graceful-shutdown\nrouter bgp\n neighbor\nend\n",
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**18, max_value=10**400),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["-", "Ethernet1/1", "Et1/1", "3", "up", "-inf", "²", "٣", "\ud800"]),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def places(found: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner: list[tuple[Any, Any]] = list(found.items()) if isinstance(found, dict) else []
    inner += list(enumerate(found)) if isinstance(found, list) else []
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def with_other(document: Any, path: tuple[Any, ...], other: Any) -> Any:
    """A copy of a document with another value at one path."""
    if not path:
        return other
    key, *rest = path
    inner = with_other(document[key], tuple(rest), other)
    if isinstance(document, list):
        return [inner if index == key else one for index, one in enumerate(document)]
    return {**document, key: inner}


@st.composite
def changed(draw: st.DrawFn, text: str) -> str:
    """A real answer with a value of another type somewhere; strings are cut and spliced."""
    try:
        document = json.loads(text)
    except ValueError:
        at, to = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        return f"{text[:at]}{draw(st.text(max_size=9))}{text[to:]}"
    return json.dumps(with_other(document, draw(st.sampled_from(places(document))), draw(TREES)))
