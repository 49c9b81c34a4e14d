"""What `nv show` and the REST resources show: configuration, and what hardware, kernel and FRR say."""
