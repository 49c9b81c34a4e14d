"""What a SONiC switch is and does, read from its databases, its kernel and FRR."""
