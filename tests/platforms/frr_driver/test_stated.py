"""What frr-reload.py is given: timers of BFD that run and that a file leaves out stand there at their default."""

import subprocess
from pathlib import Path

import pytest

from netkit.platforms.frr.procedure import STATED

RUNNING = """\
router bgp 65001
 neighbor SPINES bfd profile fabric
exit
!
bfd
 profile fabric
  detect-multiplier 4
  transmit-interval 1000
  echo receive-interval 80
  passive-mode
 exit
 !
 profile slow
  receive-interval 2000
 exit
 !
 peer 192.0.2.1
  detect-multiplier 5
 exit
 !
exit
!
end
"""


def stated(tmp_path: Path, wanted: str) -> str:
    for name, text in (("running", RUNNING), ("wanted", wanted)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = ["sh", "-c", f"{STATED}stated running wanted"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RUNNING, RUNNING),
        ("log syslog informational\n", "log syslog informational\n"),
        (
            "bfd\n profile fabric\n  transmit-interval 200\n exit\n profile other\n exit\n!\n",
            (
                "bfd\n profile fabric\n  transmit-interval 200\n  detect-multiplier 3\n  echo receive-interval 50\n"
                " exit\n"
                " profile other\n exit\n!\n"
            ),
        ),
        ("bfd\n profile slow\n !\nexit\n", "bfd\n profile slow\n  receive-interval 300\n !\nexit\n"),
        ("bfd\n peer 192.0.2.1\n exit\nexit\n", "bfd\n peer 192.0.2.1\n  detect-multiplier 3\n exit\nexit\n"),
        ("bfd\n profile slow\n", "bfd\n profile slow\n  receive-interval 300\n"),
    ],
    ids=["the same", "no BFD", "two of a profile", "an older FRR", "a peer", "the end of the file"],
)
def test_what_runs_and_is_left_out_is_stated_at_its_default(tmp_path: Path, wanted: str, expected: str) -> None:
    assert stated(tmp_path, wanted) == expected
