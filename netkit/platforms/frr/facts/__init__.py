"""What a Linux switch with FRR tells of itself: FRR's and iproute2's JSON, lldpd's, and files of the kernel."""
