"""Text given to frr-reload: running BFD timers that the file omits are stated with their default, and renamed objects
come first.
"""

import subprocess
from pathlib import Path

import pytest

from netkit.platforms.frr.procedure import TEXTS

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


NAMED = """\
ip prefix-list FABRIC seq 10 permit 10.128.0.0/16 ge 29 le 29
!
bgp community-list standard DRAINED seq 5 permit graceful-shutdown
bgp as-path access-list OWN seq 5 permit ^$
!
route-map IN permit 10
 match ip address prefix-list FABRIC
exit
!
"""
OTHER = """\
router bgp 65001
 neighbor SPINES route-map IMPORT in
exit
!
ip prefix-list FABRIC seq 20 permit 10.129.0.0/16
ip prefix-list ANY seq 10 permit 10.128.0.0/16 ge 29 le 29
ipv6 prefix-list FABRIC seq 10 permit 2001:db8::/32
!
bgp community-list standard DRAINED seq 5 permit graceful-shutdown
bgp large-community-list standard DRAINED seq 5 permit 1:2:3
bgp as-path access-list OWN seq 5 permit ^$
!
route-map IN permit 20
exit
!
route-map IMPORT permit 10
 match ip address prefix-list ANY
exit
!
route-map IMPORT deny 20
exit
!
"""
INTRODUCED = """\
ip prefix-list ANY seq 10 permit 10.128.0.0/16 ge 29 le 29
ipv6 prefix-list FABRIC seq 10 permit 2001:db8::/32
bgp large-community-list standard DRAINED seq 5 permit 1:2:3
route-map IMPORT permit 10
 match ip address prefix-list ANY
exit
route-map IMPORT deny 20
exit
"""


def written(tmp_path: Path, function: str, running: str, wanted: str) -> str:
    for name, text in (("running", running), ("wanted", wanted)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = ["sh", "-c", f"{TEXTS}{function} running wanted"]
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
def test_running_but_omitted_timers_are_stated_at_their_default(tmp_path: Path, wanted: str, expected: str) -> None:
    assert written(tmp_path, "stated", RUNNING, wanted) == expected


@pytest.mark.parametrize(("wanted", "expected"), [(OTHER, INTRODUCED), (NAMED, ""), ("", "")])
def test_lists_and_route_maps_of_a_new_name_are_defined_first(tmp_path: Path, wanted: str, expected: str) -> None:
    assert written(tmp_path, "introduced", NAMED, wanted) == expected
