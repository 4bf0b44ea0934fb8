"""Holds each operation of the store as one transaction, written once for every database."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast


class Later:
    """Stands for a module of ``operations/``, or of another package, that is loaded when one of
    its functions is called."""

    def __init__(self, name: str, package: str = __name__) -> None:
        self._name = f"{package}.{name}"

    def __getattr__(self, function: str) -> LaterFunction:
        found = self.__dict__[function] = LaterFunction(self._name, function)
        return found


class LaterFunction:
    """Stands for one of its functions."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name
        self._function: Callable[..., Any] | None = None

    def load(self) -> Callable[..., Any]:
        """Returns the function, whose module is imported by the first call.

        This happens in the caller's thread, not in one that holds a transaction.
        """
        if self._function is None:
            found = getattr(import_module(self._module), self._name)
            self._function = cast("Callable[..., Any]", found)
        return self._function
