"""Parts of one kind by name: ours, those of imported modules, and those that installed packages offer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rungwise.core import UserError
from rungwise.core.output import printable, short_repr
from rungwise.parts._entry_points import Group, load_offered, offered
from rungwise.parts._origins import remedy

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails, InitErrorDetails

T = TypeVar("T")
_LONGEST = 100
_OURS = "rungwise"
_UNEXPECTED = "unexpected_keyword_argument"


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Parts of one kind by name.

    Attributes:
        group: Group of entry points that offer such parts.
        what: What one is called in messages, such as ``"loss"``.
        classes: The classes that are imported, ours first.
        name_of: Name of a class; empty for one that cannot be named.
    """

    group: Group
    what: str
    classes: Callable[[], Iterable[type[T]]]
    name_of: Callable[[type[T]], str]

    __repr__ = short_repr

    def known(self) -> dict[str, type[T]]:
        """Classes that are imported, by name; of several with one name the first."""
        found: dict[str, type[T]] = {}
        for one in self.classes():
            if name := self.name_of(one):
                found.setdefault(name, one)
        return found

    def names(self) -> list[str]:
        """Names that are imported, and names that installed packages offer, of which nothing is loaded."""
        return list(dict.fromkeys([*self.known(), *sorted(offered(self.group))]))

    def has(self, name: str) -> bool:
        """Whether there is a part of this name; nothing is loaded."""
        return name in self.known() or name in offered(self.group)

    def named(self, name: str) -> type[T]:
        """The class of a part by its name.

        Raises:
            UserError: If there is none, several modules or packages have one, or its package cannot be loaded.
        """
        found = self._imported(name)
        package = None if found else load_offered(self.group, name)
        if package is not None:
            found = self._imported(name)
            if not found:
                raise UserError(
                    f"the package {package} offers {name!r} under rungwise.{self.group}, and what it gives is no"
                    f" {self.what} of that name; mend or uninstall it"
                )
        if not found:
            raise self.unknown(name)
        if len(found) > 1:
            raise UserError(
                f"{name!r} is the name of more than one {self.what}: {', '.join(sorted(found))}; rename one"
            )
        return found.popitem()[1]

    def configured(
        self, value: Any, base: type[Any], config_of: Callable[[type[T]], type[Any]], usual: str | None = None
    ) -> Any:
        """The configuration that plain values name by ``kind``, for a validator of a field.

        Args:
            value: A configuration, which stays as it is; a name; or a mapping of options with a ``kind``.
            base: Base of the configurations.
            config_of: Configuration of a part.
            usual: Kind of a mapping that names none; None refuses one.

        Raises:
            ValidationError: If an option is none, or does not fit; its place begins with the kind.
        """
        if isinstance(value, base):
            return value
        from pydantic import ValidationError
        from pydantic_core import PydanticCustomError

        from rungwise.core import adapter

        values = {"kind": value} if isinstance(value, str) else value
        kind = values.get("kind", usual) if isinstance(values, Mapping) else None
        try:
            if kind is None:
                raise UserError(f"name the {self.what} by its kind: {', '.join(self.names())}")
            found = config_of(self.named(str(kind)))
        except UserError as error:
            raise PydanticCustomError("kind", "{message}", {"message": printable(str(error))}) from None
        try:
            return adapter(found).validate_python({**values, "kind": kind})
        except ValidationError as error:
            placed = [_placed(one, str(kind)) for one in error.errors()]
            raise ValidationError.from_exception_data(error.title, placed) from None

    def unknown(self, name: str, known: Iterable[str] = (), near: str = "") -> UserError:
        """The refusal of a name: what its class lacks, what was recorded of it, or the names that there are.

        Args:
            name: The name.
            known: Names that there are, as a person writes them; empty takes those of the classes.
            near: The one that was probably meant; empty where none is near.
        """
        shown = printable(name)[:_LONGEST]
        if unfinished := self._unfinished(name):
            lacks = ", ".join(sorted(unfinished.__abstractmethods__))
            return UserError(
                f"the class {unfinished.__qualname__} of the module {unfinished.__module__} is no {self.what} yet:"
                f" it lacks {lacks}; write what is missing"
            )
        if lacking := remedy():
            return UserError(f"there is no {self.what} {shown!r} here; {lacking}")
        meant = f" did you mean {near}?" if near else ""
        return UserError(f"there is no {self.what} {shown!r};{meant} there are {', '.join(known or self.names())}")

    def _unfinished(self, name: str) -> type[Any] | None:
        """A person's class that has a name and cannot be made yet, because methods of its base are missing."""
        bases = [base for one in self.classes() for base in one.__mro__ if _is_ours(base) and inspect.isabstract(base)]
        below = (one for base in dict.fromkeys(bases) for one in _all_below(base))
        return next(
            (one for one in below if inspect.isabstract(one) and not _is_ours(one) and self._calls(one, name)), None
        )

    def _calls(self, one: type[Any], name: str) -> bool:
        """Whether a class would have a name; one that is not finished may have none."""
        try:
            return self.name_of(one) == name
        except AttributeError:
            return False

    def _imported(self, name: str) -> dict[str, type[T]]:
        """Classes of a name by their places; one that is defined anew in its place, as in a notebook, replaces it."""
        return {f"{one.__module__}.{one.__qualname__}": one for one in self.classes() if self.name_of(one) == name}


def _placed(error: ErrorDetails, kind: str) -> InitErrorDetails:
    """An error in a part's options, located under the part's name."""
    from pydantic_core import InitErrorDetails, PydanticCustomError

    from rungwise.core import in_words

    what: Any = PydanticCustomError("option", "{message}", {"message": in_words(error)})
    if error["type"] == _UNEXPECTED:
        what = _UNEXPECTED  # whoever reads the settings looks for a similar one
    return InitErrorDetails(type=what, loc=(kind, *error["loc"]), input=error["input"])


def _is_ours(one: type[Any]) -> bool:
    return one.__module__.partition(".")[0] == _OURS


def _all_below(base: type[Any]) -> Iterator[type[Any]]:
    for derived in base.__subclasses__():
        yield derived
        yield from _all_below(derived)


def concrete_below(base: Any) -> Iterator[Any]:
    """All classes that derive from a class and can be made, each before those that derive from it."""
    for derived in base.__subclasses__():
        if not inspect.isabstract(derived):
            yield derived
        yield from concrete_below(derived)
