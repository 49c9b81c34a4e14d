"""The commands EOS is asked: which revision of an answer is understood, and which have an answer in words only.

eAPI answers with revision 1 unless it is told otherwise, and what a revision looks like does not change with releases.
"""

VERSION = "show version"
HOSTNAME = "show hostname"
FILE_SYSTEMS = "show file systems"
INTERFACES = "show interfaces"
ERROR_CORRECTION = "show interfaces error-correction"
FLOW_CONTROL = "show interfaces flow-control"
PHY = "show interfaces phy detail"
THRESHOLDS = "show interfaces transceiver dom thresholds"
HARDWARE = "show interfaces transceiver hardware"
INVENTORY = "show inventory"
LOG = "show logging last 1 days | grep LINEPROTO"
CLOCK = "show clock"
LLDP = "show lldp neighbors detail"
BGP = "show bgp neighbors vrf all"
BGP_SUMMARY = "show ip bgp summary vrf all"
BFD = "show bfd peers"
MAINTENANCE = "show maintenance"
ROUTES = "show ip route"
RUNNING = "show running-config sanitized"
PFC = "show priority-flow-control"
PFC_COUNTERS = "show priority-flow-control counters detail"
WATCHDOG = "show priority-flow-control counters watchdog"
ECN_COUNTERS = "show qos interfaces ecn counters queue"
QUEUES = "show interfaces counters queue detail"
QUEUE_DROPS = "show interfaces counters queue"
LOAD_BALANCE = "show ip hardware fib load-balance distribution"

REVISIONS = {PHY: 2, INVENTORY: 2, BGP: 2}
IN_WORDS = frozenset({RUNNING, PFC, QUEUE_DROPS, LOAD_BALANCE, HARDWARE, LOG, CLOCK})
"""Their JSON is unknown, or there is none."""
