"""What says where relevance ends, for ``rungwise evaluate``, and what is known of a collection's captions as queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Calibration, Known
from rungwise.cli.scored import Scored
from rungwise.cli.terminal import say
from rungwise.core.errors import UserError
from rungwise.index.words import words_of
from rungwise.metrics.ends import Ends, Judged
from rungwise.metrics.rankings import Direction, Scores
from rungwise.metrics.sources import EmbeddingSource
from rungwise.models.contracts import DualEncoder
from rungwise.models.folder import CALIBRATION


def read_ends(given: Path | None, scored: Scored) -> Ends:
    """What was asked for, else the model's own calibration, else one that learnt nothing; it is said which.

    Args:
        given: A file, or a folder that holds one.
        scored: The scores that are judged.

    Raises:
        UserError: If the file is missing or damaged, or of another model.
    """
    own = None if scored.model is None else scored.model.calibration_file
    file = own if given is None else given / CALIBRATION if given.is_dir() else given
    if file is None:
        calibration = Calibration.unsupervised()
    else:
        calibration = Calibration.load(file)
        if scored.model is not None:
            _refuse_other(file, calibration, scored)
    say(f"relevance ends by: {calibration.source}{'' if file is None else f' ({file})'}")
    known = known_of(scored, np.arange(len(scored.data.captions)))
    return calibration if known is None or calibration.learnt is None else _OfCaptions(calibration, known)


class _OfCaptions:
    """A calibration that knows the captions of a collection, which are queries in one direction alone."""

    def __init__(self, calibration: Calibration, known: list[Known]) -> None:
        self._ends: dict[Direction, Ends] = {"i2t": calibration, "t2i": calibration.informed(known)}

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> Judged:
        """See :class:`rungwise.metrics.ends.Ends`."""
        return self._ends[direction].judge(scores, direction, queries)

    def __str__(self) -> str:
        """That of the calibration."""
        return str(self._ends["i2t"])


def known_of(scored: Scored, captions: NDArray[np.int64]) -> list[Known] | None:
    """What a search knows of these captions, beside their scores; None of scores that say nothing of their vectors.

    Args:
        scored: By a model.
        captions: Positions.
    """
    model, source = scored.model, scored.similarity
    if not isinstance(model, DualEncoder) or not isinstance(source, EmbeddingSource):
        return None
    known = []
    for vector, caption in zip(source.text[captions], captions.tolist(), strict=True):
        text = scored.data.captions[caption]
        words, unknown = set(words_of(text)), model.unknown_words(text)
        share = min(1.0, len(set(unknown)) / len(words)) if words else None
        known.append(Known(vector=vector, unknown_share=share))
    return known


def _refuse_other(file: Path, calibration: Calibration, scored: Scored) -> None:
    fitted = calibration.model_fingerprint
    if fitted and fitted != scored.model_hash:
        raise UserError(
            f"{file}: was fitted for another model ({fitted[:12]}, and this one is {scored.model_hash[:12]}); fit one"
            " for this model with 'rungwise calibrate'"
        )
