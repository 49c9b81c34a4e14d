"""Stage: a change of the intent → which part of the fabric to boot, which traffic to send, and the verdict. Pure."""
