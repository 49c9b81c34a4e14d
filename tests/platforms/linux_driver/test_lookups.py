"""The addresses whose route a host looks up: one in each prefix, and in no longer one."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.linux.rails import Network, _inside

POOL = ipaddress.IPv4Network("10.128.0.0/10")
RAILS = [ipaddress.IPv4Network(text) for text in ("10.128.0.0/11", "10.160.0.0/11")]
WIRES = [ipaddress.IPv4Network(text) for text in ("10.128.0.0/31", "10.160.0.0/31")]
NETS = st.tuples(st.integers(0, 2**10 - 1), st.integers(22, 32)).map(
    lambda pair: ipaddress.IPv4Network((0x0A000000 + pair[0], pair[1]), strict=False)
)


def test_a_prefix_covered_by_longer_ones_has_no_address_of_its_own() -> None:
    assert _inside(POOL, [POOL, *RAILS, *WIRES]) == ""
    assert _inside(POOL, [POOL, RAILS[0], *WIRES]) == "10.191.255.254"
    assert _inside(POOL, [POOL, RAILS[1], *WIRES]) == "10.159.255.255"
    assert _inside(RAILS[0], [POOL, *RAILS, *WIRES]) == "10.159.255.254"


@given(st.lists(NETS, min_size=1, max_size=8))
def test_the_address_is_in_the_prefix_and_in_no_longer_one(nets: list[Network]) -> None:
    for prefix in nets:
        found = _inside(prefix, nets)
        narrower = [net for net in nets if net.prefixlen > prefix.prefixlen]
        free = [
            address
            for address in range(int(prefix.network_address), int(prefix.broadcast_address) + 1)
            if not any(ipaddress.ip_address(address) in net for net in narrower)
        ]
        if found:
            assert int(ipaddress.ip_address(found)) in free
        else:
            assert set(free) <= {int(prefix.broadcast_address)}
