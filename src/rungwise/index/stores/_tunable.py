"""Stores whose approximate index can look more or less thoroughly."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import Store


@runtime_checkable
class Tunable(Protocol):
    """A store whose approximate index can be tuned."""

    @property
    def approximation(self) -> Approximation | None:
        """Setting of the approximate index; None while every row is compared."""
        ...

    def alternatives(self) -> tuple[Approximation, ...]:
        """Settings that are worth trying, the present one first."""
        ...

    def trying(self, settings: Approximation) -> Store:
        """The same store with another setting for its searches; nothing is written."""
        ...

    def keep(self, settings: Approximation) -> None:
        """Search with this setting from now on, also when others open the store."""
        ...
