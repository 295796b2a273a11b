"""Checks of the course of a run: its losses, validation measures, learning rates and gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rungwise.doctor._finding import Finding, first, share
from rungwise.doctor._run_files import RunFiles
from rungwise.training.config import BestEpoch
from rungwise.training.engine import LEAST_SPREAD

FLAT = 0.01
"""Relative distance within which a loss counts as being at its resting value."""

COLLAPSED_STEPS, COLLAPSED_ROWS = 20, 3
"""Number of steps, and of rows of the steps' log, at the end of a run that must all look like a collapse."""

EXPLODED = 2.0
"""Ratio of the last loss to the lowest earlier one that counts as exploded."""

STUCK = 0.01
"""Share of its first value by which a loss must fall not to be stuck."""

OVERFIT_EPOCHS, OVERFIT_FALL = 3, 0.02
"""Number of epochs after the best one, and the share of the best measure that the last three lose on average."""

CLIPPED_SHARE, CLIPPED_TIMES, CLIPPED_ROWS = 0.95, 10.0, 20
"""Share of steps with clipped gradients, the factor of the median one, and the number of steps that must be known."""


def course(run: RunFiles) -> Iterator[Finding]:
    """Findings from the numbers of a run; one that explains the others stands alone."""
    looks = (_untrained, _no_rate, _never_in_force, _all_zero, _exploded, _collapsed, _on_the_plateau, _stuck, _overfit)
    if found := next((found for look in looks if (found := look(run))), None):
        yield found
    if found := _clipped(run):
        yield found


def _untrained(run: RunFiles) -> Finding | None:
    """Finding where no step was finished, or no gradient ever arrived."""
    steps = run.state.total_steps if run.state is not None else 0
    if not run.own_loss and not run.history and not steps:
        return Finding(
            "nothing trained",
            "fault",
            "The run has no finished step: there is no history and no checkpoint with one.",
            "Start it again and read its last line; rungwise train --resume goes on from a checkpoint.",
        )
    squares = [tensor for name, tensor in run.tensors.items() if name.endswith("/exp_avg_sq")]
    if steps and squares and not any(bool(tensor.any()) for tensor in squares):
        return Finding(
            "nothing trained",
            "fault",
            f"No gradient other than 0 arrived at any of {len(squares)} weight tensors in {steps} steps.",
            "Look at the loss: with its margin or thresholds, no pair may lose anything.",
        )
    return None


def _no_rate(run: RunFiles) -> Finding | None:
    if run.config is None:
        return None
    rates, factors = run.config.learning_rates, run.config.rates
    none = [number for number, rate in enumerate(rates, start=1) if rate == 0]
    if len(none) == len(rates) or not any((factors.image, factors.text, factors.heads)):
        return Finding(
            "learning rate is 0",
            "fault",
            f"The learning rate is 0 in all {len(rates)} phases ({sum(run.config.epochs)} epochs): every step leaves"
            " the weights as they are.",
            "Set learning_rates (and rates) above 0.",
        )
    if none:
        epochs = sum(run.config.epochs[number - 1] for number in none)
        return Finding(
            "learning rate is 0",
            "fault",
            f"The learning rate is 0 in phase {', '.join(map(str, none))} of {len(rates)}: {epochs} of"
            f" {sum(run.config.epochs)} epochs leave the weights as they are.",
            "Set learning_rates above 0 in each phase, or leave the phase out.",
        )
    return None


def _never_in_force(run: RunFiles) -> Finding | None:
    """Finding of a loss that no epoch trained with, once the run has ended or cannot come to it."""
    if run.config is None or "loss" in run.foreign or not run.history:
        return None
    mine, total, warm_up = run.config.loss.kind, run.config.total_epochs, run.warm_up_epochs
    others = dict.fromkeys(name for name in run.losses.values() if name != mine)
    before = ", ".join(others) or "sum_of_hinges"
    done = max((int(row["epoch"]) for row in run.history if "epoch" in row), default=0)
    trained = len(others) and mine in run.losses.values() if run.losses else done > warm_up
    best = run.state.best_epoch if run.state is not None else 0
    if not warm_up or trained or mine == before or not (warm_up >= total or run.config.is_over(done, best)):
        return None
    return Finding(
        "loss that never worked",
        "fault",
        f"The loss {mine} trained none of the {done} epochs: warm_up_epochs {warm_up} gave them to {before}"
        f" (epochs {' '.join(map(str, run.config.epochs))}).",
        f"Start anew with warm_up_epochs 0 to {max(total - 1, 0)}, or with {warm_up + 1} epochs or more in all.",
    )


def _all_zero(run: RunFiles) -> Finding | None:
    """Finding of a loss that was 0 wherever it was noted."""
    noted = [row["loss"] for row in run.steps if row.get("epoch", 0) > run.warm_up_epochs and "loss" in row]
    noted += [loss for _, loss in run.own_loss]
    if not noted or any(loss != 0 for loss in noted) or run.config is None:
        return None
    return Finding(
        "loss that never worked",
        "fault",
        f"The loss{'' if 'loss' in run.foreign else f' {run.config.loss.kind}'} was 0 in every step of"
        f" {len(run.own_loss)} epochs, so that nothing was learnt from it.",
        "Look at its margin, its weights, mask_above and batch_size: no pair loses anything.",
    )


def _exploded(run: RunFiles) -> Finding | None:
    odd = sorted(
        name for name, tensor in run.tensors.items() if tensor.is_floating_point() and not tensor.isfinite().all()
    )
    cure = "Lower the learning rate or clip_norm, warm up, use precision float32, and start anew."
    if odd:
        what = f"{len(odd)} of {len(run.tensors)} tensors of the checkpoint hold NaN or infinity."
        return Finding("exploding loss", "fault", what, cure, first(odd))
    series = run.own_loss
    if wild := [(epoch, loss) for epoch, loss in series if not math.isfinite(loss)]:
        what = f"The loss is {wild[0][1]} from epoch {wild[0][0]} on."
        return Finding("exploding loss", "fault", what, cure)
    series = _with_steps(run, series)
    if len(series) < 2:
        return None
    (begun, before), (ended, last) = min(series[:-1], key=lambda one: one[1]), series[-1]
    if last >= EXPLODED * before and last - before > 0.1 * abs(series[0][1]):
        return Finding(
            "exploding loss",
            "fault",
            f"The loss a pair grew from {before:.4g} (epoch {begun}) to {last:.4g} (epoch {ended}), {last / before:.3g}"
            " times as much."
            if before > 0
            else f"The loss a pair grew from {before:.4g} to {last:.4g}.",
            cure,
        )
    return None


def _with_steps(run: RunFiles, series: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The series, or for a run that ended within its first epoch the losses of its steps."""
    if len(series) > 1:
        return series
    return [(int(row.get("epoch", 1)), row["loss"]) for row in run.steps if "loss" in row] or series


def rests_at(run: RunFiles) -> float | None:
    """Loss while all vectors are alike; None where there is no such value, or it cannot be told."""
    if run.config is None or "loss" in run.foreign or run.config.loss.needs_thresholds:
        return None
    return run.config.loss.build().rests_at


def _collapsed(run: RunFiles) -> Finding | None:
    """Finding of a collapse, which the checkpoint remembers; a log of steps shows it for any loss."""
    steps, spread = 0, ""
    memory = run.state.collapse if run.state is not None else None
    if run.state is not None and memory is not None and memory.flat_since >= 0:
        steps = run.state.total_steps - memory.flat_since
    rows = [row["spread"] for row in run.steps if "spread" in row]
    alike = len(rows) - next((at + 1 for at in reversed(range(len(rows))) if rows[at] >= LEAST_SPREAD), 0)
    if alike >= COLLAPSED_ROWS:
        spread = f" (spread {np.median(rows[-alike:]):.1e}, a healthy one is above {LEAST_SPREAD:g})"
    if steps < COLLAPSED_STEPS and alike < COLLAPSED_ROWS:
        return None
    rest = rests_at(run)
    at = f"; the loss rests at {rest:g} a pair, 2 x margin" if rest is not None and steps else ""
    since = f" over the last {steps} steps" if steps else ""
    return Finding(
        "collapse",
        "fault",
        f"All embeddings point the same way{since}{spread}{at}.",
        "Start anew with a lower learning rate, a warm-up by the sum of hinges (warm_up_epochs), a larger batch, or"
        " reduction mean.",
    )


def _on_the_plateau(run: RunFiles) -> Finding | None:
    rest, series = rests_at(run), run.own_loss
    if rest is None or not series:
        return None
    epochs = 0
    for _, loss in reversed(series):
        if abs(loss - rest) > FLAT * rest:
            break
        epochs += 1
    if not epochs:
        return None
    return Finding(
        "2 x margin plateau",
        "fault",
        f"The loss stayed at {series[-1][1]:.4g} a pair over the last {epochs} of {len(series)} epochs: it rests at 2 x"
        f" margin = {rest:g} while every hardest negative is as similar as the pair.",
        "Warm up with the sum of hinges (warm_up_epochs: 1 to 3), train longer, or use a larger learning rate.",
    )


def _stuck(run: RunFiles) -> Finding | None:
    series = run.own_loss
    if len(series) < 2:
        return None
    begun, lowest = series[0][1], min(loss for _, loss in series[1:])
    if begun - lowest >= STUCK * abs(begun):
        return None
    return Finding(
        "stuck loss",
        "fault",
        f"The loss a pair was {begun:.4g} in epoch {series[0][0]} and never lower than {lowest:.4g} in the"
        f" {len(series) - 1} epochs after it.",
        "Change the learning rate (ten times up or down), and see that the weights meant to be trained are not frozen.",
    )


def _overfit(run: RunFiles) -> Finding | None:
    snapshot = run.config.snapshot if run.config is not None else BestEpoch()
    if not run.series(snapshot.name):
        snapshot = BestEpoch()
    name, better, measured = snapshot.name, snapshot.chosen.better, dict(run.series(snapshot.name))
    best = 0
    for epoch, value in sorted(measured.items()):
        best = epoch if better(value, measured.get(best)) else best
    after = [value for epoch, value in sorted(measured.items()) if epoch > best]
    losses = dict(run.own_loss)
    if len(after) < OVERFIT_EPOCHS or best not in losses:
        return None
    last, recent = (losses[epoch] for epoch in (max(losses), max(max(losses) - OVERFIT_EPOCHS + 1, best)))
    falls = last < min(losses[best], (1 - STUCK) * recent)
    lately = float(np.mean(after[-OVERFIT_EPOCHS:]))
    lacking = abs(measured[best] - lately)
    if not falls or better(lately, measured[best]) or lacking < OVERFIT_FALL * abs(measured[best]):
        return None
    return Finding(
        "overfit",
        "advice",
        f"Epoch {best} was the best ({name} {measured[best]:.4g}); in the {len(after)} epochs after it the training"
        f" loss fell from {losses[best]:.4g} to {last:.4g}, and {name} went to {after[-1]:.4g}.",
        f"The model of epoch {best} is kept. End early (snapshot.patience), or add data, dropout or weight decay.",
    )


def _clipped(run: RunFiles) -> Finding | None:
    norms = [row["gradient_norm"] for row in run.steps if "gradient_norm" in row]
    if run.config is None or len(norms) < CLIPPED_ROWS:
        return None
    limit = run.config.clip_norm
    cut = sum(norm > limit for norm in norms)
    if cut < CLIPPED_SHARE * len(norms) or np.median(norms) < CLIPPED_TIMES * limit:
        return None
    return Finding(
        "gradients always clipped",
        "advice",
        f"{cut} of {len(norms)} steps that were noted ({share(cut, len(norms))}) had gradients longer than clip_norm"
        f" {limit:g}; the median is {np.median(norms):.3g}, so that the length of a step hardly depends on the loss.",
        "Raise clip_norm to about the median, or use reduction mean.",
    )
