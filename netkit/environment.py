"""The environment of programs that netkit starts: its own, without the secrets that netkit was given in it."""

import os
from collections.abc import Mapping

SECRET_PREFIX = "NETKIT_SECRET_"  # noqa: S105 (how names of variables begin)
PASSWORD = "NETKIT_PASSWORD"  # noqa: S105 (the name of a variable)
WITH_PASSWORDS = frozenset({PASSWORD, "NETKIT_STORE"})
"""The URL of a store may hold the password of its database."""


def without_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Copy an environment, by default that of this process, without netkit's secrets."""
    known = os.environ if environment is None else environment
    return {
        name: value
        for name, value in known.items()
        if name not in WITH_PASSWORDS and not name.startswith(SECRET_PREFIX)
    }
