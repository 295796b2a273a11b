"""Examination of a run: its course, its vocabulary, and the rungs of its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core import UserError, is_regular, read_text
from rungwise.data import ImageCaptions, read, with_share, with_splits, with_validation
from rungwise.data.layouts import Key
from rungwise.doctor._chance import no_better_than_chance
from rungwise.doctor._data_report import unheard
from rungwise.doctor._finding import Finding, Report, faults_first
from rungwise.doctor._losses import course
from rungwise.doctor._missing_words import captions_of, missing_words
from rungwise.doctor._pictures import Progress
from rungwise.doctor._roles import Roles
from rungwise.doctor._run_files import RunFiles, is_run, parts_of, read_run
from rungwise.doctor._rungs import empty_rungs
from rungwise.encoders import TOKENIZER
from rungwise.encoders.vocabulary import read_vocabulary
from rungwise.training.config import is_fit

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from rungwise.training.config import TrainConfig

_UNSEEN = "chance, words and rungs were not looked at"


def examine_run(
    folder: Path,
    data: Path | None = None,
    *,
    progress: Progress = unheard,
    say: Callable[[str], None] = lambda line: None,
) -> Report:
    """Look for what went wrong in a run, or in each stage and seed of one.

    It reads the configuration, the checkpoint, the history, the log of steps and the vocabulary of the model, and the
    data of the run where they are still there. Nothing is written, and no model is run.

    Args:
        folder: Folder of the run.
        data: Path where the data are now; None takes the one in the configuration.
        progress: Callback for what takes long.
        say: Callback with a sentence about degrees that are made.

    Raises:
        UserError: If the folder holds no run, or a fit.

    >>> examine_run(Path("nowhere"))
    Traceback (most recent call last):
    rungwise.core.UserError: nowhere: no run here; name the folder that rungwise train wrote (--out)
    """
    if not is_run(folder):
        raise UserError(f"{folder.as_posix()}: no run here; name the folder that rungwise train wrote (--out)")
    if is_fit(folder):
        raise UserError(
            f"{folder.as_posix()}: a fit, which has no course that could go wrong; evaluate its model instead"
        )
    findings: list[Finding] = []
    examined: list[str] = []
    left_out: list[str] = []
    collections = _Collections(data)
    parts = parts_of(folder)
    for part in parts:
        progress("runs", 1, len(parts))
        run = read_run(part)
        name = f"{part.relative_to(folder).as_posix()}: " if part != folder else ""
        left_out += [f"{name}{line}" for line in run.left_out]
        examined.append(f"{name}{_stands(run)}")
        mine = list(course(run))
        looks = (_words, _rungs) if any(one.severity == "fault" for one in mine) else (_chance, _words, _rungs)
        for look in looks:
            try:
                mine += look(run, collections, say)
            except UserError as error:
                if (line := f"{name}{error}") not in left_out:
                    left_out.append(line)
        findings += [replace(one, what=f"{name}{one.what}") for one in mine]
    return Report(f"{folder}: a run", tuple(examined), tuple(left_out), faults_first(findings))


def _stands(run: RunFiles) -> str:
    epochs = f" of {run.config.total_epochs}" if run.config is not None else ""
    known = run.config is not None and "loss" not in run.foreign
    loss = f", loss {run.config.loss.kind}" if run.config is not None and known else ""
    best = f", best after epoch {run.state.best_epoch}" if run.state is not None and run.state.best_epoch else ""
    return f"{len(run.history)}{epochs} epochs finished{loss}{best}, {len(run.steps)} lines of steps"


class _Collections:
    """Data of a run's parts, read once where they are the same; ``place`` None takes the configurations' paths."""

    def __init__(self, place: Path | None) -> None:
        self._place = place
        self._known: dict[tuple[str, Key, bool, str], ImageCaptions | UserError] = {}

    def of(self, run: RunFiles) -> tuple[TrainConfig, ImageCaptions]:
        """The configuration with the path of the data, and the data with the splits that training sees.

        Raises:
            UserError: If either cannot be read.
        """
        if run.config is None:
            raise UserError(f"{_UNSEEN}: the configuration cannot be read")
        config = replace(run.config, data=replace(run.config.data, path=str(self._place or run.config.data.path)))
        asked = config.data.path, config.data.key, config.data.join_restval, config.data.layout
        if asked not in self._known:
            self._known[asked] = _read(*asked)
        data = self._known[asked]
        if isinstance(data, UserError):
            raise data
        seen = with_validation(with_splits(data), config.data.train, config.data.validation)
        return config, with_share(seen, config.data.train, config.data.share, config.seed)


def _read(path: str, key: Key, join_restval: bool, layout: str) -> ImageCaptions | UserError:
    if not path:
        return UserError(f"{_UNSEEN}: the configuration names no data; name them with --data")
    try:
        return read(path, layout=layout or None, key=key, join_restval=join_restval)
    except UserError as error:
        return UserError(f"{_UNSEEN}: {error}, or name the data with --data")


def _vocabulary(run: RunFiles) -> Tokenizer | None:
    path = run.model / TOKENIZER
    return read_vocabulary(read_text(path, "json_bytes"), str(path)) if is_regular(path) else None


def _words(run: RunFiles, collections: _Collections, say: Callable[[str], None]) -> Iterator[Finding]:
    """Finding where the vocabulary of the trained model lacks many words."""
    vocabulary = _vocabulary(run)
    config, data = collections.of(run)
    if vocabulary is not None and data.text_features is None:
        yield from missing_words(
            vocabulary,
            captions_of(data, Roles(config.data.train, config.data.validation), "validation"),
            "The vocabulary of the model",
            "Train with a lower model.text.min_count, with word vectors of a file, or with a text encoder that knows"
            " more words.",
        )


def _chance(run: RunFiles, collections: _Collections, say: Callable[[str], None]) -> Iterator[Finding]:
    config, data = collections.of(run)
    yield from no_better_than_chance(run, data.split(config.data.validation))


def _rungs(run: RunFiles, collections: _Collections, say: Callable[[str], None]) -> Iterator[Finding]:
    if "loss" in run.foreign:
        raise UserError("rungs were not looked at: the loss cannot be read")
    vocabulary = _vocabulary(run)

    def lengths(captions: list[str]) -> list[int]:
        if vocabulary is None:
            return [len(caption.split()) for caption in captions]
        whole = [caption.encode("utf-8", "replace").decode() for caption in captions]
        return [len(encoding.ids) for encoding in vocabulary.encode_batch(whole)]

    yield from empty_rungs(*collections.of(run), lengths, say)
