"""Helpers of the driver's tests for a SONiC switch of a running lab, in both routing modes."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from netkit.access.connect import connect
from netkit.access.endpoints import lab_endpoints
from netkit.access.settings import AccessSettings, Endpoint
from netkit.design import Fabric
from netkit.platforms.compare import ConfigComparison, Situation, compare
from netkit.platforms.config import Config
from netkit.platforms.driver import Candidate
from netkit.platforms.sonic.driver import SonicDriver
from netkit.platforms.sonic.model import MODEL
from netkit.render import Engine, render
from tests import intents
from tests.lab.running import RunningLab, intent, on_platform

MODES = ("split", "unified")
SECRETS = {"SNMP_AUTH": "auth-word-1", "SNMP_PRIV": 'priv-"word"-2', "LOGIN_HASH": "$6$salt$hash"}
Tables = dict[str, dict[str, dict[str, Any]]]


def values(mode: str) -> dict[str, Any]:
    """The intent: unified mode supports one set of BFD timers only, and needs a release that routes without files."""
    if mode == "split":
        return on_platform("sonic", intent(), version="202411")
    found = on_platform("sonic", intent(routing={"bfd": {"interval_ms": 300, "multiplier": 3}}), version="202511")
    for tier in found["switches"].values():
        tier["routing_mode"] = mode
    return found


@cache
def fabric(mode: str) -> Fabric:
    return intents.fabric(values(mode))


def rendered(mode: str, device: str) -> dict[str, str]:
    (found,) = render(fabric(mode), [fabric(mode).switch(device)], Engine())
    return {name: text for name, text in found.files.items() if MODEL.reads(name)}


def secret(name: str) -> str:
    return SECRETS[name]


def endpoint(lab: RunningLab, device: str, **changes: Any) -> Endpoint:
    folder = lab.home / lab.name
    record = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
    settings = AccessSettings.model_validate({"timeout_s": 120})
    return replace(lab_endpoints(record, folder, settings)[device], **changes)


def opened(lab: RunningLab, device: str, **changes: Any) -> SonicDriver:
    driver = connect(endpoint(lab, device, **changes), secret)
    assert isinstance(driver, SonicDriver)
    driver.open()
    return driver


def compared(driver: SonicDriver, files: Mapping[str, str]) -> ConfigComparison:
    return compare(MODEL, driver.running_files(), files)


def load(driver: SonicDriver, files: Mapping[str, str], method: str = "") -> str:
    """Stage files on a switch as a deploy does; return the method."""
    found = compared(driver, files)
    way = MODEL.strategy(Situation(found.changes, found.running, found.intended, driver.os_version()))
    driver.load_candidate(Candidate(files, found.changes, method or way.method))
    return way.method


def config(driver: SonicDriver) -> Config:
    """The owned part of the running configuration, in SONiC's model, without the lines that each vtysh adds."""
    found = MODEL.parse({name: text for name, text in driver.running_files().items() if text is not None})
    return MODEL.ownership.restrict(found, MODEL.ownership.claims(found))


def tables(driver: SonicDriver) -> Tables:
    found: Tables = json.loads(driver.running_files()["config_db.json"] or "")
    return found


def changed(driver: SonicDriver, *changes: tuple[str, str, str, Any]) -> dict[str, str]:
    """The running files with fields set; a value of None removes the whole row."""
    files = {name: text for name, text in driver.running_files().items() if text is not None}
    found = copy.deepcopy(json.loads(files["config_db.json"]))
    for table, key, field, value in changes:
        if value is None:
            del found[table][key]
        else:
            found.setdefault(table, {}).setdefault(key, {})[field] = value
    return files | {"config_db.json": json.dumps({name: rows for name, rows in found.items() if rows})}


def described(driver: SonicDriver, text: str, port: str = "Ethernet0") -> dict[str, str]:
    return changed(driver, ("PORT", port, "description", text))


def frr(lab: RunningLab, device: str) -> str:
    return lab.run(device, "vtysh", "-c", "show running-config")


def saved(lab: RunningLab, device: str) -> str:
    """Everything that is read at boot."""
    return lab.run(device, "sh", "-c", "cat /etc/sonic/config_db.json; cat /etc/sonic/frr/frr.conf 2>/dev/null || true")


def left_behind(lab: RunningLab, device: str) -> str:
    """Files of netkit on a switch."""
    places = "/run/lock/netkit/* /etc/sonic/*netkit* /etc/sonic/frr/*netkit* /etc/sonic/checkpoints/*"
    return lab.run(device, "sh", "-c", f"ls -d {places} 2>/dev/null || true")
