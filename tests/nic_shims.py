"""Stand-ins for mlnx_qos, dcb and ethtool: one program under three names.

State lives in $SHIM_STATE (by interface, as marshal writes it). Every call that changes something is appended to
$SHIM_LOG. What the state lists under `stuck` is accepted with exit code 0 and then forgotten, as firmware sometimes
does.
"""

# These programs start thousands of times: importing json or pathlib would double their run time.
# ruff: noqa: PTH119, PTH123
from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRESH: dict[str, Any] = {
    "dcbx": "Firmware controlled",
    "trust": "pcp",
    "dscp": [dscp // 8 for dscp in range(64)],
    "pfc": [0] * 8,
    "buffer": [0] * 8,
    "prio_tc": [1, 0, 2, 3, 4, 5, 6, 7],
    "tsa": ["vendor"] * 8,
    "bw": [0] * 8,
    "pause": {"rx": "on", "tx": "on"},
    "stuck": [],
}


def mlnx_qos(nic: dict[str, Any], args: list[str]) -> None:
    options = dict(zip(args[::2], args[1::2], strict=True))
    if {"--trust", "--dscp2prio"} <= set(options):
        sys.exit("trust and dscp2prio commands cannot be used at the same time")
    for option, value in options.items():
        match option:
            case "-d":
                change(nic, "dcbx", {"os": "OS controlled", "fw": "Firmware controlled"}[value])
            case "--trust":
                change(nic, "trust", value)
            case "--dscp2prio":
                verb, dscp, priority = value.split(",")
                assert verb == "set"
                change(nic, "dscp", [int(priority) if at == int(dscp) else old for at, old in enumerate(nic["dscp"])])
            case "--pfc":
                change(nic, "pfc", eight(value))
                change(nic, "buffer", eight(value))
            case "-p":
                change(nic, "prio_tc", eight(value))
            case "-s":
                change(nic, "tsa", value.split(","))
            case "-t":
                change(nic, "bw", eight(value))
            case _:
                sys.exit(f"mlnx_qos: no such option: {option}")
    if "-t" in options:
        assert sum(nic["bw"]) == 100
        assert all(nic["bw"][tc] == 0 for tc in range(8) if nic["tsa"][tc] == "strict")
    show_mlnx(nic)


def eight(value: str) -> list[int]:
    numbers = [int(number) for number in value.split(",")]
    assert len(numbers) == 8
    return numbers


def show_mlnx(nic: dict[str, Any]) -> None:
    print(f"DCBX mode: {nic['dcbx']}\nPriority trust state: {nic['trust']}")
    if nic["trust"] == "dscp":
        print("dscp2prio mapping:")
        for priority in range(8):
            dscps = [f"{dscp:02}" for dscp in reversed(range(64)) if nic["dscp"][dscp] == priority]
            for start in range(0, len(dscps), 8):
                print(f"\tprio:{priority} dscp:{','.join(dscps[start : start + 8])},")
    print("default priority:")
    print("Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=2069280\nCable len: 7")
    for name, row in (("priority", range(8)), ("enabled", nic["pfc"]), ("buffer", nic["buffer"])):
        print("PFC configuration:\n" * (name == "priority") + f"\t{name}".ljust(13) + "   ".join(map(str, row)))
    for tc in range(8):
        share = f", bw: {nic['bw'][tc]}%" if nic["tsa"][tc] == "ets" else ""
        print(f"tc: {tc} ratelimit: unlimited, tsa: {nic['tsa'][tc]}{share}")
        for priority in (priority for priority in range(8) if nic["prio_tc"][priority] == tc):
            print(f"\t priority:  {priority}")


def dcb(nic: dict[str, Any], part: str, verb: str, args: list[str]) -> None:
    if verb == "show":
        show_dcb(nic, part)
        return
    given: dict[str, dict[str, str]] = {}
    for arg in args:
        if ":" in arg:
            index, value = arg.split(":")
            given[list(given)[-1]][index] = value
        else:
            given[arg] = {}
    match part, verb:
        case "dcbx", "set":
            change(nic, "dcbx", {("host", "ieee"): "OS controlled"}[tuple(args)])  # type: ignore[index]  # any other is a fault
        case "app", "replace" if "dgram-port-prio" in given:
            change(nic, "ports", given["dgram-port-prio"])
        case "app", "replace":
            change(nic, "trust", "dscp")
            pairs = given["dscp-prio"]
            change(nic, "dscp", [int(pairs.get(str(dscp), old)) for dscp, old in enumerate(nic["dscp"])])
        case "pfc", "set":
            change(nic, "pfc", [int(given["prio-pfc"][str(priority)] == "on") for priority in range(8)])
            change(nic, "buffer", nic["pfc"])
        case "ets", "set":
            change(nic, "prio_tc", [int(given["prio-tc"][str(at)]) for at in range(8)])
            classes = range(len(nic["tsa"]))
            if {*given["tc-tsa"]} != {str(at) for at in classes} or max(nic["prio_tc"]) not in classes:
                sys.exit("RTNETLINK answers: Invalid argument")
            change(nic, "tsa", [given["tc-tsa"][str(at)] for at in classes])
            change(nic, "bw", [int(given["tc-bw"][str(at)]) for at in classes])
        case _:
            sys.exit(f"What is {verb}?")


def show_dcb(nic: dict[str, Any], part: str) -> None:
    def row(key: str, values: list[Any]) -> None:
        print(key, *(f"{index}:{value}" for index, value in enumerate(values)), "")

    match part:
        case "dcbx":
            print("host ieee " if nic["dcbx"] == "OS controlled" else "lld-managed ieee ")
        case "app":
            if nic["trust"] == "dscp":
                row("dscp-prio", nic["dscp"])
            if nic.get("ports"):
                print("dgram-port-prio", *(f"{port}:{priority}" for port, priority in nic["ports"].items()), "")
        case "pfc":
            print("pfc-cap 8 macsec-bypass off delay 4096")
            row("prio-pfc", ["on" if on else "off" for on in nic["pfc"]])
        case "ets":
            print("willing off ets-cap 8 cbs off")
            row("tc-bw", nic["bw"])
            row("pg-bw", [0] * 8)
            row("tc-tsa", nic["tsa"])
            row("prio-tc", nic["prio_tc"])
        case "buffer":
            row("prio-buffer", nic["buffer"])
            print("buffer-size 0:130Kb 1:130Kb total-size 2Mb")


def ethtool(nic: dict[str, Any], verb: str, args: list[str]) -> None:
    if verb == "-a":
        print(f"Pause parameters:\nAutonegotiate:\toff\nRX:\t\t{nic['pause']['rx']}\nTX:\t\t{nic['pause']['tx']}\n")
    else:
        assert verb == "-A"
        change(nic, "pause", dict(zip(args[::2], args[1::2], strict=True)))


def change(nic: dict[str, Any], key: str, value: Any) -> None:
    with open(os.environ["SHIM_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{key}\n")
    if key not in nic["stuck"]:
        nic[key] = value


def main() -> None:
    with open(os.environ["SHIM_STATE"], "rb") as file:
        state = marshal.load(file)  # noqa: S302 (written by the test)
    args = [arg for arg in sys.argv[1:] if arg != "-N"]
    match os.path.basename(sys.argv[0]):
        case "mlnx_qos":
            mlnx_qos(state[args[1]], args[2:])
        case "dcb":
            dcb(state[args[3]], args[0], args[1], args[4:])
        case "ethtool":
            ethtool(state[args[1]], args[0], args[2:])
        case _:
            sys.exit("called by a strange name")
    with open(os.environ["SHIM_STATE"], "wb") as file:
        marshal.dump(state, file)
