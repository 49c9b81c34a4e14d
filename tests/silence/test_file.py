"""silences.yaml: every error at its line, with a remedy; edits that keep everything else."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from netkit import silence
from netkit.errors import SilenceError
from netkit.intent.list_edit import Plain
from netkit.silence import Known, check, load, schema
from tests.command import ROOT, run

KNOWN = Known(("links.up", "bgp.sessions", "optics.light"), ("leaf01", "leaf02", "spine01"))
NOW_S = 1_795_000_000.0
REST = "    until: 2026-12-01T08:00:00Z\n    by: al\n    why: x\n"
ACK = "    verdict: fail\n    from: 2026-11-25T21:00:00Z\n    by: al\n    why: x\n"
HEAD = "silences:\n  - check: links.up\n    where: leaf01\n"
USE = "use one of links, bgp, optics, links.up, bgp.sessions, optics.light, reached"


def refused(folder: Path, text: str) -> list[str]:
    (folder / "silences.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SilenceError) as error:
        check(load(folder), KNOWN, NOW_S)
    assert error.value.exit_code == 3
    return [str(one).removeprefix(f"{folder}/silences.yaml:") for one in error.value.problems]


EVERYTHING = (
    "2: silences[0]: would silence every check on every device; name checks or devices, or set `everything: true`"
)
CASES = {
    "no mapping": ("- x\n", ["1: holds no lists; write silences: or acknowledgements: and a list below"]),
    "unknown list": ("silence: []\n", ["1: silence: unknown key 'silence'; did you mean 'silences'?"]),
    "unknown key": (
        HEAD + REST + "    untill: x\n",
        ["7: silences[0].untill: unknown key 'untill'; did you mean 'until'?"],
    ),
    "misspelt key is told once": (
        HEAD + REST.replace("why", "whi"),
        ["6: silences[0].whi: unknown key 'whi'; did you mean 'why'?"],
    ),
    "no end, no person, no reason": (
        HEAD,
        [
            "2: silences[0]: has no by; add by: author",
            "2: silences[0]: has no why; add why: the reason",
            "2: silences[0]: has no until; add until: when it ends, as 2026-12-01T08:00:00Z",
        ],
    ),
    "empty reason": (
        HEAD + REST.replace("x", '""'),
        ["6: silences[0].why: '' is too short; use at least 1 characters"],
    ),
    "naive time": (
        HEAD + REST.replace("Z", ""),
        ["4: silences[0].until: '2026-12-01T08:00:00' has no time zone; write it as 2026-12-01T08:00:00Z"],
    ),
    "no time": (
        HEAD + REST.replace("2026-12-01T08:00:00Z", "tomorrow"),
        ["4: silences[0].until: 'tomorrow' is not a time; write it as 2026-12-01T08:00:00Z"],
    ),
    "a number": (
        HEAD + REST.replace("2026-12-01T08:00:00Z", "1796112000"),
        ["4: silences[0].until: 1796112000 is not a time; write it as 2026-12-01T08:00:00Z"],
    ),
    "end before start": (
        HEAD + REST + "    from: 2026-12-01T08:00:00Z\n",
        ["2: silences[0]: ends before it begins; give an until later than from"],
    ),
    "unknown check": (
        "silences:\n  - check: links.upp\n    where: leaf01\n" + REST,
        ["2: silences[0].check: no check 'links.upp'; did you mean links.up?"],
    ),
    "unknown check of a list": (
        "silences:\n  - check: [links, quux]\n    where: leaf01\n" + REST,
        [f"2: silences[0].check[1]: no check 'quux'; {USE}"],
    ),
    "unknown device": (
        "silences:\n  - check: links\n    where: lef01:swp1\n" + REST,
        ["3: silences[0].where: no device 'lef01'; did you mean leaf01?"],
    ),
    "glob without a device": (
        "silences:\n  - check: links\n    where: gpu*\n" + REST,
        ["3: silences[0].where: no device 'gpu*'; use one of leaf01, leaf02, spine01, fabric"],
    ),
    "everything": (
        'silences:\n  - check: "*"\n    where: "*"\n' + REST,
        [EVERYTHING],
    ),
    "everything by many names": (
        "silences:\n  - check: [links, bgp, optics]\n    where: [leaf*, spine*, fabric]\n" + REST,
        [EVERYTHING],
    ),
    "the same twice": (
        HEAD + REST + "  - check: links.up\n    where: leaf01\n" + REST,
        ["7: silences[1]: is about the same as the one on line 2; keep one, or give each an id"],
    ),
    "a pattern without quotes": (
        "silences:\n  - check: *\n    where: leaf01\n" + REST,
        ['2: a pattern that begins with * is not in quotes; write it as "*.up"'],
    ),
    "an alias": (
        "silences:\n  - check: *.up\n    where: leaf01\n" + REST,
        ['2: a pattern that begins with * is not in quotes; write it as "*.up"'],
    ),
    "an acknowledgement of a pattern": (
        "acknowledgements:\n  - check: links.*\n    where: leaf*\n" + ACK,
        [
            "2: acknowledgements[0].check: no check 'links.*'; did you mean links.up?",
            "3: acknowledgements[0].where: no device 'leaf*'; did you mean leaf02?",
        ],
    ),
    "an acknowledgement of nothing": (
        "acknowledgements:\n  - check: links.up\n    where: leaf01\n" + ACK.replace("fail", "error"),
        ["4: acknowledgements[0].verdict: 'error' is not known here; use warn or fail"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_are_reported_with_their_line(name: str, tmp_path: Path) -> None:
    text, reported = CASES[name]
    assert refused(tmp_path, text) == reported


def test_an_expired_entry_may_name_removed_devices(tmp_path: Path) -> None:
    text = "silences:\n  - check: links.up\n    where: leaf09\n" + REST.replace("2026", "2020")
    (tmp_path / "silences.yaml").write_text(text, encoding="utf-8")
    check(load(tmp_path), KNOWN, NOW_S)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "silences:\n", "silences: []\nacknowledgements:\n"])
def test_a_file_without_entries_is_valid(text: str, tmp_path: Path) -> None:
    (tmp_path / "silences.yaml").write_text(text, encoding="utf-8")
    assert load(tmp_path).of_lab("") == ()
    assert silence.add(tmp_path, "silences", VALUES, KNOWN, NOW_S).silence() == load(tmp_path).of_lab("")[0]
    assert all(line in (tmp_path / "silences.yaml").read_text() for line in text.splitlines() if line.startswith("#"))


def test_the_example_of_the_page_and_the_schema_are_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "silences.md").read_text(encoding="utf-8")
    example = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]
    (tmp_path / "silences.yaml").write_text(example, encoding="utf-8")
    assert [one.kind for one in load(tmp_path).of_lab("")] == ["silence", "acknowledgement"]
    printed = json.loads(run("schema", "silences").stdout)
    assert printed["properties"] == schema()["properties"]
    Draft202012Validator.check_schema(printed)
    validator = Draft202012Validator(printed)
    entry = {"check": "links", "where": ["leaf01"], "until": "2026-12-01T08:00:00Z", "by": "al", "why": "x"}
    assert validator.is_valid({"silences": [{**entry, "from": "2026-11-01T08:00:00Z"}]})
    assert not validator.is_valid({"silences": [{**entry, "begins": "2026-11-01T08:00:00Z"}]})
    assert not validator.is_valid({"silences": [{**entry, "by": None}]})


VALUES: dict[str, Plain] = {
    "check": "bgp.sessions",
    "where": ["leaf01:swp1", "spine*"],
    "until": "2026-12-02T08:00:00Z",
    "by": "bob: #1",
    "why": "*all* of 'it', \"yes\"",
}
HAND = """# Our silences
silences:  # the newest last
- check: links.up    # why not
  where: leaf01
  until: '2026-12-01T08:00:00Z'
  by: al
  why: >
    because
    of it

# next week
- {check: optics.light, where: leaf02, until: 2026-12-01T08:00:00Z, by: al, why: x}
# the end

acknowledgements: []
# bye"""


def test_edits_keep_everything_else_of_a_hand_written_file(tmp_path: Path) -> None:
    file = tmp_path / "silences.yaml"
    file.write_text(HAND, encoding="utf-8")
    file.chmod(0o640)
    added = silence.add(tmp_path, "silences", VALUES, KNOWN, NOW_S).silence()
    after = file.read_text(encoding="utf-8")
    assert all(line in after.splitlines() for line in HAND.splitlines())
    assert (added.by, added.why, file.stat().st_mode & 0o777) == (VALUES["by"], VALUES["why"], 0o640)
    longer = {**VALUES, "until": "2026-12-09T08:00:00Z"}
    assert silence.add(tmp_path, "silences", longer, KNOWN, NOW_S).silence().id == added.id
    assert len(load(tmp_path).of_lab("")) == 3
    assert silence.end(tmp_path, added.id[:4]).silence().id == added.id
    assert file.read_text(encoding="utf-8").rstrip("\n") == HAND
    for one in load(tmp_path).of_lab(""):
        silence.end(tmp_path, one.id)
    assert file.read_text(encoding="utf-8").splitlines() == [
        "# Our silences",
        "# the end",
        "",
        "acknowledgements: []",
        "# bye",
    ]
    assert list(tmp_path.iterdir()) == [file]


def test_an_uneditable_file_is_refused_and_unchanged(tmp_path: Path) -> None:
    text = "silences: [{check: links, where: leaf01, until: 2026-12-01T08:00:00Z, by: al, why: x}]\n"
    file = tmp_path / "silences.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SilenceError, match="is a list in brackets"):
        silence.add(tmp_path, "silences", VALUES, KNOWN, NOW_S)
    with pytest.raises(SilenceError, match="is a list in brackets"):
        silence.end(tmp_path, load(tmp_path).of_lab("")[0].id)
    with pytest.raises(SilenceError, match="no silence or acknowledgement 'nothing'"):
        silence.end(tmp_path, "nothing")
    assert file.read_text(encoding="utf-8") == text


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


@given(
    by=WORDS.filter(str.strip), why=WORDS.filter(str.strip), place=st.sampled_from(["swp1", "swp1/3", "swp*", "a b"])
)
def test_added_entries_are_read_back(by: str, why: str, place: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fabric")
    values = {**VALUES, "by": by, "why": why, "where": f"leaf01:{place}"}
    silence.add(folder, "silences", {**VALUES, "check": "links"}, KNOWN, NOW_S)
    added = silence.add(folder, "silences", values, KNOWN, NOW_S).silence()
    assert (added.by, added.why, str(added.subjects[0])) == (by.strip(), why.strip(), f"leaf01:{place}")
    assert load(folder).of_lab("")[1] == added
