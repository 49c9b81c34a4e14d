"""`show interfaces …`: state, counters and forward error correction."""

from collections.abc import Mapping, Sequence

from netkit.lab.personalities.sonic.columns import columns
from netkit.lab.personalities.sonic.command import Command, Commands, Line, UsageError
from netkit.lab.personalities.sonic.counters import PORT
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import natural, parts, text
from netkit.lab.personality import Call
from netkit.lab.reading import PortReading

STATES = {(True, True): "U", (True, False): "D", (False, True): "X", (False, False): "X"}
FORM_WORDS = {"OSFP": "OSFP 8X Pluggable Transceiver", "QSFP-DD": "QSFP-DD Double Density 8X Pluggable Transceiver"}


def chosen(system: System, line: Line) -> tuple[str, ...]:
    """Return the ports a line names, all when it names none; one that is not there is an error."""
    known = sorted(system.running.get("PORT", {}), key=natural)
    if not line.arguments:
        return tuple(known)
    for name in line.arguments:
        if name not in known:
            raise UsageError(f"Invalid interface name {name}")
    return line.arguments


def readings(system: System, line: Line) -> list[PortReading]:
    """Return what the named ports show, in their order; ports without a cable in the lab show nothing."""
    found = {reading.name: reading for reading in system.node.ports()}
    return [found[name] for name in chosen(system, line) if name in found]


def number(count: int) -> str:
    """Return a count as `show` prints it."""
    return f"{count:,}"


def _status(system: System, call: Call, line: Line) -> None:
    up = {reading.name: reading for reading in system.node.ports()}
    names = chosen(system, line)
    titles = ("Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin", "Type", "Asym PFC")
    call.out(columns(titles, [_status_row(system, name, up.get(name)) for name in names]))


def _status_row(system: System, name: str, reading: PortReading | None) -> Sequence[str]:
    row = {leaf: text(system.running, "PORT", name, leaf) for leaf in system.running["PORT"][name]}
    speed = int(row["speed"])
    module = reading.module if reading else None
    return (
        name,
        row["lanes"],
        f"{speed // 1000}G" if speed % 1000 == 0 else f"{speed}M",
        row.get("mtu", "9100"),
        row.get("fec", "N/A"),
        row.get("alias", name),
        "trunk" if any(parts(key)[1] == name for key in system.running.get("VLAN_MEMBER", {})) else "routed",
        "up" if reading and reading.is_up else "down",
        row.get("admin_status", "down"),
        FORM_WORDS.get(module.identifier, module.identifier) if module else "N/A",
        "off",
    )


def _description(system: System, call: Call, line: Line) -> None:
    up = {reading.name for reading in system.node.ports() if reading.is_up}
    rows = []
    for name in chosen(system, line):
        row = system.running["PORT"][name]
        shown = ("up" if name in up else "down", row.get("admin_status", "down"), row.get("alias", name))
        rows.append((name, *shown, row.get("description", "N/A")))
    call.out(columns(("Interface", "Oper", "Admin", "Alias", "Description"), rows))


def _counters(system: System, call: Call, line: Line) -> None:
    counts = [f"{way}_{what}" for way in ("RX", "TX") for what in ("OK", "BPS", "UTIL", "ERR", "DRP", "OVR")]
    titles = ("IFACE", "STATE", *counts)
    call.out(columns(titles, [_counters_row(system, call, reading) for reading in readings(system, line)]))


def _counters_row(system: System, call: Call, reading: PortReading) -> Sequence[str]:
    since = system.cleared.since(call.user, "counters", reading)
    cells = [reading.name, STATES[reading.is_enabled, reading.is_up]]
    rates = system.rates.of(reading)
    for word, rate in (("IN", rates.rx_bytes_per_s), ("OUT", rates.tx_bytes_per_s)):
        share = 100 * rate * 8 / (reading.speed_gbps * 1e9) if reading.speed_gbps else 0.0
        counts = [since[f"{PORT}IF_{word}_{what}"] for what in ("UCAST_PKTS", "ERRORS", "DISCARDS")]
        cells += [number(counts[0]), _rate(rate), f"{share:.2f}%", number(counts[1]), number(counts[2]), "N/A"]
    return cells


def _rate(bytes_per_s: float) -> str:
    for size, word in ((1e7, "MB/s"), (1e3, "KB/s")):
        if bytes_per_s > size:
            return f"{bytes_per_s / (1e6 if word == 'MB/s' else 1e3):.2f} {word}"
    return f"{bytes_per_s:.2f} B/s"


def _fec_stats(system: System, call: Call, line: Line) -> None:
    titles = ("IFACE", "STATE", "FEC_CORR", "FEC_UNCORR", "FEC_SYMBOL_ERR", "FEC_PRE_BER", "FEC_POST_BER")
    rows = []
    for reading in readings(system, line):
        since = system.cleared.since(call.user, "counters", reading)
        names = ("CORRECTABLE_FRAMES", "NOT_CORRECTABLE_FRAMES", "SYMBOL_ERRORS")
        counts = [number(since[f"{PORT}IF_IN_FEC_{name}"]) for name in names]
        rates = (f"{reading.fec.pre_fec_ber:.2e}", f"{reading.fec.effective_ber:.2e}")
        rows.append((reading.name, STATES[reading.is_enabled, reading.is_up], *counts, *rates))
    call.out(columns(titles, rows))


def _fec_histogram(system: System, call: Call, line: Line) -> None:
    line.first("interfacename")
    for reading in readings(system, line):
        bins = [(f"BIN{index}", count) for index, count in enumerate(reading.fec.histogram[:16])]
        call.out(columns(("Symbol Errors Per Codeword", "Codewords"), bins, right=False))


def _fec_status(system: System, call: Call, line: Line) -> None:
    up = {reading.name: reading.fec.mode for reading in system.node.ports() if reading.is_up}
    names = chosen(system, line)
    rows = [(name, up.get(name) or "N/A", text(system.running, "PORT", name, "fec", "N/A")) for name in names]
    call.out(columns(("Interface", "FEC Oper", "FEC Admin"), rows))


def _breakout(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    rows: Mapping[str, object] = system.running.get("BREAKOUT_CFG", {})
    shown = [(name, text(system.running, "BREAKOUT_CFG", name, "brkout_mode")) for name in sorted(rows, key=natural)]
    call.out(columns(("Interface", "Current Breakout Mode"), shown, right=False))


COMMANDS: Commands = {
    ("interfaces", "status"): Command(_status, 1),
    ("interfaces", "description"): Command(_description, 1),
    ("interfaces", "counters"): Command(_counters),
    ("interfaces", "counters", "fec-stats"): Command(_fec_stats),
    ("interfaces", "counters", "fec-histogram"): Command(_fec_histogram, 1),
    ("interfaces", "fec", "status"): Command(_fec_status, 1),
    ("interfaces", "breakout", "current-mode"): Command(_breakout),
}
