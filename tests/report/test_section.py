"""Equal changes at many places are printed once, and none is lost or added by that."""

from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.change import Change, Risk
from netkit.report.section import ReportLine, sections

WORDS = st.sampled_from(["interface", "swp1", "swp2", "link", "*", ""])
PATHS = st.lists(WORDS, max_size=4).map(tuple)
TEXTS = st.sampled_from(["mtu: 9216", "up"])


def reported(pairs: list[tuple[tuple[str, ...], str]]) -> list[tuple[str, ...]]:
    changes = [
        (Change((*path, "leaf"), None, text, Risk.NONE, ""), (ReportLine("+", text, Risk.NONE),))
        for path, text in pairs
    ]
    found = []
    for section in sections(changes):
        for place in section.places or ("",):
            path = (*section.path[: section.at], place, *section.path[section.at + 1 :]) if section.path else ()
            found += [(*path, line.text) for line in section.lines]
    return found


@given(st.lists(st.tuples(PATHS, TEXTS), max_size=12, unique_by=lambda pair: pair[0]))
def test_every_change_is_printed_at_its_place(pairs: list[tuple[tuple[str, ...], str]]) -> None:
    assert sorted(reported(pairs)) == sorted((*path, text) for path, text in pairs)


def test_ports_with_equal_changes_share_a_heading() -> None:
    changes = [
        (
            Change(("interface", f"swp{port}", "link", "mtu"), "1500", "9216", Risk.PORT, ""),
            (ReportLine("~", "mtu", Risk.PORT),),
        )
        for port in range(1, 9)
    ]
    assert [section.heading for section in sections(changes)] == ["interface swp1, swp2 … swp8 (8) link"]
    assert [section.heading for section in sections(changes[:2])] == ["interface swp1, swp2 link"]
    assert [section.heading for section in sections(changes[:1])] == ["interface swp1 link"]
