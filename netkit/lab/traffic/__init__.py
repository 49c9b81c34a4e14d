"""Real congestion signalling for the lab: RoCEv2-shaped packets, CE marks by nftables, CNPs, and rates that fall.

Real: every packet, the route it takes, its DSCP and ECN bits, marks, drops, CNPs and their loss. Scaled: a lab packet a
second stands for 2 Gb/s, and times grow with it. Not there: retransmission, acknowledgements of what arrived in order,
RDMA itself, and anything an RNIC does below the packet.
"""
