"""How devices are reached: addresses, accounts, keys, and the host keys that are trusted."""
