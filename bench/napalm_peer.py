"""Plain Nornir with NAPALM's EOS driver, on the same answers as netkit."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from napalm.eos.eos import EOSDriver
from nornir.core import Nornir
from nornir.core.configuration import Config
from nornir.core.inventory import Defaults, Groups, Host, Hosts, Inventory
from nornir.core.plugins.connections import ConnectionPluginRegister
from nornir.plugins.runners import ThreadedRunner
from nornir_napalm.plugins.tasks import napalm_get

from bench.fleet_answers import RecordedViewer

THREADS = 32
"""As many as netkit reads devices at a time."""


class RecordedNode:
    """eAPI, answering from a file."""

    def __init__(self, file: Path) -> None:
        self._viewer = RecordedViewer(file)
        self._viewer.open()

    def run_commands(self, commands: Sequence[str], **_: Any) -> list[Any]:
        return [json.loads(reply.text) for reply in self._viewer.ask([" ".join(one.split()) for one in commands])]


class RecordedConnection:
    """NAPALM's driver over such a node, as Nornir opens it."""

    connection: EOSDriver

    def open(self, hostname: str | None, *_: Any, **__: Any) -> None:
        self.connection = EOSDriver(hostname, "", "")
        self.connection.device = RecordedNode(Path(str(hostname)))

    def close(self) -> None:
        del self.connection


def look(names: Sequence[str], answers: Path, getters: Sequence[str]) -> int:
    """Run getters on switches; return how many answered all of them."""
    ConnectionPluginRegister.available.pop("napalm", None)
    ConnectionPluginRegister.register("napalm", RecordedConnection)
    hosts = Hosts({name: Host(name, hostname=str(answers / name), platform="eos") for name in names})
    inventory = Inventory(hosts, Groups(), Defaults())
    nornir = Nornir(inventory, runner=ThreadedRunner(num_workers=THREADS), config=Config())
    results = nornir.run(napalm_get, getters=list(getters))
    failed = {name: one.exception for name, one in results.items() if one.failed}
    if failed:
        raise next(iter(failed.values())) or RuntimeError(f"{len(failed)} devices failed")
    return len(results)
