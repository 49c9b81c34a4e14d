"""Which certificates are trusted."""

import ssl

from netkit.errors import NotifyError, Problem


def trusted(ca_file: str | None) -> ssl.SSLContext:
    """Return what checks the certificate of a receiver."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        why = error.strerror or "it holds no certificate"
        raise NotifyError(Problem(f"{ca_file} cannot be read: {why}", "see ca_file in notify.yaml")) from None
