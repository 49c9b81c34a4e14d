"""One process that checks a fabric regularly and shows what was found, read-only, to whoever has its token."""
