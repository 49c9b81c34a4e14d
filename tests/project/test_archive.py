"""A git archive of a revision is extracted into one folder, and nothing outside it is written."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from netkit.project.revision import OutsideError, lay_out


def _link(name: str, leads_to: str) -> tarfile.TarInfo:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, leads_to
    return link


def _folder(name: str) -> tarfile.TarInfo:
    folder = tarfile.TarInfo(name)
    folder.type = tarfile.DIRTYPE
    return folder


def _file(name: str, mode: int = 0o644) -> tarfile.TarInfo:
    file = tarfile.TarInfo(name)
    file.size, file.mode = len(name.encode()), mode
    return file


def _lay_out(place: Path, *members: tarfile.TarInfo) -> None:
    """Extract an archive of members in this order; the content of each file is its name."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(member.name.encode()))
    written.seek(0)
    with tarfile.open(fileobj=written) as archive:
        lay_out(archive, place)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    return place


def test_files_folders_and_links_are_extracted(place: Path) -> None:
    _lay_out(
        place,
        _link("site/latest", "../models/ä.yaml"),
        _folder("empty"),
        _file("models/ä.yaml"),
        _file("site/script", mode=0o775),
        _link("site/gone", "nowhere"),
        _link("models/site", "../site"),
    )
    assert (place / "empty").is_dir()
    assert (place / "models" / "site" / "latest").read_text(encoding="utf-8") == "models/ä.yaml"
    assert (place / "site" / "gone").readlink() == Path("nowhere")
    assert [os.access(place / "site" / name, os.X_OK) for name in ("script", "latest")] == [True, False]


@pytest.mark.parametrize(
    ("members", "refused"),
    [
        ([_file("../out")], "../out"),
        ([_file("a/../../out")], "a/../../out"),
        ([_file("/tmp/out")], "/tmp/out"),  # noqa: S108 (a name in an archive, never written)
        ([_folder("..")], ".."),
        ([_link("a", "/etc/hostname")], "a"),
        ([_link("a/b", "../../out")], "a/b"),
        ([_folder("a/b"), _link("c", "a/b"), _link("d", "c/../../../out")], "d"),
        ([_folder("a/b"), _link("a/b/up", ".."), _link("top", "a/b/up/../../x/..")], "top"),
        ([_link("z", ".."), _link("a", "z/x")], "z"),
        ([_link("a", "a/../../..")], "a"),
    ],
)
def test_members_that_escape_are_refused_by_name(place: Path, members: list[tarfile.TarInfo], refused: str) -> None:
    with pytest.raises(OutsideError) as raised:
        _lay_out(place, *members)
    assert raised.value.name == refused
    assert list(place.parent.iterdir()) == [place]


@pytest.mark.parametrize("links_first", [True, False])
def test_nothing_is_written_through_a_link(place: Path, *, links_first: bool) -> None:
    members = [_link("a", ".."), _file("a/out")]
    with pytest.raises(tarfile.TarError, match="a conflicts with another member"):
        _lay_out(place, *(members if links_first else reversed(members)))
    assert list(place.parent.iterdir()) == [place]


def test_a_duplicate_name_is_refused(place: Path) -> None:
    with pytest.raises(tarfile.TarError, match="a conflicts with another member"):
        _lay_out(place, _file("a"), _file("a"))


def test_special_files_are_refused(place: Path) -> None:
    pipe = tarfile.TarInfo("pipe")
    pipe.type = tarfile.FIFOTYPE
    with pytest.raises(tarfile.TarError, match="pipe is neither"):
        _lay_out(place, pipe)


def test_links_in_a_cycle_are_kept(place: Path) -> None:
    _lay_out(place, _link("a", "b"), _link("b", "a"))
    assert (place / "a").readlink() == Path("b")
