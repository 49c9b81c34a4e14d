"""What `qos roce` sets up by itself (Cumulus Linux user guide, RDMA over Converged Ethernet).

The mode keeps its traffic classes for any priorities: RoCE is class 3, CNP 6, everything else 0.
"""

ROCE_CLASS, CNP_CLASS, REST_CLASS = 3, 6, 0
ROCE_PRIORITY = 3
CLASSES = {ROCE_PRIORITY: ROCE_CLASS, 6: CNP_CLASS}
"""Priority → class; all others have the class of the rest."""
WEIGHTS = {REST_CLASS: 50, ROCE_CLASS: 50}
ECN_MIN_BYTES, ECN_MAX_BYTES, ECN_PERCENT = 150_000, 1_500_000, 100
POOL_PERCENT = 50
CABLE_M = 100
