"""Methods of where relevance ends, for an evaluation."""

from __future__ import annotations

from pathlib import Path

from rungwise.calibration import UNRELATED, Calibration
from rungwise.core import UserError
from rungwise.jobs._terminal import say
from rungwise.jobs.evaluation._inputs import ScoredInputs
from rungwise.metrics import Ends
from rungwise.models.io import CALIBRATION
from rungwise.quality.typed_queries import CaptionEnds, TextedPictures

_KNOWN = ", and for captions by the other captions of their hits, as in an index that has them"


def read_ends(given: Ends | Path | None, scored: ScoredInputs) -> Ends:
    """The requested calibration, else the model's own, else one without learning; which one is printed.

    Raises:
        UserError: If the file is missing, damaged, or of another model.
    """
    if given is not None and not isinstance(given, Path):
        return given
    own = None if scored.model is None else scored.model.calibration_file
    file = own if given is None else given / CALIBRATION if given.is_dir() else given
    collection = TextedPictures.of_scores(scored.model, scored.similarity, scored.data)
    if file is None:
        # By the scores of unrelated texts, as in a search; without a model, by the scores alone.
        unrelated = None if collection is None else collection.scores(UNRELATED)
        calibration = Calibration.unsupervised(unrelated, model_fingerprint=scored.model_hash)
    else:
        calibration = Calibration.load(file)
        if scored.model is not None:
            _refuse_other(file, calibration, scored)
    informed = collection is not None and bool(calibration.learnt)
    say(f"relevance ends by: {calibration.source}{'' if file is None else f' ({file})'}{_KNOWN if informed else ''}")
    return CaptionEnds.of(calibration, collection) if informed and collection is not None else calibration


def _refuse_other(file: Path, calibration: Calibration, scored: ScoredInputs) -> None:
    fitted = calibration.model_fingerprint
    if fitted and fitted != scored.model_hash:
        raise UserError(
            f"{file}: was fitted for another model ({fitted[:12]}, and this one is {scored.model_hash[:12]}); fit one"
            " for this model with 'rungwise calibrate'"
        )
