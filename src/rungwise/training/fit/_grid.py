"""Fits from a configuration: the grid on the validation split, the fit that is kept, and the folder of the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.disk.locks import alone
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.models import Pairs, captions_of, texts_at
from rungwise.models.io import family
from rungwise.models.subspace import Subspace, Views
from rungwise.training._run_folder import (
    HISTORY,
    MODEL,
    WRITER,
    is_run,
    sweep_run,
    write_config,
    write_history,
    write_skipped,
)
from rungwise.training.config import Choice, FitConfig, accepted
from rungwise.training.engine import Validation, provenance, refuse_strangers
from rungwise.training.tracking import Watcher


@dataclass(frozen=True)
class FitResult:
    """The result of a fit.

    Attributes:
        model_folder: Folder of the model, for :func:`rungwise.models.load`.
        chosen: Settings of the grid that were chosen.
        choice: The measure that chose them.
        value: Value of this measure on the validation split.
        history: Numbers of each combination that was tried.
        issues: Items that the fit left out.
    """

    model_folder: Path
    chosen: dict[str, Any]
    choice: Choice
    value: float
    history: list[dict[str, Any]]
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr

    @property
    def measure(self) -> str:
        """The choosing measure, as the history names it."""
        return self.choice.name


def fit_run(
    config: FitConfig,
    data: ImageCaptions,
    out: Path,
    *,
    cache: Path | None = None,
    device: str | None = None,
    watcher: Watcher | None = None,
) -> FitResult:
    """Fit a model and write it.

    Writes into ``out``: ``config.yaml``, ``history.jsonl`` with a line for each combination of the grid, ``model/``
    and, where anything had to be left out, ``skipped.txt``. Nothing is written before the model is fitted.

    Args:
        config: Configuration of the fit.
        data: The collection, whose splits ``config.data`` names.
        out: Folder of the run.
        cache: Folder of the feature caches; the default one if None.
        device: Device of the frozen encoders; None takes the processor.
        watcher: Receives progress.

    Raises:
        UserError: If the data are unsuitable, no combination can be fitted, or ``out`` holds a run already or unrelated
            files under the names of a run's files.
    """
    told = watcher or Watcher()
    for line in accepted(config):
        told.say(line)
    _refuse_run(out)
    train, held = (_images(data, splits) for splits in (config.data.train, (config.data.validation,)))
    if not data.has_pictures:
        raise UserError(f"{data.name}: the collection has neither picture files nor features to fit to")
    model = _model(config, data, train).to(device or "cpu")
    for line in model.backbone.remarks():
        told.say(line)
    images = len(train) + len(held)
    pairs, validating = (
        model.read(data, some, cache=cache, progress=lambda done: told.work("features", done, images))
        for some in (train, held)
    )
    choice = config.snapshot or (Choice("MAP", "labels") if any(data.labels) else Choice())
    tried = _tried(config, model, _Seen(pairs), Validation(choice, validating, nullcontext), told)
    best = tried[0]
    for one in tried[1:]:
        if choice.chosen.better(one.value, best.value):
            best = one
    fitted = best.model
    if config.refit:
        together = model.read(data, np.sort(np.concatenate([train, held])), cache=cache)
        fitted = _Seen(together).fit(model.told(**best.settings))
    issues = (*pairs.rows.issues, *validating.rows.issues, *fitted.issues)
    history = [one.line for one in tried]
    fitted_to = [*config.data.train, *([config.data.validation] if config.refit else [])]
    facts = provenance(data, config.seed, choice, best.line, fitted_to=fitted_to)
    model_folder = _keep(config, out, fitted, facts, history, issues)
    return FitResult(model_folder, best.settings, choice, best.value, history, issues)


@dataclass(frozen=True)
class _Tried:
    """One fitted combination of the grid, with the value of the choosing measure and its line of the history."""

    model: Subspace
    settings: dict[str, Any]
    value: float
    line: dict[str, Any]


def _tried(config: FitConfig, model: Subspace, seen: _Seen, validation: Validation, told: Watcher) -> list[_Tried]:
    """All combinations that can be fitted, in the order of the grid."""
    found: list[_Tried] = []
    failed: list[str] = []
    points = list(config.points())
    for number, settings in enumerate(points, 1):
        begun = time.perf_counter()
        try:
            one = seen.fit(model.told(**settings))
        except UserError as error:
            failed.append(str(error))
            continue
        numbers = validation.measure(one)
        line = {"point": number, "settings": settings, "components": one.dimension, **numbers}
        line["seconds"] = time.perf_counter() - begun
        found.append(_Tried(one, settings, numbers[validation.config.name], line))
        told.work("fits", 1, len(points))
    if not found:
        raise UserError(failed[0])
    if failed:
        told.say(f"{len(failed)} of {len(points)} combinations could not be fitted, such as: {failed[0]}")
    return found


class _Seen:
    """Views of some pairs, with moments that fits of the same roots and kernel share."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._known: dict[str, Views] = {}

    def fit(self, model: Subspace) -> Subspace:
        key = str((model.config.roots, model.config.kernel))
        if key not in self._known:
            self._known[key] = model.views_of(self._pairs)
        return model.fit_views(self._known[key])


def _model(config: FitConfig, data: ImageCaptions, train: NDArray[np.int64]) -> Subspace:
    found: Any = family(config.model.kind)
    made = found.create(config.model, texts_at(data, captions_of(data, train)), data.features)
    assert isinstance(made, Subspace)
    return made


def _images(data: ImageCaptions, splits: Sequence[str]) -> NDArray[np.int64]:
    """Positions of the images of some splits."""
    data.split(*splits)
    return np.flatnonzero(np.isin(np.array(data.splits), splits))


def _refuse_run(out: Path) -> None:
    if is_run(out) or (out / MODEL).exists():
        raise UserError(f"{out}: holds a run already; give another folder with --out, or remove this one")
    refuse_strangers(out, FitConfig)


def _keep(
    config: FitConfig,
    out: Path,
    fitted: Subspace,
    facts: dict[str, Any],
    history: list[dict[str, Any]],
    issues: Sequence[Issue],
) -> Path:
    """Write the folder of the run."""
    out.mkdir(parents=True, exist_ok=True)
    with alone(out, WRITER):
        _refuse_run(out)
        sweep_run(out)
        write_history(out, history)
        write_config(out, config, [HISTORY])
        write_skipped(out, issues)
        fitted.save_pretrained(out / MODEL, facts)
    return out / MODEL
