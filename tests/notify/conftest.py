from tests.notify.site import site

__all__ = ["site"]
