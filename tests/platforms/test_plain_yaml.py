"""The fast reader parses YAML as the full reader does, or gives up."""

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netkit.platforms.plain_yaml import INTEGER, plain
from tests import intents
from tests.lanes import examples
from tests.platforms.samples import files_of

WORDS = st.sampled_from(
    (
        *(
            "a",
            "b",
            "swp1s0",
            "10.0.0.1/31",
            "fd00::1/64",
            "on",
            "1",
            "0x1f",
            "~",
            "<<",
            "=",
            "-",
            "?",
            "a:",
            ":a",
            "a::",
        ),
        *("'10'", '"x y"', "'it''s'", '"\\n"', "''", "'a", "é", "a#b", "a #b", "#", "a b", "a  b", "a: b", "&a", "*a"),
        *(
            "{}",
            "[]",
            "[a, b]",
            "[a,b]",
            "{a: b}",
            "{a: b, c: d}",
            "{a:b}",
            "{a}",
            "[a, ]",
            "[[a]]",
            "|",
            ">",
            "!!str a",
        ),
        *("@a", "%a", "`", "...", "---", "- a", "- ", "\t", "", "true", "null", ".", "..", "/a", "a/b", "a@b", "a,b"),
    )
)
INDENT = st.sampled_from(("", "", "  ", "  ", "    ", "      ", " ", "\t"))
KEYED = st.builds("{}{}: {}".format, INDENT, WORDS, WORDS)
HEADED = st.builds("{}{}:{}".format, INDENT, WORDS, st.sampled_from(("", "", "", " ", "  # why", "#", " &a", " |")))
ITEM = st.builds("{}- {}".format, INDENT, WORDS)
OTHER = st.builds("{}{}".format, INDENT, WORDS)
TEXTS = st.builds(
    lambda lines, start, end: start + "\n".join(lines) + end,
    st.lists(st.one_of(KEYED, HEADED, HEADED, ITEM, OTHER), min_size=1, max_size=7),
    st.sampled_from(("", "", "- set:\n", "- ", "---\n", "# why\n", "\ufeff")),
    st.sampled_from(("", "\n", "\n\n", "\r\n", "\n...\n")),
)


def slow(text: str) -> object:
    """The result of the full reader, or its error."""
    try:
        return yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 (it makes text, lists and mappings only)
    except yaml.YAMLError as error:
        return error


class Numbers(yaml.CBaseLoader):
    """The full reader, with bare integers as numbers."""


Numbers.add_implicit_resolver("tag:yaml.org,2002:int", INTEGER, list("-0123456789"))
Numbers.add_constructor("tag:yaml.org,2002:int", lambda _loader, node: int(node.value))


def keyed_by_text(found: object) -> object:
    """A document with every key as text."""
    if isinstance(found, dict):
        return {str(key): keyed_by_text(value) for key, value in found.items()}
    return [keyed_by_text(item) for item in found] if isinstance(found, list) else found


@settings(max_examples=examples(500))
@given(TEXTS)
@example("a: 1\nb: '1'\nc: [1, 02, x]\nd: {a: 3, 4: 5}\n6: 7 8\n")
def test_numbers_are_those_of_the_full_reader(text: str) -> None:
    found = plain(text, has_numbers=True)
    assert (found is None) == (plain(text) is None)
    if found is not None:
        assert found == keyed_by_text(yaml.load(text, Loader=Numbers))  # noqa: S506 (it makes plain values only)


@settings(max_examples=examples(1500))
@given(TEXTS)
@example("a:\n  b: c\n a: d")
@example("a: b\n  c: d")
@example("a:\na:\n  b: c\n")
@example("a:\n- b\n")
@example("a:\n  - b\n  c: d\n")
def test_what_the_fast_reader_parses_the_full_one_parses_the_same(text: str) -> None:
    found = plain(text)
    if found is not None:
        expected = slow(text)
        assert found == expected
        assert _order(found) == _order(expected)


def _order(node: object) -> object:
    """The keys of a tree in order, which comparing dictionaries ignores."""
    if isinstance(node, dict):
        return [(key, _order(value)) for key, value in node.items()]
    return list(map(_order, node)) if isinstance(node, list) else None


def test_rendered_files_are_parsed_by_the_fast_reader() -> None:
    for platform, version in (("nvue", "5.16.1"), ("frr", "8.4.4")):
        for files in files_of(intents.fabric(intents.on_platform(platform, version, {}))).values():
            for name, text in files.items():
                if name.endswith(".yaml"):
                    assert plain(text) == slow(text)


def test_two_results_share_no_values() -> None:
    first, second = plain("a: {}\nb: [c]\n"), plain("a: {}\nb: [c]\n")
    assert isinstance(first, dict)
    first["a"]["new"] = "x"
    first["b"].append("new")
    assert second == {"a": {}, "b": ["c"]} == plain("a: {}\nb: [c]\n")
