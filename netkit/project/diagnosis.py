"""What a bug report needs, and nothing confidential.

Settings appear by name, and a fabric by counts: no value, address, device name or path is included.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from netkit import __version__
from netkit.deploy import RunSummary, history
from netkit.errors import DeployError, LabError, NetkitError
from netkit.lab import personality
from netkit.lab.folder import all_labs
from netkit.private import without_secrets
from netkit.project.project import CHECKS, MODELS, PLAYBOOKS, TEMPLATES, Project, beside
from netkit.project.runs import runs_folder

OURS = "NETKIT_"
OF_OTHERS = ("ANSIBLE_CONFIG", "HTTPS_PROXY", "HTTP_PROXY", "LANG", "LC_ALL", "NO_COLOR", "SSH_AUTH_SOCK", "TERM")
LATEST = 5
Section = Mapping[str, str]


def diagnosis(folder: Path | None) -> dict[str, Section]:
    origin = "installed" if (Path(__file__).parents[1] / "shipped").is_dir() else "a checkout"
    variables = sorted(name for name in os.environ if name.startswith(OURS) or name in OF_OTHERS)
    sections: dict[str, Section] = {
        "netkit": {"version": __version__, "python": platform.python_version(), "from": origin},
        "machine": dict(_machine()),
        "packages": dict(_packages()),
        "lab": dict(_lab()),
        "environment": dict.fromkeys(variables, "set"),
    }
    return sections if folder is None else {**sections, **_of_fabric(folder)}


def _machine() -> Iterator[tuple[str, str]]:
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "distribution", _distribution()
    yield "processors", str(len(os.sched_getaffinity(0)))
    yield "memory", f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GB"
    yield "root", "yes" if os.geteuid() == 0 else "no"
    yield "encoding", f"{sys.stdout.encoding}, files {sys.getfilesystemencoding()}"


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unnamed")
    except OSError:
        return "unknown"


def _packages() -> Iterator[tuple[str, str]]:
    """Yield the dependencies of netkit and their installed versions."""
    try:
        required = metadata.requires("netkit-fabric") or []
    except metadata.PackageNotFoundError:
        yield "netkit", "runs from a folder, not installed by pip"
        return
    for line in sorted(set(required), key=str.lower):
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed, and only needed for an extra" if "extra ==" in line else "missing"


def _lab() -> Iterator[tuple[str, str]]:
    try:
        personality.check()
        yield "can run here", "yes"
    except LabError as error:
        yield "can run here", str(error)
    yield "labs", str(len(all_labs()))
    if not shutil.which("dpkg-query"):  # not Debian
        return
    packages = sorted({*personality.TOOLS.values(), *personality.PROGRAMS.values()})
    words = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev} ${Version}\n", *packages]
    done = subprocess.run(  # noqa: S603 (a fixed list of words)
        words, env=without_secrets(), capture_output=True, text=True, check=False
    )
    found = {line.split()[0]: line.split()[2] for line in done.stdout.splitlines() if line.split()[1:2] == ["ii"]}
    for package in packages:
        yield package, found.get(package, "missing")


def _of_fabric(folder: Path) -> dict[str, Section]:
    try:
        project = Project.open(folder)
    except NetkitError as error:
        return {"fabric": {"problems": f"{len(error.problems)}; netkit validate prints them"}}
    try:
        runs = {one.run: _run_line(one) for one in history(runs_folder(project.fabric.name, ""))[:LATEST]}
    except DeployError as error:
        runs = {"problem": _without_files(error)}
    return {"fabric": dict(_counted(project)), "runs": runs or {"none": "yet"}}


def _counted(project: Project) -> Iterator[tuple[str, str]]:
    fabric, folder = project.fabric, project.folder
    yield "topology", f"{fabric.topology}, {fabric.attachment} attachment, {len(fabric.rails)} rails"
    kinds = Counter(f"{one.role} switches, {one.model.name}, {one.platform} {one.version}" for one in fabric.switches)
    kinds.update(f"hosts, {host.model.name}" for host in fabric.hosts)
    yield from ((kind, str(count)) for kind, count in kinds.items())
    yield "overrides", str(len(project.intent.overrides))
    yield "access.yaml", "yes" if (folder / "access.yaml").exists() else "no"
    for name in (MODELS, TEMPLATES, CHECKS, PLAYBOOKS):
        files = sum(file.is_file() for place in beside(folder, name) for file in place.rglob("*"))
        yield f"own {name}", str(files)


def _without_files(error: NetkitError) -> str:
    """The messages of an error, without the names of the fabric and the user in paths."""
    return "; ".join(problem.message for problem in error.problems)


def _run_line(one: RunSummary) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(one.began_s))
    if one.damage is not None:
        return _without_files(one.damage)
    if one.outcome is None:
        return f"{began}, superseded by {one.superseded}" if one.superseded else f"{began}, not finished"
    results = Counter(str(device.result) for device in one.outcome.devices)
    return f"{began}, exit code {one.outcome.exit_code}: {', '.join(f'{n} {result}' for result, n in results.items())}"
