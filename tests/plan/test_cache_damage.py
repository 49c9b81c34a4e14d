"""However the cache is damaged, and whatever was edited since: the plan equals the one made without a cache."""

import tempfile
from functools import cache as once
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit import plan
from netkit.errors import ConfigError
from netkit.plan import Running, serial
from netkit.platforms.config import Files
from tests.lanes import examples
from tests.plan.scenes import Staged, staged

PAIRS = {f"{number:064x}": f"{number + 7:064x}" for number in range(9)}
PLATFORMS = ("nvue", "sonic", "eos", "frr")


@once
def scene(platform: str) -> Staged:
    return staged(platform, "asn")


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with some of them changed, removed, doubled or moved."""
    for _ in range(draw(st.integers(1, 3))):
        start, end = sorted((draw(st.integers(0, len(content))), draw(st.integers(0, len(content)))))
        piece = content[start:end]
        put = draw(st.sampled_from((b"", piece * 2, piece[::-1], piece.upper(), bytes(len(piece)))) | st.binary())
        content = content[:start] + put + content[end:]
    return content


@given(st.data())
def test_a_damaged_file_gives_nothing_or_what_was_stored(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        serial.save(folder, PAIRS)
        file = folder / serial.FILE
        file.write_bytes(data.draw(damaged(file.read_bytes())))
        assert serial.load(folder) in ({}, PAIRS)


@given(st.integers(0, 8 * 1300))
def test_not_one_bit_may_differ(bit: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        serial.save(folder, PAIRS)
        file = folder / serial.FILE
        content = bytearray(file.read_bytes())
        content[bit // 8 % len(content)] ^= 1 << bit % 8
        file.write_bytes(content)
        assert serial.load(folder) == {}


@pytest.mark.parametrize("platform", PLATFORMS)
@settings(max_examples=examples(30))
@given(st.data())
def test_edits_are_seen_whatever_is_cached(platform: str, data: st.DataObject) -> None:
    """One device is edited repeatedly, on either side, with the cache kept throughout."""
    played = scene(platform)
    name = data.draw(st.sampled_from(("leaf01", "gpu01")))
    files = played.intended[name]
    known: dict[str, str] = {}
    assert _outcome(played, name, files, files, known) == _outcome(played, name, files, files, None)
    for _ in range(3):
        edited = data.draw(_edited(files))
        for running, intended in ((edited, files), (files, edited), (edited, edited), (files, files)):
            found = _outcome(played, name, running, intended, known)
            assert found == _outcome(played, name, running, intended, None)


@st.composite
def _edited(draw: st.DrawFn, files: Files) -> Files:
    """Files with one line removed or doubled."""
    file = draw(st.sampled_from(sorted(files)))
    lines = files[file].splitlines(keepends=True)
    at = draw(st.integers(0, len(lines) - 1))
    return {**files, file: "".join(lines[:at] + [lines[at]] * draw(st.sampled_from((0, 2))) + lines[at + 1 :])}


def _outcome(played: Staged, name: str, running: Files, intended: Files, known: dict[str, str] | None) -> object:
    """The plan of a device, or the error: half a file may not be a valid configuration."""
    try:
        return plan.make(played.fabric, {name: Running(running)}, {name: intended}, known=known)
    except ConfigError as error:
        return error.problems


def test_the_boundary_between_two_files_counts() -> None:
    played = scene("frr")
    files = played.intended["leaf01"]
    moved = {**files, "daemons": files["daemons"] + files["frr.conf"][:40], "frr.conf": files["frr.conf"][40:]}
    known: dict[str, str] = {}
    _outcome(played, "leaf01", files, files, known)
    assert len(known) == 1
    assert _outcome(played, "leaf01", moved, files, known) == _outcome(played, "leaf01", moved, files, None)
    assert len(known) == 1
