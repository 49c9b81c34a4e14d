"""Stage: a change of the intent → which part of the fabric to boot, who calls whom, and what it all comes to. Pure."""
