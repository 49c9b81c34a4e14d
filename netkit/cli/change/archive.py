"""A tar archive laid out in a folder, so that nothing of it can be anywhere else.

Not `TarFile.extractall(filter="data")`: early releases of Python 3.11 have no filters, and those that do judge the text
of a link, not where a chain of them ends.
"""

import os
import shutil
import stat
import tarfile
from pathlib import Path, PurePosixPath


class OutsideError(Exception):
    """A member leads out of the folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} leads out")


def lay_out(archive: tarfile.TarFile, place: Path) -> None:
    """Write folders and files, then links, so that nothing is written through one; refuse what leads out."""
    members = archive.getmembers()
    for member in members:
        _check(member)
    for member in sorted(members, key=tarfile.TarInfo.issym):
        try:
            _write(archive, member, place / member.name)
        except (FileExistsError, NotADirectoryError):
            raise tarfile.TarError(f"{member.name} is in the way of another") from None
    for link in filter(tarfile.TarInfo.issym, members):
        _check_end(link, place)


def _check(member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise OutsideError(member.name)
    if not (member.isdir() or member.isreg() or member.issym()):
        raise tarfile.TarError(f"{member.name} is neither a folder nor a file nor a link")


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        path.symlink_to(member.linkname)
    elif content := archive.extractfile(member):
        with path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod(path.stat().st_mode | member.mode & stat.S_IXUSR)


def _check_end(link: tarfile.TarInfo, place: Path) -> None:
    """Refuse a link that ends outside, by whatever other links it leads there."""
    end = os.path.realpath(place / link.name)  # not `Path.resolve`: before 3.13 that fails on links in a circle
    if not Path(end).is_relative_to(os.path.realpath(place)):
        raise OutsideError(link.name)
