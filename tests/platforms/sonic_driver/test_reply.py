"""Parsing the replies of a switch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.driver import SessionState
from netkit.platforms.sonic import model, reader, reply

STATUS = """
  Interface      Lanes    Speed    MTU    FEC    Alias    Vlan    Oper    Admin             Type    Asym PFC
-----------  ---------  -------  -----  -----  -------  ------  ------  -------  ---------------  ----------
  Ethernet0    0,1,2,3     400G   9216     rs    etp1a   trunk    down       up  QSFP28 or later         off
"""
LLDP = """Capability codes: (R) Router, (B) Bridge, (O) Other
LocalPort    RemoteDevice    RemotePortID    Capability    RemotePortDescr
-----------  --------------  --------------  ------------  -----------------
Ethernet0    one             etp1a                         leaf01:Ethernet0
Ethernet0    two             etp1b           BR
--------------------------------------------------
Total entries displayed:  2
"""


def test_columns_of_a_table_follow_its_ruler() -> None:
    (row,) = reply.table(STATUS)
    assert (row["Interface"], row["Oper"], row["Type"], row["Asym PFC"]) == (
        "Ethernet0",
        "down",
        "QSFP28 or later",
        "off",
    )
    assert reader.lldp_neighbors(reply.table(LLDP)) == {
        "Ethernet0": [{"hostname": "one", "port": "etp1a"}, {"hostname": "two", "port": "etp1b"}]
    }


@pytest.mark.parametrize("text", ["", "nothing here", "----\n", "\n\n"])
def test_text_without_a_table_has_no_rows(text: str) -> None:
    assert list(reply.table(text)) == []


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("build_version: '202411.3-abc'\ndebian_version: '12'\n", "202411.3-abc"),
        ("\nSONiC Software Version: SONiC.202505\nSONiC OS Version: 12\n", "202505"),
        ("no release", ""),
    ],
)
def test_a_release_is_found_where_it_stands(text: str, version: str) -> None:
    assert reply.version_in(text) == version


def test_sessions_come_from_the_summary_and_are_empty_without_bgp() -> None:
    text = """{"ipv4Unicast": {"peers": {
        "Ethernet0": {"state": "Established", "pfxRcd": 3, "peerUptimeMsec": 4500},
        "Ethernet4": {"state": "Active", "peerUptimeMsec": 4500}}}}"""
    wanted = (SessionState("Ethernet0", True, 3, 4), SessionState("Ethernet4", False, 0, 0))
    assert reply.sessions(reply.summary(text)) == wanted
    for none in ("", "{}", "% BGP instance not found\n"):
        assert reply.sessions(reply.summary(none)) == ()
    with pytest.raises(ValueError, match="not an object"):
        reply.summary("[1]")


@given(st.text())
def test_any_answer_is_parsed_or_refused(text: str) -> None:
    list(reply.table(text))
    reply.running(text)
    for read in (reply.hashes, reply.summary, reply.neighbors):
        try:
            read(text)
        except (ValueError, RecursionError):
            continue


def test_a_truncated_answer_is_refused() -> None:
    whole = f'{{"bgpraw": "x"}}\n\n{reply.MARK}\ndraining\n\n{reply.MARK}\nfpm address 127.0.0.1\n\n{reply.MARK}\n'
    found = reply.running(whole)
    assert found is not None
    assert (found.frr, found.is_draining, found.forwarding) == ("x", True, "fpm address 127.0.0.1\n")
    assert reply.running(whole[:-20]) is None


SHOWN = """Building configuration...

Current configuration:
!
frr version 10.0.1
hostname leaf01
fpm address 127.0.0.1
!
ip route 10.9.0.0/24 blackhole
!
interface Ethernet0
 ip ospf cost 3
exit
!
router bgp 1
 bgp graceful-shutdown
exit
!
end
"""


def test_the_running_configuration_has_no_netkit_drain_and_each_chip_line_once() -> None:
    found = model.running(SHOWN, "no fpm use-next-hop-groups\nfpm address 127.0.0.1\n", is_draining=True)
    assert found.startswith("no fpm use-next-hop-groups\nfrr version")
    assert found.count("fpm address") == 1
    assert "graceful" not in found
    assert "graceful" in model.running(SHOWN, "", is_draining=False)


def test_a_file_keeps_unowned_running_lines() -> None:
    intended = "frr defaults traditional\nhostname leaf01\nrouter bgp 2\n bgp router-id 1.1.1.1\nexit\n!\nend\n"
    assert model.whole(SHOWN, intended) == (
        "frr defaults traditional\nhostname leaf01\nrouter bgp 2\n bgp router-id 1.1.1.1\nexit\n!\n"
        "!\nip route 10.9.0.0/24 blackhole\n!\ninterface Ethernet0\n ip ospf cost 3\nexit\n!\nend\n"
    )
