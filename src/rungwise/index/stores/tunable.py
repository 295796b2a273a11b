"""Stores whose approximate index can look harder or less hard."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rungwise.index.stores.approximation import Approximation
from rungwise.index.stores.base import Store


@runtime_checkable
class Tunable(Protocol):
    """What is asked of a store that can be tuned."""

    @property
    def approximation(self) -> Approximation | None:
        """How hard the approximate index looks; None while every row is compared."""
        ...

    def alternatives(self) -> tuple[Approximation, ...]:
        """Settings that are worth trying, the present one first."""
        ...

    def trying(self, settings: Approximation) -> Store:
        """The same store, whose searches look so hard; nothing is written."""
        ...

    def keep(self, settings: Approximation) -> None:
        """Look so hard from now on, also when others open the store.

        Raises:
            UserError: If the place cannot be written.
        """
        ...
