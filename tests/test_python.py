"""Every installed Python that is recent enough has the names of the standard library that netkit uses.

mypy cannot check this: its stubs describe the last release of Python 3.11, while Debian 12 has its third.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tests import lacking
from tests.command import ROOT

TELLS_VERSION = "import sys; print(*sys.version_info[:3])"
NAMES = ("/usr/bin/python3", "python3.11", "python3.12", "python3.13", "python3.14")
OLDEST = (3, 11)
CODE = ("netkit", "drivers", "checks", "docs", "bench")


def _pythons() -> dict[tuple[int, ...], str]:
    """Each version of Python that is installed, and its path."""
    found = {tuple(sys.version_info[:3]): sys.executable}
    for path in filter(None, map(shutil.which, NAMES)):
        done = subprocess.run([path, "-c", TELLS_VERSION], capture_output=True, text=True, check=False)
        version = tuple(map(int, done.stdout.split()))
        if version >= OLDEST:
            found.setdefault(version, path)
    return found


def test_every_installed_python_has_the_names_used_of_it() -> None:
    lacks = {}
    for version, path in _pythons().items():
        done = subprocess.run(
            [path, "-I", lacking.__file__, *CODE], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), path
        lacks[version] = done.stdout.splitlines()
    assert not any(lacks.values()), lacks


def test_missing_names_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "new.py"
    lines = (
        "import os.path as paths, tarfile",
        "from concurrent import futures, pasts",
        "import collections.abc, some_library.part",
        "collections.abc.Iterator, collections.abc.Loop, paths.join, tarfile.TarError.x, some_library.other",
        "tarfile.SunError, futures.Executor",
    )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = [reported.removeprefix(str(file)) for reported in lacking.lacking(file)]
    assert found == [":2: concurrent.pasts", ":4: collections.abc.Loop", ":5: tarfile.SunError"]
