"""Packages that are there without being loaded: most of what they bring is never asked for."""

import sys
import threading
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

LOCK = threading.RLock()


class _Package(ModuleType):
    """A package as far as its place and its modules, or a module: whatever else is asked of it loads the whole."""

    _is_loading = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if "__path__" in self.__dict__ and find_spec(f"{self.__name__}.{name}") is not None:
            return import_module(f"{self.__name__}.{name}")
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


def prepare(name: str) -> ModuleType | None:
    """Let a module, or those of a package, be imported without being loaded; None when it is, or is not installed."""
    with LOCK:
        spec = None if name in sys.modules else find_spec(name)
        if spec is None:
            return None  # whoever imports it hears whether it is there
        package = module_from_spec(spec)
        package.__class__ = _Package
        sys.modules[name] = package
        above, _, own = name.rpartition(".")
        if above:
            setattr(sys.modules[above], own, package)
        return package
