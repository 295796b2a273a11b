"""The halves of a published model, wherever it is: in a folder, in the hub's cache on this machine, or on the hub.

Nothing is downloaded twice, and nothing that could be unpickled. Where a model is missing and cannot be downloaded, one
line says what to fetch, with which command, and where to put it.
"""

from __future__ import annotations

from rungwise.core import UserError
from rungwise.encoders.pretrained._model_source import ModelSource
from rungwise.encoders.pretrained._towers import ImageHalf, TextHalf


def open_image(source: str) -> ImageHalf:
    """Open the image side of a published model.

    Raises:
        UserError: If it cannot be loaded, is damaged or incomplete, or has settings that are not allowed.
    """
    where = _parsed(source)
    if where.library == "open_clip":
        from rungwise.encoders.pretrained.open_clip import towers

        return towers.open_image(where.place)
    from rungwise.encoders.pretrained import _sentence_transformers as sentence_transformers
    from rungwise.encoders.pretrained import _transformers as transformers

    if where.library == "st":
        return transformers.open_image(sentence_transformers.inner(where.fetched()).folder)
    return transformers.open_image(where.fetched())


def open_text(source: str) -> TextHalf:
    """Open the text side of a published model.

    Raises:
        UserError: If it cannot be loaded, is damaged or incomplete, or has settings that are not allowed.
    """
    where = _parsed(source)
    if where.library == "open_clip":
        from rungwise.encoders.pretrained.open_clip import towers

        return towers.open_text(where.place)
    from rungwise.encoders.pretrained import _sentence_transformers as sentence_transformers
    from rungwise.encoders.pretrained import _transformers as transformers

    if where.library == "st":
        return sentence_transformers.open_text(sentence_transformers.inner(where.fetched()))
    return transformers.open_text(where.fetched())


def _parsed(source: str) -> ModelSource:
    found = ModelSource.parse(source)
    if found is None:
        raise UserError(f"source {source!r}: write hf:, open_clip: or st:, and a folder or a name after it")
    found.require_library()
    return found
