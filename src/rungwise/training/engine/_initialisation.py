"""Initialisation of a run's model: new, or from another model's weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.models import JointEmbedding, TrainableScorer, VSEConfig, family, load
from rungwise.models.joint import as_it_is, with_new_heads, with_weights_that_fit
from rungwise.training._run_folder import CHECKPOINT, MODEL, is_run
from rungwise.training.config import NewHeads, TrainConfig, WholeModel, config_of_settings
from rungwise.training.engine._checkpoint import read_state


def model_of(
    config: TrainConfig,
    captions: Sequence[str] | FeatureRows,
    features: FeatureRows | None,
    say: Callable[[str], None],
) -> tuple[TrainableScorer, str]:
    """The model that a run trains, on the processor, and the fingerprint of the model that it starts from.

    Args:
        config: Configuration of the run.
        captions: Captions of the training split.
        features: The rows that stand for pictures; None where the collection has pictures.
        say: Called with sentences for a person.

    Returns:
        The model; and the fingerprint, which is empty for a new model.

    Raises:
        UserError: If it cannot be loaded, or cannot be trained.
    """
    if not config.start:
        if not isinstance(config.tune, WholeModel):
            raise UserError(
                f"tune: {config.tune.kind} needs a model to begin from, and start names none; give --start MODEL"
            )
        return _new(config, captions, features), ""
    start = load(started_from(config.start), "cpu")
    if not isinstance(start, JointEmbedding):
        raise UserError(
            f"{config.start}: a model of kind {getattr(start, 'kind', '')!r} is not trained further; start from a joint"
            " embedding"
        )
    fingerprint = start.fingerprint  # of its weights as they are now, before any of them is trained
    torch.manual_seed(config.seed)
    tune = config.tune
    if isinstance(tune, WholeModel):
        if tune.configured and not isinstance(config.model, VSEConfig):
            raise UserError(f"tune: configured goes with models of kind vse, and model.kind is {config.model.kind!r}")
        like = config.model if tune.configured and isinstance(config.model, VSEConfig) else None
        begun = as_it_is(start, image=tune.image, text=tune.text, like=like)
    elif isinstance(tune, NewHeads):
        begun = with_new_heads(start, tune.image, tune.text)
    elif isinstance(config.model, VSEConfig):
        begun = with_weights_that_fit(config.model, start, captions, features)
    else:
        raise UserError(f"tune: weights goes with models of kind vse, and model.kind is {config.model.kind!r}")
    said = f"from {config.start}: {', '.join(begun.taken) or 'nothing'}"
    say(f"{said}; new: {', '.join(begun.new)}" if begun.new else said)
    return begun.model, fingerprint


def started_from(start: str) -> str:
    """The model that a setting ``start`` names: that of a finished run's folder, or the name itself.

    Raises:
        UserError: If it is a run that is not finished.
    """
    folder = Path(start)
    if not folder.is_dir() or (folder / "config.json").exists() or not is_run(folder):
        return start
    model = folder / MODEL
    if (folder / CHECKPOINT).exists():
        state = read_state(folder / CHECKPOINT)
        if not config_of_settings(state.settings, folder / CHECKPOINT).is_over(state.epoch, state.best_epoch):
            better = f", or begin from its best model so far, {model}" if state.best_epoch else ""
            raise UserError(f"{start}: the run is not finished (epoch {state.epoch}); resume it{better}")
    if not (model / "config.json").is_file():
        raise UserError(f"{start}: the run is not finished; resume it, then begin from it")
    return str(model)


def _new(config: TrainConfig, captions: Sequence[str] | FeatureRows, features: FeatureRows | None) -> TrainableScorer:
    kind: Any = family(config.model.kind)
    if not issubclass(kind, TrainableScorer):
        raise UserError(f"model.kind: models of kind {config.model.kind!r} are not trained; choose another family")
    torch.manual_seed(config.seed)
    model: TrainableScorer = kind.create(config.model, captions, features)
    return model
