"""ANTA testing the ports of a healthy fabric with prepared answers. Runs in the peer's virtual environment.

One test of a kind per device, as in AVD's catalogues, is cheapest for ANTA; `--apart` runs one per port.
"""

import argparse
import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from anta.catalog import AntaCatalog, AntaTestDefinition  # type: ignore[import-not-found]  # the peer's own environment
from anta.device import AntaDevice  # type: ignore[import-not-found]
from anta.inventory import AntaInventory  # type: ignore[import-not-found]
from anta.result_manager import ResultManager  # type: ignore[import-not-found]
from anta.runner import main as run_tests  # type: ignore[import-not-found]
from anta.tests.connectivity import VerifyLLDPNeighbors  # type: ignore[import-not-found]
from anta.tests.interfaces import (  # type: ignore[import-not-found]
    VerifyInterfaceDiscards,
    VerifyInterfaceErrors,
    VerifyInterfacesOpticsReceivePower,
    VerifyInterfacesOpticsTemperature,
    VerifyInterfacesPFCCounters,
    VerifyInterfacesStatus,
)
from anta.tests.routing.bgp import VerifyBGPPeersHealth  # type: ignore[import-not-found]

Link = tuple[str, str, str]
"""A port, the device at its other end, and the port there."""
OF_PORTS = (
    VerifyInterfacesPFCCounters,
    VerifyInterfacesOpticsReceivePower,
    VerifyInterfacesOpticsTemperature,
    VerifyInterfaceErrors,
    VerifyInterfaceDiscards,
)
LANES = 4
FAMILY = "ipv4Unicast"
WELL = {"advertised": True, "received": True, "enabled": True}


class Answered(AntaDevice):  # type: ignore[misc]  # of a package that is not there for the type checker
    """A device whose answers are prepared."""

    def __init__(self, name: str, answers: Mapping[str, Any]) -> None:
        super().__init__(name, tags={name})
        self._answers = answers
        self.is_online = self.established = True
        self.hw_model = "DCS-7060X6-64PE"

    @property
    def _keys(self) -> tuple[Any, ...]:
        return (self.name,)

    async def _collect(self, command: Any, *, collection_id: str | None = None) -> None:
        del collection_id
        command.output = self._answers[command.command]

    async def refresh(self) -> None:
        """Keep the state as it is."""


def main() -> int:
    """Run the tests; return 1 if they report a failure on a healthy fabric."""
    parser = argparse.ArgumentParser(description="Judge with ANTA.")
    parser.add_argument("--links", type=Path, required=True, help="JSON: device → [port, far device, far port, is BGP]")
    parser.add_argument("--apart", action="store_true", help="a test of its own for every port")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    fabric = json.loads(given.links.read_text(encoding="utf-8"))
    inventory, tests = AntaInventory(), []
    for name, ports in fabric.items():
        inventory.add_device(Answered(name, _answers(ports)))
        groups = [[port] for port in ports] if given.apart else [ports]
        tests += [_definition(name, test, inputs) for group in groups for test, inputs in _of_ports(group)]
        tests.append(
            _definition(name, VerifyBGPPeersHealth, {"address_families": [{"afi": "ipv4", "safi": "unicast"}]})
        )
    results = ResultManager()
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    asyncio.run(run_tests(results, inventory, AntaCatalog(tests)))
    seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    ill = [result for result in results.results if result.result != "success"]
    judged = sum(_judged(ports) for ports in fabric.values())
    counted = {"judged": judged, "results": len(results.results), "ill": len(ill)}
    sys.stdout.write(json.dumps({**counted, "seconds": seconds, "cpu_s": cpu_s}) + "\n")
    for result in ill[:3]:
        sys.stderr.write(f"{result.name} {result.test} {result.result} {result.messages[:2]}\n")
    return 1 if ill or len(results.results) != len(tests) else 0


def _definition(device: str, test: type, inputs: Mapping[str, Any]) -> Any:
    made = test.Input(**inputs, filters={"tags": {device}})  # type: ignore[attr-defined]  # every test has one
    return AntaTestDefinition(test=test, inputs=made)


def _of_ports(ports: list[list[Any]]) -> Iterator[tuple[type, Mapping[str, Any]]]:
    names = [port for port, *_ in ports]
    far_ends = [{"port": port, "neighbor_device": far, "neighbor_port": end} for port, far, end, _ in ports]
    yield VerifyInterfacesStatus, {"interfaces": [{"name": name, "status": "up"} for name in names]}
    yield VerifyLLDPNeighbors, {"neighbors": far_ends, "require_fqdn": True}
    for test in OF_PORTS:
        yield test, {"interfaces": names}


def _judged(ports: list[list[Any]]) -> int:
    """How many things the tests of one device examine: six per port, each lane's power, each session."""
    return len(ports) * (6 + LANES) + sum(bool(is_bgp) for *_, is_bgp in ports)


def _answers(ports: list[list[Any]]) -> Mapping[str, Any]:
    """The device's answer to each command of a test."""
    peers = [_peer(far) for _, far, _, is_bgp in ports if is_bgp]
    made: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
        "show interfaces description": ("interfaceDescriptions", _description),
        "show lldp neighbors detail": ("lldpNeighbors", _neighbor),
        "show priority-flow-control counters": ("interfaceCounters", lambda *_: {"rxFrames": 0, "txFrames": 0}),
        "show interfaces transceiver dom thresholds": ("interfaces", lambda *_: _module()),
        "show interfaces counters errors": ("interfaceErrorCounters", lambda *_: {"inErrors": 0, "fcsErrors": 0}),
        "show interfaces counters discards": ("interfaces", lambda *_: {"inDiscards": 0, "outDiscards": 0}),
    }
    found = {command: {key: {p: of(far, end) for p, far, end, _ in ports}} for command, (key, of) in made.items()}
    return {**found, "show bgp neighbors vrf all": {"vrfs": {"default": {"peerList": peers}}}}


def _description(far: str, end: str) -> Any:
    return {"interfaceStatus": "up", "lineProtocolStatus": "up", "description": f"{far}:{end}"}


def _neighbor(far: str, end: str) -> Any:
    return {"lldpNeighborInfo": [{"systemName": far, "neighborInterfaceInfo": {"interfaceId_v2": end}}]}


def _module() -> Any:
    light = {"channels": {str(lane): 0.5 for lane in range(1, LANES + 1)}, "threshold": {"lowAlarm": -8.0}}
    return {"mediaType": "800GBASE-2DR4", "parameters": {"rxPower": light, "temperature": {"channels": {"-": 48.0}}}}


def _peer(far: str) -> Any:
    capabilities = {"multiprotocolCaps": {FAMILY: WELL}}
    queues = {"inputQueueLength": 0, "outputQueueLength": 0}
    state = {"state": "Established", "establishedTime": 100_000}
    return {"peerAddress": far, **state, "neighborCapabilities": capabilities, "peerTcpInfo": queues}


if __name__ == "__main__":
    sys.exit(main())
