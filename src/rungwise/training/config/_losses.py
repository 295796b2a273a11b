"""Losses in a training configuration: typed data, derived from the constructors of the losses.

The configuration of a loss has the parameters of its constructor as fields, with their types, defaults and docstrings,
and a ``kind``: the name of its class in snake case. A loss of your own, derived from :class:`rungwise.losses.Loss`, can
be named once its module is imported.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import torch
from pydantic import BeforeValidator

from rungwise.core import STRICT, UserError
from rungwise.losses import Loss, Reduction, kind_of
from rungwise.parts import Registry, concrete_below


@dataclass(frozen=True)
class LossConfig:
    """Configuration of a loss; :func:`config_of` derives one from each loss.

    Attributes:
        kind: Name of the loss.
    """

    __pydantic_config__ = STRICT
    loss_class: ClassVar[type[Loss]]

    kind: str

    @property
    def needs_relevance(self) -> bool:
        """Whether the loss with these options reads relevance degrees; shares need some to become thresholds."""
        return self.needs_thresholds or self.build().reads.relevance

    @property
    def needs_thresholds(self) -> bool:
        """Whether shares have still to be turned into thresholds, see :func:`with_thresholds`."""
        return bool(self._options().get("shares")) or any(member.needs_thresholds for member in self.members())

    def build(self) -> Loss:
        """Make the loss.

        Raises:
            UserError: If the options do not fit, or shares have not been turned into thresholds.
        """
        if self.needs_thresholds:
            raise UserError(
                "loss.shares become thresholds when training begins: pass this configuration to"
                " rungwise.training.engine.train, with data.relevance or relevance=; for a loss of your own loop,"
                " measure them with rungwise.relevance.description.describe.thresholds(source, shares) and give"
                " thresholds"
            )
        options = {name: _built(value) for name, value in self._options().items() if name != "shares"}
        try:
            return self.loss_class(**options)
        except ValueError as error:
            raise UserError(f"loss.{self.kind}: {error}") from None

    def check(self) -> None:
        """Refuse options that do not fit; any falling numbers stand for thresholds that shares are yet to become."""
        with_thresholds(self, lambda shares: tuple(-float(rung) for rung in range(len(shares)))).build()

    def _options(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "kind"}

    def members(self) -> tuple[LossConfig, ...]:
        """Configurations of the losses that this one combines; empty where it combines none."""
        return tuple(one for value in self._options().values() for one in _listed(value) if isinstance(one, LossConfig))


def with_thresholds(config: LossConfig, turn: Callable[[tuple[float, ...]], tuple[float, ...]]) -> LossConfig:
    """A configuration with thresholds in place of shares, in its members too; unchanged where it has none.

    Args:
        config: Configuration of any loss.
        turn: Function from the shares of candidates on each rung but the last to falling thresholds, such as
            :func:`rungwise.relevance.description.describe.thresholds` for a source.

    >>> from rungwise.losses import Ladder
    >>> with_thresholds(config_of(Ladder)(shares=(0.01,)), lambda shares: (0.8,)).build().thresholds
    (0.8,)
    """
    if not config.needs_thresholds:
        return config
    changed: dict[str, Any] = {}
    for name, value in config._options().items():
        if name == "shares" and value:
            changed |= {"thresholds": turn(value), "shares": ()}
        elif isinstance(value, LossConfig):
            changed[name] = with_thresholds(value, turn)
        elif any(isinstance(one, LossConfig) for one in _listed(value)):
            changed[name] = tuple(with_thresholds(one, turn) for one in value)
    return replace(config, **changed)


LOSSES: Registry[Loss] = Registry("losses", "loss", lambda: concrete_below(Loss), kind_of)
"""Losses by name: those of the package, all others that are imported, and those that installed packages offer."""


AnyLoss = Annotated[LossConfig, BeforeValidator(lambda value: LOSSES.configured(value, LossConfig, config_of))]
"""Type of a field that holds a loss: its name (``sum_of_hinges``) or a mapping (``{kind: ladder, shares: [0.01]}``)."""


@cache
def config_of(loss: type[Loss]) -> type[LossConfig]:
    """The configuration class of a loss: a frozen dataclass of the options that plain data can express.

    Random generators are left out. Sequences become tuples, losses their configurations, and a loss with ``thresholds``
    can be given ``shares`` instead.

    >>> from rungwise.losses import MaxOfHinges
    >>> config_of(MaxOfHinges)(margin=0.3, reduction="mean").build()
    MaxOfHinges(margin=0.3, negative_set=None, generator=None, reduction='mean', ...)
    """
    hints, described = get_type_hints(loss.__init__), _descriptions(loss)
    options: list[tuple[str, Any, Any]] = [("kind", Literal[kind_of(loss)], field(default=kind_of(loss)))]
    for name, parameter in inspect.signature(loss).parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or torch.Generator in _parts(hint):
            continue
        default = tuple(parameter.default) if isinstance(parameter.default, list) else parameter.default
        options.append((name, _plain_type(hint), field() if default is parameter.empty else field(default=default)))
        if name == "thresholds":
            options.append(("shares", tuple[float, ...], field(default=())))
    described |= {"kind": "Names the loss.", "reduction": "Sum over a batch, or that sum divided by its pairs."}
    described["shares"] = (
        "Instead of thresholds: the share of candidates on each rung but the last; the relevance source turns them"
        " into thresholds."
    )
    summary = _plain_text((inspect.getdoc(loss) or kind_of(loss)).split("\n\n")[0])
    attributes = "".join(f"    {name}: {described[name]}\n" for name, _, _ in options if name in described)
    return make_dataclass(
        f"{loss.__name__}Config",
        options,
        bases=(LossConfig,),
        namespace={
            "__doc__": f"{summary}\n\nAttributes:\n{attributes}",
            "__module__": loss.__module__,
            "__pydantic_config__": STRICT,
            "loss_class": loss,
        },
        frozen=True,
        kw_only=True,
    )


def _plain_type(hint: Any) -> Any:
    """Type of the field for a parameter of this type."""
    if hint == Reduction:
        return Literal["sum", "mean"]  # training goes backward from one number
    if get_origin(hint) in (Sequence, list):
        return tuple[_plain_type(get_args(hint)[0]), ...]  # type: ignore[misc]
    if get_origin(hint) is tuple:
        return tuple[tuple(one if one is ... else _plain_type(one) for one in get_args(hint))]  # type: ignore[misc]
    if get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(_plain_type(one) for one in get_args(hint))]  # noqa: UP007
    return AnyLoss if inspect.isclass(hint) and issubclass(hint, Loss) else hint


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _built(value: Any) -> Any:
    """Replace configurations of losses by the losses."""
    if isinstance(value, LossConfig):
        return value.build()
    return tuple(_built(one) for one in value) if isinstance(value, tuple) else value


def _listed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _descriptions(loss: type[Loss]) -> dict[str, str]:
    """Descriptions of parameters in docstrings; that of the base class which introduces an option is taken."""
    described: dict[str, str] = {}
    for owner in reversed([one for one in loss.__mro__ if issubclass(one, Loss)]):
        section = re.search(r"^Args:\n((?:    .*\n|\n)+)", inspect.cleandoc(owner.__doc__ or "") + "\n", re.MULTILINE)
        entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.MULTILINE)
        described = {name: _plain_text(text) for name, text in entries} | described
    return described


def _plain_text(text: str) -> str:
    """Text without line breaks and documentation markup."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", text)
    return " ".join(text.replace("``", "").split())
