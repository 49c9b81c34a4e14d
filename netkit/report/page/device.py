"""The facts of each device with its ports in a table, and findings by cause: the worst first, the rest counted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from netkit.design import Host, Switch
from netkit.design.fabric import Link
from netkit.facts import Absent
from netkit.facts.device import KINDS, NOT_ASKED
from netkit.judge import DeviceContext, Finding
from netkit.judge.cause import CauseGroup
from netkit.judge.check import Layer
from netkit.report.judgement_view import Judged, silence_text, trouble_silences, where
from netkit.report.page import table
from netkit.report.page.port import DesignedPort, designed, identity, rows
from netkit.report.page.table import cut, name
from netkit.report.page.view import HealthState, Reported, device_states, places, port_states

MOST_CAUSES = 600
MOST_SYMPTOMS = 10
MOST_EVIDENCE = 20


def causes(judged: Judged) -> dict[str, Any]:
    """The causes, and how many are left out."""
    found = judged.causes
    listed = [cause_document(one, judged.layers.get(one.head.check, "")) for one in found[:MOST_CAUSES]]
    return {"causes": listed, "causes_left_out": len(found) - len(listed)}


def cause_document(group: CauseGroup, layer: Layer | str) -> dict[str, Any]:
    """A cause as plain values, with its first symptoms."""
    symptoms = [_finding(one) for one in group.symptoms[:MOST_SYMPTOMS]]
    findings = (group.head, *group.symptoms)
    return {
        "verdict": group.verdict.word,
        "is_silenced": group.is_silenced,
        "silences": [cut(text) for text in islice(trouble_silences(group), MOST_SYMPTOMS)],
        "where": cut(where(group), 200),
        "layer": layer,
        "places": group.places,
        "devices": list(dict.fromkeys(name(one.device) for one in findings if one.device))[:MOST_SYMPTOMS],
        "head": _finding(group.head),
        "symptoms": symptoms,
        "symptoms_left_out": len(group.symptoms) - len(symptoms),
    }


def numbers(judged: Judged) -> Mapping[tuple[str, str], Sequence[int]]:
    """The indexes of causes with a finding at each device and port; port "" is the whole device.

    A cause lists only some of its findings: this leads to it from each of them.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for number, group in enumerate(judged.causes[:MOST_CAUSES]):
        findings = (one for one in (group.head, *group.symptoms) if one.device)
        for key in dict.fromkeys((one.device, place) for one in findings for place in ("", *places(one))):
            found.setdefault(key, []).append(number)
    return found


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": name(finding.check),
        "verdict": finding.verdict.word,
        "device": name(finding.device),
        "place": name(finding.place),
        "text": cut(finding.text),
        "remedy": cut(finding.remedy),
        "evidence": {name(key): cut(value) for key, value in finding.evidence[:MOST_EVIDENCE]},
        "silenced": "" if finding.silenced is None else cut(silence_text(finding.silenced)),
    }


@dataclass(frozen=True, slots=True)
class FabricHealth:
    """The health of everything, by name."""

    devices: Mapping[str, HealthState]
    ports: Mapping[tuple[str, str], HealthState]
    causes: Mapping[tuple[str, str], Sequence[int]]
    examined: Mapping[str, int]
    failures: Mapping[str, str]
    links: Mapping[tuple[str, str], Link]


def devices(reported: Reported) -> Iterator[dict[str, Any]]:
    """Yield every device of a report."""
    found = reported.judged.judgement
    links = {(link.device, link.port): link for link in reported.fabric.cables()}
    examined: Counter[str] = Counter()
    for result in found.results:
        examined[result.device] += result.examined
    health = FabricHealth(
        device_states(reported),
        port_states(found),
        numbers(reported.judged),
        examined,
        dict(found.unreached),
        links,
    )
    for device_name in reported.names:
        device = reported.fabric.device(device_name)
        if device is not None:
            seen = None if reported.context is None else reported.context.devices[device_name]
            yield _device(device, seen, health, reported.fabric.lossless.lossless_priorities)


def _device(
    device: Switch | Host, seen: DeviceContext | None, health: FabricHealth, lossless: tuple[int, ...]
) -> dict[str, Any]:
    places = designed(device, health.links)
    return {
        "name": device.name,
        "state": health.devices[device.name].value,
        **_position(device),
        "examined": health.examined.get(device.name, 0),
        "failure": cut(health.failures.get(device.name, "")),
        "window_s": table.rounded(seen.window_s, 3) if seen is not None else 0,
        "facts": dict(_facts(seen)) if seen is not None else {},
        "absent": dict(_absent(seen)) if seen is not None else {},
        "causes": list(health.causes.get((device.name, ""), ())),
        "ports": _ports(device.name, places, seen, health, lossless),
    }


def _position(device: Switch | Host) -> dict[str, Any]:
    if isinstance(device, Switch):
        where = {"unit": device.unit, "rail": device.rail} if device.role == "leaf" else {"plane": device.plane}
        role = {"role": str(device.role), "pod": device.pod, **where}
        return {**role, "platform": device.platform, "model": device.model.name}
    return {
        "role": "host",
        "pod": device.pod,
        "unit": device.unit,
        "platform": device.platform,
        "model": device.model.name,
    }


def _facts(seen: DeviceContext) -> Iterator[tuple[str, table.Value]]:
    """Yield what the device reports about itself."""
    system = seen.facts.system
    if not isinstance(system, Absent):
        for label in ("hostname", "version", "model", "serial", "kernel"):
            if text := getattr(system, label):
                yield label, name(text)
        if system.uptime_s is not None:
            yield "uptime_s", table.rounded(system.uptime_s)
    host = seen.facts.host
    if not isinstance(host, Absent):
        yield from ((name(tool), name(version)) for tool, version in sorted(host.tools.items()) if version)


def _absent(seen: DeviceContext) -> Iterator[tuple[str, str]]:
    """Yield the facts that were requested but not reported, with the reason."""
    for kind in KINDS:
        fact = getattr(seen.facts, kind)
        if isinstance(fact, Absent) and fact != NOT_ASKED:
            yield kind.replace("_", " "), cut(fact.reason)


def _ports(
    device: str,
    places: tuple[DesignedPort, ...],
    seen: DeviceContext | None,
    health: FabricHealth,
    lossless: tuple[int, ...],
) -> dict[str, Any]:
    known = rows(seen, places, lossless) if seen is not None else ({} for _ in places)
    return table.table(
        [
            table.merged((identity(place), _wrong((device, place.name), health), row))
            for place, row in zip(places, known, strict=True)
        ]
    )


def _wrong(port: tuple[str, str], health: FabricHealth) -> table.Row:
    """The state of a port, and the indexes of causes with a finding there."""
    state = health.ports.get(port)
    causes = " ".join(map(str, health.causes.get(port, ())))
    return {"state": state.value if state else None, "causes": causes or None}
