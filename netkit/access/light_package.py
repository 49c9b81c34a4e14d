"""Packages that are there without being loaded: most of what they bring is never asked for."""

import sys
import threading
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

LOCK = threading.RLock()


class _Package(ModuleType):
    """A package as far as its place and its modules: whatever else is asked of it loads the whole of it."""

    _is_loading = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if find_spec(f"{self.__name__}.{name}") is not None:
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
    """Let the modules of a package be imported without the rest of it; None when it is loaded, or not installed."""
    with LOCK:
        spec = None if name in sys.modules else find_spec(name)
        if spec is None:
            return None  # whoever imports it hears whether it is there
        package = module_from_spec(spec)
        package.__class__ = _Package
        sys.modules[name] = package
        return package
