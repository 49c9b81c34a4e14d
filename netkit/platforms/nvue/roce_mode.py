"""The classes of traffic that NVUE's RoCE mode sets up by itself."""

# Defaults of `qos roce mode lossless` (Cumulus Linux user guide, RDMA over Converged Ethernet). Only what differs from
# them is rendered. The mode keeps its traffic classes for any priorities: RoCE is class 3, CNP 6, everything else 0.
MODE_ROCE_CLASS, MODE_CNP_CLASS, MODE_REST_CLASS = 3, 6, 0
MODE_CLASSES = {3: MODE_ROCE_CLASS, 6: MODE_CNP_CLASS}
MODE_ECN = (150_000, 1_500_000, 100)
"""Bytes at which marking starts and is certain, and its probability in percent."""
MODE_WEIGHTS = (50, 50)
"""Of best effort and RoCE."""
