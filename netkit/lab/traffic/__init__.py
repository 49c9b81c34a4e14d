"""Real congestion signalling for the lab: packets in RoCEv2's format, CE marks by nftables, CNPs, and rate control.

Real: every packet, its route, its DSCP and ECN bits, marks, drops, CNPs and their loss. Scaled: a lab packet per second
represents 2 Gb/s, and times grow accordingly. Absent: retransmission, acknowledgements of packets in order, RDMA
itself, and anything an RNIC does below the packet.
"""
