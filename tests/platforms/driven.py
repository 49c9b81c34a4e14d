"""Drivers of lab switches, built by the code of netkit."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from netkit.access.connect import connect
from netkit.access.settings import Endpoint
from netkit.design import Fabric
from netkit.errors import AccessError
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.config import Files
from netkit.platforms.driver import Candidate, Driver
from netkit.render import Engine, render
from tests.lab.running import RunningLab

TIMEOUT_S = 120.0
SECRETS = {"LOGIN_HASH": "$6$abc$def"}


def secret(name: str) -> str:
    """A secret; each is unlike anything else that a device prints."""
    return SECRETS.get(name, f"hidden-{name.lower()}-9184")


def endpoint(lab: RunningLab, device: str, platform: str, **changes: Any) -> Endpoint:
    """How a device of a lab is reached."""
    folder = lab.home / lab.name
    found = json.loads((folder / "lab.json").read_text(encoding="utf-8"))["devices"][device]
    is_eapi = platform == "eos"
    whole = Endpoint(
        device,
        platform,
        found["address"],
        found["https_port"] if is_eapi else found["port"],
        found["login"],
        "eapi" if is_eapi else "ssh",
        password=(folder / "password").read_text(encoding="utf-8").strip() if is_eapi else "",
        key_file=None if is_eapi else folder / "key",
        known_hosts=folder / "known_hosts",
        certificate=found["certificate"],
        timeout_s=TIMEOUT_S,
    )
    return replace(whole, **changes)


@contextmanager
def driver(lab: RunningLab, device: str, platform: str, **changes: Any) -> Iterator[Any]:
    """Yield an open driver."""
    opened = connect(endpoint(lab, device, platform, **changes), secret)
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


def candidate(platform: str, opened: Driver, files: Files, *, owner: Files | None = None) -> Candidate:
    """The candidate that makes a device run these files, as a plan builds it."""
    found = compare(MODELS[platform], opened.running_files(), files, owner=owner)
    return Candidate(files, found.changes, "files" if platform == "frr" else "session")


def deploy(platform: str, opened: Driver, files: Files) -> int:
    """Make a device run these files, and confirm; return the number of changes."""
    made = candidate(platform, opened, files)
    opened.load_candidate(made)
    if made.changes:
        opened.commit_config(revert_in=600)
        opened.confirm_commit()
    return len(made.changes)


def files_of(fabric: Fabric, name: str) -> dict[str, str]:
    """The rendered files of a switch that are compared."""
    (device,) = render(fabric, [fabric.switch(name)], Engine())
    model = MODELS[fabric.switch(name).platform]
    return {file: text for file, text in device.files.items() if model.reads(file)}


@contextmanager
def broken(lab: RunningLab, fault: str, device: str, *options: str) -> Iterator[None]:
    """Inject a fault of a device for the length of a block."""
    assert lab.lab("break", fault, device, *options).returncode == 0
    try:
        yield
    finally:
        assert lab.lab("heal", device, fault).returncode == 0


def is_reachable(lab: RunningLab, device: str, platform: str) -> bool:
    """Whether a driver can log in to a device."""
    try:
        with driver(lab, device, platform):
            return True
    except AccessError:
        return False
