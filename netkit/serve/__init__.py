"""One process that checks a fabric regularly and serves the results, read-only, to anyone with its token."""
