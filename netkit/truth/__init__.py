"""Sources of truth: what Nautobot or NetBox hold of a fabric, compared with its intent."""
