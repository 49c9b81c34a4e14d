"""BFD runs slower in a lab than configured, and vtysh shows the configured timers."""

import re
import subprocess
from pathlib import Path

from netkit.lab.node import ProgramResult
from netkit.lab.routing import as_configured, neighbors, part, slower_bfd

CONFIG = """frr version 10.2
bfd
 profile fabric
  transmit-interval 300
  receive-interval 300
  detect-multiplier 3
 exit
 !
 profile slow
  transmit-interval 1000
  receive-interval 2000
 exit
 !
 profile plain
 exit
 !
exit
!
"""


def shown(script: str, text: str, folder: Path) -> str:
    file = folder / "as-configured.sed"
    file.write_text(script, encoding="utf-8")
    return subprocess.run(["sed", "-f", file], input=text, capture_output=True, text=True, check=True).stdout


def test_faster_timers_run_slower_and_all_are_shown_as_configured(tmp_path: Path) -> None:
    slower = slower_bfd(CONFIG, 1000)
    running = "".join(line for line in slower.splitlines(keepends=True) if not line.startswith("! configured"))
    left_out = " profile plain\n"
    slow = f"{left_out}  transmit-interval 1000\n  receive-interval 1000\n"
    assert running == CONFIG.replace("interval 300", "interval 1000").replace(left_out, slow)
    defaults = re.compile(r"^ *(?:receive|transmit)-interval 300\n", re.MULTILINE)
    assert shown(as_configured(slower), running, tmp_path) == defaults.sub("", CONFIG)  # FRR omits defaults


def test_slow_timers_are_unchanged() -> None:
    slow = CONFIG.replace("interval 300", "interval 1000").replace(" profile plain\n exit\n !\n", "")
    assert slower_bfd(slow, 1000) == slow
    assert as_configured(slow) == ""
    assert slower_bfd(CONFIG, 300) == CONFIG
    assert slower_bfd("bfd\n profile a\n profile b\n", 400).count("interval 400\n") == 4  # an `exit` may be left out


class Shown:
    """A node that records the commands run on it."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:
        self.ran.append(command)
        assert not stdin
        assert timeout_s
        return ProgramResult(0, "", "")

    def file(self, path: str) -> Path:
        raise NotImplementedError

    def spawn(self, name: str, *command: str) -> None:
        raise NotImplementedError

    def end(self, name: str) -> None:
        raise NotImplementedError

    def is_running(self, name: str) -> bool:
        raise NotImplementedError


def test_neighbors_on_removed_ports_are_shut_first() -> None:
    text = "router bgp 65001\n neighbor UP peer-group\n neighbor swp1 interface v6only peer-group UP\n"
    text += " neighbor swp2 interface v6only peer-group UP\n neighbor swp2 remote-as 65002\n"
    assert neighbors(text) == {"swp1", "swp2"}
    node = Shown()
    part(node, text, ["swp2", "swp3"])
    assert node.ran == [
        ("vtysh", "-c", "configure terminal", "-c", "router bgp 65001", "-c", "no neighbor swp2 interface")
    ]
    part(node, text, ["swp3"])
    part(node, "", ["swp2"])
    assert len(node.ran) == 1
