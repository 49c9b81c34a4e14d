"""Helpers of the driver's tests for a switch of a running lab."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from netkit import design
from netkit.access.connect import connect
from netkit.access.endpoints import lab_endpoints
from netkit.access.settings import AccessSettings, Endpoint
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms.change import Change
from netkit.platforms.compare import compare
from netkit.platforms.driver import Candidate
from netkit.platforms.nvue.driver import NvueDriver
from netkit.platforms.nvue.model import MODEL
from netkit.platforms.nvue.shell import ShellTransport
from netkit.render import Engine, render
from tests.lab.running import RunningLab, intent

SECRETS = {"SNMP_AUTH": "auth word: 'x' #1", "SNMP_PRIV": "priv-word-2", "LOGIN_HASH": "$6$salt$hash"}
FABRIC: Fabric = design.build(Intent.model_validate(intent()), Catalog())
TRANSPORTS = ("ssh", "nvue-rest")
PORT = "swp1s0"
LONG_S = 3600
SHORT_S = 3


def secret(name: str) -> str:
    return SECRETS[name]


def endpoint(lab: RunningLab, device: str, transport: str = "ssh", **changes: Any) -> Endpoint:
    folder = lab.home / lab.name
    record = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
    settings = AccessSettings.model_validate({"timeout_s": 120, "platforms": {"nvue": {"transport": transport}}})
    return replace(lab_endpoints(record, folder, settings)[device], **changes)


def opened(lab: RunningLab, device: str, transport: str = "ssh", **changes: Any) -> NvueDriver:
    driver = connect(endpoint(lab, device, transport, **changes), secret)
    assert isinstance(driver, NvueDriver)
    driver.open()
    return driver


def rendered(device: str) -> dict[str, str]:
    (found,) = render(FABRIC, [FABRIC.switch(device)], Engine())
    return {name: text for name, text in found.files.items() if MODEL.reads(name)}


def changes(driver: NvueDriver, files: Mapping[str, str]) -> tuple[Change, ...]:
    return compare(MODEL, driver.running_files(), files).changes


def load(driver: NvueDriver, files: Mapping[str, str]) -> tuple[Change, ...]:
    """Stage files on a switch as a deploy does."""
    found = changes(driver, files)
    driver.load_candidate(Candidate(files, found, "patch"))
    return found


def texts(driver: NvueDriver) -> dict[str, str]:
    return {name: text or "" for name, text in driver.running_files().items()}


def tree(driver: NvueDriver) -> dict[str, Any]:
    """The running configuration as a tree that can be changed."""
    (text,) = texts(driver).values()
    found = json.loads(text)
    return next(item["set"] for item in found if "set" in item) if isinstance(found, list) else found


def files_of(intended: Mapping[str, Any]) -> dict[str, str]:
    return {"startup.yaml": json.dumps([{"set": intended}])}


def transport_of(driver: NvueDriver) -> str:
    return "ssh" if isinstance(driver._transport, ShellTransport) else "nvue-rest"  # noqa: SLF001


def described(driver: NvueDriver, text: str, port: str = PORT) -> dict[str, str]:
    """The running configuration with a port's description changed."""
    wanted = tree(driver)
    wanted["interface"][port]["description"] = f"{text} over {transport_of(driver)}"
    return files_of(wanted)


@contextmanager
def broken(lab: RunningLab, fault: str, device: str, *options: str) -> Iterator[None]:
    """Inject a fault for the length of a block."""
    assert lab.lab("break", fault, device, *options).returncode == 0
    try:
        yield
    finally:
        assert lab.lab("heal", device, fault).returncode == 0


def unsaved(lab: RunningLab, device: str) -> str:
    """Differences between the running and the saved configuration."""
    return lab.shell(device, "nv config diff startup applied")


def copied(file: Path, place: Path, text: str = "") -> Path:
    place.write_text(text or file.read_text(encoding="utf-8"), encoding="utf-8")
    place.chmod(0o600)
    return place
