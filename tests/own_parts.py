"""Parts of people's own that tests make: known while a test runs, and not after it."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

REGISTRIES = {
    "IMAGE_SIDES": "rungwise.models.joint._config",
    "LOSSES": "rungwise.training.config._losses",
    "MEASURES": "rungwise.metrics._measures",
    "READERS": "rungwise.data._own_readers",
    "SOURCES": "rungwise.relevance.config._sources",
    "STORES": "rungwise.index.stores._base",
    "TEXT_SIDES": "rungwise.models.joint._config",
}
"""Every registry of parts by its name, and the module that makes it."""


@contextmanager
def forgotten() -> Iterator[None]:
    """What is defined or imported within is in no registry after it: a class cannot be taken away from its base."""
    there = {name: set(registry.classes()) for name, registry in _imported().items()}
    yield
    for name, registry in _imported().items():
        ended = {one for one in registry.classes() if one not in there.get(name, ()) and not _is_ours(one)}
        if ended:
            vars(registry)["classes"] = partial(_without, registry.classes, ended)


def _imported() -> dict[str, Any]:
    return {name: vars(sys.modules[module])[name] for name, module in REGISTRIES.items() if module in sys.modules}


def _is_ours(one: type) -> bool:
    return one.__module__.partition(".")[0] == "rungwise"


def _without(classes: Callable[[], Iterable[type]], ended: set[type]) -> list[type]:
    return [one for one in classes() if one not in ended]
