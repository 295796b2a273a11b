"""A model that is fitted: its options, the fit, and what is printed of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError
from rungwise.jobs._terminal import console, say, say_issues
from rungwise.jobs.training._options import Running

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions
    from rungwise.training.config import FitConfig
    from rungwise.training.fit import FitResult


def as_typed(config: FitConfig, words: Sequence[str]) -> FitConfig:
    """The configuration, without grid values for settings of the model that were typed."""
    typed = {word.partition("=")[0].replace("_", "-") for word in words}
    fixed = [name for name in config.grid if f"--model.{name.replace('_', '-')}" in typed]
    fixed += [name for name in config.grid if f"--model.no-{name.replace('_', '-')}" in typed]
    if fixed and "--grid" not in typed:
        config = replace(config, grid={name: tried for name, tried in config.grid.items() if name not in fixed})
    return config


def fit(config: FitConfig, data: ImageCaptions, asked: Running, device: str) -> FitResult:
    """Fit a model, and print the chosen settings.

    Raises:
        UserError: If an option means nothing to a fit.
    """
    for option, given in (("--resume", asked.resume), ("--seeds", bool(asked.seeds))):
        if given:
            raise UserError(f"{option} changes nothing: {config.model.kind} is fitted at once; leave it out")
    from rungwise.training.config import shown
    from rungwise.training.fit import fit_run
    from rungwise.training.tracking import TerminalWatcher

    points = len(list(config.points()))
    if points > 1:
        say(f"{config.model.kind}: {points} combinations of {', '.join(config.grid)}")
    found = fit_run(config, data, asked.out, cache=asked.cache, device=device, watcher=TerminalWatcher(console))
    say_issues(found.issues)
    settings = ", ".join(f"{name} {_text(value)}" for name, value in found.chosen.items())
    tried = f"chosen of {len(found.history)}: {settings}; " if points > 1 else ""
    say(f"{tried}val {found.measure} {shown(found.measure, found.value)}")
    return found


def _text(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
