"""Checks whether a run may start or resume in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rungwise.core import UserError, load_yaml, to_plain
from rungwise.encoders import PREPROCESSING, TOKENIZER
from rungwise.training._run_folder import CHECKPOINT, CONFIG, HISTORY, LOGS, MODEL, SKIPPED, is_begun
from rungwise.training.config import TrainConfig, config_of_settings
from rungwise.training.engine._checkpoint import RunState, differing, missing


def refuse_others(out: Path, resume: bool) -> None:
    """Refuse a folder with a run that is not to be resumed, or with unrelated files under a run's file names."""
    if resume:
        if not (out / CHECKPOINT).exists():
            raise missing(out / CHECKPOINT)
        return
    if is_begun(out):
        raise UserError(f"{out}: holds a run already; go on with it (resume), or name another folder")
    refuse_strangers(out, TrainConfig)


def refuse_strangers(out: Path, configuration: type) -> None:
    """Refuse a folder with unrelated files under the names of a run's files."""
    if (out / CONFIG).exists():
        try:
            load_yaml(configuration, out / CONFIG)
        except UserError:
            raise UserError(
                f"{out / CONFIG}: is no run's configuration, and would be overwritten; name another folder"
            ) from None
    elif others := [name for name in (MODEL, HISTORY, SKIPPED, *LOGS) if (out / name).exists()]:
        raise UserError(
            f"{out / others[0]}: is of no run that stands here, and would be overwritten; name another folder"
        )


def refuse_other_run(path: Path, state: RunState, now: RunState, config: TrainConfig) -> None:
    """Refuse to resume with other data, settings or weights; only the last phase may be longer.

    ``state`` is that of the checkpoint, ``now`` holds the present settings and hashes, and ``config`` the same
    settings.
    """
    if state.data_hash != now.data_hash:
        raise UserError(
            f"{path}: the run was started with other data ({state.data_hash[:12]} then, {now.data_hash[:12]} now);"
            " resume with the same, or start anew in another folder"
        )
    then = to_plain(config_of_settings(state.settings, path))
    lines = other_settings(then, now.settings, same_start=bool(state.start_hash))
    before, after = then["epochs"], now.settings["epochs"]
    begun = state.epoch + (state.step > 0)
    old = replace(config, epochs=tuple(before)) if len(before) == len(after) else None
    whole = config.schedule.of_the_whole_run and begun and tuple(before) != config.epochs
    if config.total_epochs < begun:
        lines.append(f"epochs: {before} then, {after} now, fewer than are done")
    elif old is None or whole or any(old.learning_rate(at) != config.learning_rate(at) for at in range(begun)):
        lines.append(f"epochs: {before} then, {after} now, which changes epochs that are done")
    if lines and whole:
        remedy = f"the schedule {config.schedule.kind} is of the whole run, which cannot be made longer"
        remedy += f"; resume with the same, or begin another run from its model (start: {path.parent})"
    elif lines:
        remedy = "resume with the same (epochs may be made longer), or start anew in another folder"
    if lines:
        raise UserError(f"{path}: the run was started with other settings: {'; '.join(lines)}; {remedy}")
    if changed := sorted(name for name, one in state.files.items() if now.files.get(name) != one):
        what = {TOKENIZER: "vocabulary", PREPROCESSING: "preprocessing of pictures"}.get(changed[0], changed[0])
        raise UserError(
            f"{path}: the run was started with another {what}; resume with the version of rungwise and the files, such"
            " as word vectors, that it was started with, or start anew in another folder"
        )
    if state.start_hash and state.start_hash != now.start_hash:
        raise UserError(
            f"{path}: the run began from another model than {config.start} is now; resume with the one that it began"
            " from, or start anew in another folder"
        )
    if state.frozen_hash and state.frozen_hash != now.frozen_hash:
        raise UserError(
            f"{path}: the run was started with other frozen weights; resume with the same model and weights, or"
            " start anew in another folder"
        )


def other_settings(then: Mapping[str, Any], now: Mapping[str, Any], *, same_start: bool) -> list[str]:
    """Settings that differ from those ``then``, without the epochs and settings that decide nothing.

    ``same_start`` leaves ``start`` out: the start model is compared by its content, since its folder may have moved.
    """
    left_out = {"preset", "modules", "packages", "epochs", *(["start"] if same_start else [])}
    # The same data and judgements may stand elsewhere by now; their hashes are compared.
    one, other = (
        {name: value for name, value in side.items() if name not in left_out}
        | {"data": {**side["data"], "path": "", "judgements": bool(side["data"].get("judgements"))}}
        for side in (then, now)
    )
    return differing(one, other)


def with_measured(now: Any, then: Any) -> Any:
    """Plain settings with thresholds in place of the shares for which the run has measured them.

    ``then`` are the settings of the run, with thresholds in place of shares.
    """
    if isinstance(now, dict) and isinstance(then, dict):
        if now.get("shares") and not then.get("shares") and then.get("thresholds"):
            now = {**now, "shares": then["shares"], "thresholds": then["thresholds"]}
        return {name: with_measured(value, then.get(name)) for name, value in now.items()}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [with_measured(*one) for one in zip(now, then, strict=True)]
    return now
