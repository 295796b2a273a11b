"""Results of evaluations on the card of a saved model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rungwise.core import UserError, from_plain, is_regular
from rungwise.core.disk import digest_of, read_seal
from rungwise.models._loading import load
from rungwise.models.io import CARD, EvaluationTable, SavedModel, with_table


def add_evaluation(folder: Path | str, facts: Mapping[str, Any]) -> None:
    """Write a result, in the plain values of :func:`rungwise.evaluation.card_facts`, into a saved model's card.

    The folder is replaced as a whole, with a new seal; weights and the model's fingerprint stay as they are. A later
    result of the same data and protocol takes an earlier one's place.

    Raises:
        UserError: If the folder is missing or altered, cannot be replaced, or holds another model than the evaluated
            one, or a model whose card cannot be written.
    """
    if not Path(folder).is_dir():
        raise UserError(f"{folder}: no folder of this machine; a card can be written only there")
    table = from_plain(EvaluationTable, dict(facts), "the evaluation")
    model = load(folder, "cpu")
    if not isinstance(model, SavedModel):
        raise UserError(f"{folder}: a model of kind {model.kind!r}, whose card cannot be written; give the saved model")
    card = Path(folder) / CARD
    if is_regular(card) and read_seal(Path(folder)).get(CARD) != digest_of(card):
        raise UserError(f"{card}: was changed since it was written, and would be replaced; move it away first")
    if table.model_hash != model.fingerprint:
        asked = table.model_hash[:12] or "it does not say of which"
        raise UserError(f"{folder}: the result is of another model ({asked}); evaluate this one")
    model.save_pretrained(folder, with_table(model.provenance, table))
