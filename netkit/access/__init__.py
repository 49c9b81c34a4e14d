"""How devices are reached: addresses, accounts, keys, and trusted host keys."""
