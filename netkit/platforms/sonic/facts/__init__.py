"""Facts of a switch that runs SONiC, from its databases, its kernel and FRR."""
