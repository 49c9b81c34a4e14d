"""The getters netkit calls, by the names of NAPALM's contract."""

FACTS = "get_facts"
INTERFACES = "get_interfaces"
COUNTERS = "get_interfaces_counters"
NEIGHBORS_IN_DETAIL = "get_lldp_neighbors_detail"
NEIGHBORS = "get_lldp_neighbors"
SESSIONS = "get_bgp_neighbors"
OPTICS = "get_optics"
GETTERS = frozenset({FACTS, INTERFACES, COUNTERS, NEIGHBORS_IN_DETAIL, NEIGHBORS, SESSIONS, OPTICS})
