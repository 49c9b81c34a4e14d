"""A fabric as its user keeps it: the Python API, on which the command line stands too."""
