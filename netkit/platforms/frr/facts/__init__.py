"""Facts of a Linux switch with FRR, from the JSON of FRR, iproute2 and lldpd, and from files of the kernel."""
