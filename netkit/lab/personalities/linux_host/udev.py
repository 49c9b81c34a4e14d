"""udev's rules for the rail NICs: what they name each, and which units they want started for it.

The lab's interfaces bear their rail names from the start; a rule decides whether the NIC is taken for that rail.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOKEN = re.compile(r'\s*([A-Z]+(?:\{[\w.]+\})?)\s*(==|!=|\+=|:=|=)\s*"([^"]*)"\s*(,|$)')
MATCHES = frozenset({"ACTION", "SUBSYSTEM", "KERNEL", "KERNELS", "DEVPATH", "DRIVERS", "NAME"})
ASSIGNMENTS = frozenset({"NAME", "GOTO", "LABEL", "TAG", "RUN"})
MARK = "ENV{NETKIT_RAIL}"
WANTS = "ENV{SYSTEMD_WANTS}"
Device = Mapping[str, str]
Token = tuple[str, str, str]


class RuleError(Exception):
    """A rule cannot be read; the text says which and why."""


@dataclass(frozen=True, slots=True)
class UdevOutcome:
    """What rules make of a device."""

    name: str
    rail: str
    wants: tuple[str, ...]
    runs: tuple[str, ...]


def rules(text: str, file: str = "rules") -> tuple[tuple[Token, ...], ...]:
    """Return the rules of a file; raises RuleError with all that is wrong."""
    found, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            tokens = tuple(_tokens(line))
            broken = not tokens or any(not _is_known(token) for token in tokens)
            problems += [f"{file}:{number}: cannot be read: {line}"] * broken
            found.append(tokens)
    labels = {value for tokens in found for key, _, value in tokens if key == "LABEL"}
    for tokens in found:
        problems += [f"{file}: no LABEL {value}" for key, _, value in tokens if key == "GOTO" and value not in labels]
    if problems:
        raise RuleError("\n".join(problems))
    return tuple(found)


def _tokens(line: str) -> Iterator[Token]:
    at = 0
    while at < len(line.rstrip()):
        match = TOKEN.match(line, at)
        if match is None:
            yield "", "", ""
            return
        yield match[1], match[2], match[3]
        at = match.end()


def _is_known(token: Token) -> bool:
    key, operator, _ = token
    head = key.partition("{")[0]
    if operator in {"==", "!="}:
        return key in MATCHES or head in {"ENV", "ATTR", "ATTRS"}
    return key in ASSIGNMENTS or head == "ENV"


def apply(found: Sequence[Sequence[Token]], device: Device) -> UdevOutcome:
    """Return what rules make of a device."""
    state: dict[str, str] = {}
    runs: list[str] = []
    goto = ""
    for tokens in found:
        if goto and ("LABEL", "=", goto) not in tokens:
            continue
        goto = ""
        if all(_holds({**device, **state}, token) for token in tokens):
            goto = _assign(state, runs, tokens, device)
    return UdevOutcome(state.get("NAME", ""), state.get(MARK, ""), tuple(state.get(WANTS, "").split()), tuple(runs))


def _assign(state: dict[str, str], runs: list[str], tokens: Sequence[Token], device: Device) -> str:
    goto = ""
    for key, operator, value in tokens:
        if operator in {"==", "!="} or key == "LABEL":
            continue
        filled = re.sub(r"\$env\{(\w+)\}", lambda match: state.get(f"ENV{{{match[1]}}}", ""), value)
        filled = filled.replace("%k", device["KERNEL"])
        if key == "GOTO":
            goto = value
        elif key == "RUN":
            runs.append(filled)
        else:
            state[key] = f"{state[key]} {filled}" if operator == "+=" and key in state else filled
    return goto


def _holds(device: Device, token: Token) -> bool:
    key, operator, value = token
    if operator not in {"==", "!="}:
        return True
    if key.startswith("ATTR") and key not in device:
        return False  # a file that cannot be read matches nothing
    there = device.get(key, "").split() if key == "KERNELS" else [device.get(key, "")]
    return any(fnmatch.fnmatchcase(text, glob) for text in there for glob in value.split("|")) == (operator == "==")


def network_device(interface: str, pci: str, action: str = "add") -> Device:
    """Return a rail NIC's interface as udev sees it."""
    return {
        "ACTION": action,
        "SUBSYSTEM": "net",
        "KERNEL": interface,
        "KERNELS": f"0000:{pci.split(':')[1]}:01.0 {pci}",
        "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/net/{interface}",
        "ATTR{phys_port_name}": "p0",
    }


def function_of(pci: str) -> Device:
    """Return a sub-function of a rail NIC as udev sees it: it hangs below the same PCI address."""
    device = network_device("eth9", pci)
    return {**device, "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/mlx5_core.sf.4/net/eth9"}


def representor_of(pci: str) -> Device:
    """Return the representor of a virtual function of a rail NIC as udev sees it."""
    return {**network_device("eth9", pci), "ATTR{phys_port_name}": "pf0vf3"}


def rdma_device(rdma: str, pci: str, action: str = "add") -> Device:
    """Return a rail NIC's RDMA device as udev sees it."""
    return {
        "ACTION": action,
        "SUBSYSTEM": "infiniband",
        "KERNEL": rdma,
        "KERNELS": f"0000:{pci.split(':')[1]}:01.0 {pci}",
        "DEVPATH": f"/devices/pci0000:{pci.split(':')[1]}/{pci}/infiniband/{rdma}",
    }


def read(folder: Path) -> tuple[tuple[Token, ...], ...]:
    """Return the rules of a folder in order; files that cannot be read count as empty, as udev skips bad lines."""
    found: list[tuple[Token, ...]] = []
    for file in sorted(folder.glob("*.rules")):
        try:
            found += rules(file.read_text(encoding="utf-8"), file.name)
        except RuleError:
            continue
    return tuple(found)
