"""Verification of a run's folder: configuration, checkpoint and history, and whether they belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rungwise.core import Check, UserError, checked, load_yaml, parse_json, read_text, to_plain
from rungwise.core.disk.sealed_lines import read_sealed
from rungwise.evaluation import verify as verify_result
from rungwise.runs._results import RESULTS
from rungwise.training import CHECKPOINT, CONFIG, HISTORY, STAGES, STEPS, check_config, histories, is_run
from rungwise.training.config import FitConfig, TrainConfig, config_of_settings, is_fit, load_run_config
from rungwise.training.engine import differing, load_checkpoint


def verify_run(folder: Path) -> Iterator[Check]:
    """Check all that a run wrote, except its model."""
    yield checked(CONFIG, lambda: _config(folder))
    for path in sorted((folder / RESULTS).glob("*.json")):
        yield from (replace(check, what=f"{RESULTS}/{check.what}") for check in verify_result(path))
    if (folder / STEPS).exists():
        yield checked(STEPS, lambda: _steps(folder / STEPS))
    if is_fit(folder):
        yield checked(HISTORY, lambda: _history_of_fit(folder))
        return
    if (folder / STAGES).is_dir():
        yield from _stages(folder)
        return
    checkpoint = checked(CHECKPOINT, lambda: _checkpoint(folder / CHECKPOINT))
    yield checkpoint
    if checkpoint.wrong:
        if (folder / HISTORY).exists():
            yield Check(HISTORY, unchecked=f"there is no sound {CHECKPOINT} to compare it with")
    elif load_checkpoint(folder / CHECKPOINT)[0].history:
        yield checked(HISTORY, lambda: _history(folder))


def _steps(path: Path) -> str:
    lines, damaged = read_sealed(path, dict)
    if damaged:
        number, reason = damaged[0]
        raise UserError(f"{path}, line {number}: {reason}; {len(damaged)} lines are damaged, remove them")
    return f"{len(lines)} lines, each with its checksum"


def _stages(folder: Path) -> Iterator[Check]:
    """Check each stage as a run of its own, and their common history."""
    for stage in sorted(one for one in (folder / STAGES).iterdir() if is_run(one)):
        for check in verify_run(stage):
            yield replace(check, what=f"{STAGES}/{stage.name}/{check.what}")
    if (folder / HISTORY).exists():
        yield checked(HISTORY, lambda: _history_of_stages(folder))


def _history_of_stages(folder: Path) -> str:
    path = folder / HISTORY
    lines = [parse_json(line, path, finite=False) for line in read_text(path, "text_bytes").splitlines()]
    config = load_run_config(folder / CONFIG)
    if not isinstance(config, TrainConfig) or lines != list(histories(folder, config)):
        raise UserError(f"{path}: {len(lines)} epochs, which are not those of its stages; resume the run to write it")
    return f"{len(lines)} epochs, those of the stages"


def _history_of_fit(folder: Path) -> str:
    path = folder / HISTORY
    lines = [parse_json(line, path, finite=False) for line in read_text(path, "text_bytes").splitlines()]
    if not lines:
        raise UserError(f"{path}: holds nothing of what was tried; fit again in another folder")
    return f"{len(lines)} combinations of settings that were tried"


def _config(folder: Path) -> str:
    config = load_run_config(folder / CONFIG)
    check_config(folder)
    if isinstance(config, FitConfig):
        return f"a fit of {config.model.kind}"
    if config.stages:
        stages = config.stage_configs()
        return f"{len(stages)} stages of {config.model.kind}, {sum(one.total_epochs for _, one in stages)} epochs"
    return f"{config.total_epochs} epochs of {config.model.kind}, loss {config.loss.kind}"


def _checkpoint(path: Path) -> str:
    state, tensors = load_checkpoint(path)
    for name, tensor in sorted(tensors.items()):
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(f"{path}: {name} holds NaN or infinity; start anew in another folder")
    begun = {name.split("/")[0] for name in tensors}
    run = config_of_settings(state.settings, path)
    if state.total_steps and run.optimizer.keeps(()) and "optimizer" not in begun:
        raise UserError(f"{path}: holds nothing of the optimizer; restore a copy, or start anew in another folder")
    config = path.parent / CONFIG
    if config.exists():
        then, now = ({**to_plain(one), "epochs": None, "data": None} for one in (run, load_yaml(TrainConfig, config)))
        if lines := differing(then, now):
            raise UserError(f"{path}: of a run with other settings than {CONFIG} says: {'; '.join(lines)}")
    return (
        f"{len(tensors)} tensors after epoch {state.epoch}, step {state.step} of the next, {state.total_steps} in all"
    )


def _history(folder: Path) -> str:
    state, _ = load_checkpoint(folder / CHECKPOINT)
    path = folder / HISTORY
    lines = [parse_json(line, path, finite=False) for line in read_text(path, "text_bytes").splitlines()]
    known = state.history
    # A run that was cut off between history and checkpoint has one epoch more here, and comes to it again.
    if lines[: len(known)] != known or len(lines) > len(known) + 1:
        raise UserError(f"{path}: {len(lines)} epochs, which are not those of {CHECKPOINT}; resume the run to write it")
    return f"{len(lines)} epochs, those of the checkpoint"
