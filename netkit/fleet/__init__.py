"""Signed jobs to workers at sites, over one broker."""
