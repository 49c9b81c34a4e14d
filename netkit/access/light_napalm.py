"""NAPALM without the drivers of its own that nobody asked for: loading them all takes longer than opening a device."""

import sys
import threading
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

NAME = "napalm"
LOCK = threading.RLock()


class _Package(ModuleType):
    """The package as far as its place: whatever else is asked of it loads the whole of it, as an import would have."""

    _is_loading = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with LOCK:
            if self.__class__ is _Package:
                self._load(name)
        return getattr(self, name)

    def _load(self, name: str) -> None:
        if self._is_loading or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        self._is_loading = True
        self.__spec__.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]  # it is one from here on


def prepare() -> None:
    """Let `napalm.base` be imported without the rest of the package."""
    with LOCK:
        if NAME in sys.modules:
            return
        spec = find_spec(NAME)
        if spec is None:
            return  # whoever imports it hears so
        package = module_from_spec(spec)
        package.__class__ = _Package
        sys.modules[NAME] = package
