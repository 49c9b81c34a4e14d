"""The verbs about what is intended; no device is asked."""
