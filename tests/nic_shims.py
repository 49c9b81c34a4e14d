"""Stand-ins for mlnx_qos, dcb and ethtool: a shell script under three names, answered by the test that runs it.

What the state of an interface lists under `stuck` is accepted with exit code 0 and then forgotten, as firmware
sometimes does.
"""

import copy
import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

SHIM = """#!/bin/dash
printf '%s\\n' "${0##*/}" "$@" >"$SHIM_FOLDER/calls"
{
  read -r code
  [ "$code" = 0 ] || exec >&2
  cat
} <"$SHIM_FOLDER/answers"
exit "$code"
"""
"""Starts in a tenth of the time of a Python program, and scripts start it thousands of times."""
State = dict[str, dict[str, Any]]
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


def mlnx_qos(nic: "Nic", args: list[str]) -> None:
    options = args[::2]
    if {"--trust", "--dscp2prio"} <= set(options):
        sys.exit("trust and dscp2prio commands cannot be used at the same time")
    for option, value in zip(options, args[1::2], strict=True):
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


def dcb(nic: "Nic", part: str, verb: str, args: list[str]) -> None:
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


def ethtool(nic: "Nic", verb: str, args: list[str]) -> None:
    if verb == "-a":
        print(f"Pause parameters:\nAutonegotiate:\toff\nRX:\t\t{nic['pause']['rx']}\nTX:\t\t{nic['pause']['tx']}\n")
    else:
        assert verb == "-A"
        change(nic, "pause", dict(zip(args[::2], args[1::2], strict=True)))


class Nic(dict[str, Any]):
    """The state of an interface during a call, and the keys that the call changes."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(copy.deepcopy(values))
        self.changed: list[str] = []


def change(nic: Nic, key: str, value: Any) -> None:
    nic.changed.append(key)
    if key not in nic["stuck"]:
        nic[key] = value


@contextmanager
def answering(folder: Path, state: State, changed: list[str]) -> Iterator[None]:
    """Answer the shims in a folder, which change the state by interface, and append the changed keys to a list."""
    for name in ("calls", "answers"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    def serve() -> None:
        while words := (folder / "calls").read_text(encoding="utf-8").splitlines():
            code, text = _answer(words[0], [word for word in words[1:] if word != "-N"], state, changed)
            (folder / "answers").write_text(f"{code}\n{text}", encoding="utf-8")

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    yield
    if server.is_alive():
        (folder / "calls").write_text("", encoding="utf-8")
    server.join()


def _answer(program: str, args: list[str], state: State, changed: list[str]) -> tuple[int, str]:
    """The exit code and output of a call; one that fails leaves the state as it was."""
    shown = io.StringIO()
    name = args[{"mlnx_qos": 1, "dcb": 3, "ethtool": 1}[program]]
    nic = Nic(state[name])
    try:
        with redirect_stdout(shown):
            match program:
                case "mlnx_qos":
                    mlnx_qos(nic, args[2:])
                case "dcb":
                    dcb(nic, args[0], args[1], args[4:])
                case _:
                    ethtool(nic, args[0], args[2:])
    except (Exception, SystemExit) as error:
        return 1, f"{error!r}\n"
    finally:
        changed += nic.changed
    state[name] = dict(nic)
    return 0, shown.getvalue()
