"""LanceDB: tables that encode pictures and texts with our models, by its registry of embedding functions.

Importing this module registers the function ``rungwise``. LanceDB writes its settings into the table, so that
``open_table`` finds the function again in a program that has imported this module.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from lancedb.embeddings.base import EmbeddingFunction
from lancedb.embeddings.registry import register
from numpy.typing import NDArray
from PIL import Image
from pydantic import ConfigDict

from rungwise.core import RungwiseWarning, UserError
from rungwise.core.output import one_line
from rungwise.data.files import EncodedOnce
from rungwise.encoders.pretrained import ModelSource
from rungwise.models import DualEncoder, load_dual_encoder
from rungwise.runs import is_run_folder
from rungwise.training import MODEL

__all__ = ["ALIAS", "RungwiseEmbeddings"]

ALIAS = "rungwise"
"""Name of the embedding function in LanceDB's registry."""

Vector = NDArray[np.float32]


@register(ALIAS)  # type: ignore[no-untyped-call]
class RungwiseEmbeddings(EmbeddingFunction):
    """A dual encoder of ours as an embedding function of LanceDB, made by ``get_registry().get("rungwise").create()``.

    The model is loaded when it is first needed, once in a process. A table keeps its absolute place and its
    fingerprint: with another model at that place nothing is added or searched. Where the model may move, give
    ``name="$var:NAME"`` and call LanceDB's ``registry.set_var("NAME", PLACE)`` before the table is opened.

    A picture or text that is missing has no vector. A picture that cannot be read has none either, and a warning names
    it; LanceDB's ``on_bad_vectors`` then says whether that is an error, which is its default.

    Attributes:
        name: Folder of a model or a run, or a published model, such as :func:`rungwise.load` takes.
        source: Whether source columns hold pictures (paths, bytes of files) or texts.
        device: Where the model computes, such as ``"cpu"``; None takes ``cuda`` where there is one.
        fingerprint: Fingerprint of the model that a table was made with; empty in a new one.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    source: Literal["pictures", "texts"] = "pictures"
    device: str | None = None
    fingerprint: str = ""

    @property
    def encoder(self) -> DualEncoder:
        """The model.

        Raises:
            UserError: If it cannot be loaded, or is another one than that of the table.
        """
        model, fingerprint = _loaded(self.name, self.device)
        if self.fingerprint not in ("", fingerprint, model.stands_for):
            raise UserError(
                f"{self.name}: is model {fingerprint[:12]}, and the table was made with {self.fingerprint[:12]}; put"
                " that one back, or make a new table"
            )
        return model

    def ndims(self) -> int:
        """D, the length of a vector."""
        return self.encoder.dimension

    def compute_source_embeddings(self, source: Any, *args: Any, **kwargs: Any) -> list[Vector | None]:
        """(D,) float32 vectors of pictures or texts, as ``source`` says; None for those that are missing.

        Args:
            source: One of them, or an Arrow array, a NumPy array or a list of some.
            args: Not read.
            kwargs: Not read.

        Raises:
            UserError: If the model cannot be loaded, or something is neither a picture nor a text.
        """
        given = _listed(source)
        there = [place for place, one in enumerate(given) if one is not None]
        found: list[Vector | None] = [None] * len(given)
        if not there:
            return found
        wanted = [given[place] for place in there]
        if self.source == "texts":
            if odd := [one for one in wanted if not isinstance(one, str)]:
                raise UserError(f"{type(odd[0]).__name__}: is no text; make the function with source='pictures'")
            vectors = dict(enumerate(self.encoder.encode_text(wanted)))
        else:
            vectors = self._of_pictures(wanted)
        for place, vector in vectors.items():
            found[there[place]] = np.asarray(vector, np.float32)
        return found

    def compute_query_embeddings(self, query: Any, *args: Any, **kwargs: Any) -> list[Vector | None]:
        """The (D,) float32 vector of a query: a ``str`` is a text; a ``Path``, bytes or Pillow picture a picture.

        Args:
            query: The text or picture.
            args: Not read.
            kwargs: Not read.

        Raises:
            UserError: If the picture cannot be read, or it is neither of both.
        """
        if isinstance(query, str):
            return list(self.encoder.encode_text([query]))
        encoded = self.encoder.encode_image([_picture(query)])
        if encoded.issues:
            raise UserError(f"{encoded.issues[0].where} {encoded.issues[0].detail}".strip())
        return list(encoded.vectors)

    def compute_source_embeddings_with_retry(self, *args: Any, **kwargs: Any) -> list[Vector | None]:
        """As :meth:`compute_source_embeddings`: a model on this machine is asked once."""
        return self.compute_source_embeddings(*args, **kwargs)

    def compute_query_embeddings_with_retry(self, *args: Any, **kwargs: Any) -> list[Vector | None]:
        """As :meth:`compute_query_embeddings`: a model on this machine is asked once."""
        return self.compute_query_embeddings(*args, **kwargs)

    def safe_model_dump(self) -> dict[str, Any]:
        """The settings that LanceDB writes into a table: those that were given, with place and fingerprint."""
        given: dict[str, Any] = dict(super().safe_model_dump())  # type: ignore[no-untyped-call]
        if not given["name"].startswith("$var:"):
            given["name"] = _absolute(self.name)
        return {**given, "fingerprint": _loaded(self.name, self.device)[1]}

    def _of_pictures(self, pictures: Sequence[Any]) -> dict[int, Vector]:
        """Vectors by position; a warning names what could not be read."""
        encoded = self.encoder.encode_image([_picture(one) for one in pictures])
        if encoded.issues:
            first = encoded.issues[0]
            said = f"{len(encoded.issues)} of {len(pictures)} pictures cannot be read and have no vector"
            why = one_line(f"{first.where} {first.detail}".strip(), 200)
            warnings.warn(f"{said}, the first: {why}", RungwiseWarning, stacklevel=4)
        return dict(zip(encoded.kept.tolist(), encoded.vectors, strict=True))


@lru_cache(maxsize=4)
def _loaded(name: str, device: str | None) -> tuple[DualEncoder, str]:
    """A model with its fingerprint, for which all weights are read; LanceDB makes a new function for each call."""
    place = str(Path(name) / MODEL) if is_run_folder(Path(name)) else name
    model = load_dual_encoder(place, device)
    return model, model.fingerprint


def _absolute(name: str) -> str:
    """The place of a model for a program in another folder; names of published models stay."""
    if (published := ModelSource.parse(name)) is not None:
        return str(published.resolved())
    return str(Path(name).resolve()) if Path(name).exists() else name


def _listed(source: Any) -> list[Any]:
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return list(source.to_pylist())
    return [source] if isinstance(source, str | bytes | os.PathLike | Image.Image) else list(source)


def _picture(given: Any) -> Path | bytes:
    """A picture as our models take it."""
    if isinstance(given, Image.Image):
        return EncodedOnce(given)()
    if isinstance(given, bytes):
        return given
    if not isinstance(given, str | os.PathLike):
        raise UserError(f"{type(given).__name__}: is no picture; give a path, the bytes of a file or a Pillow picture")
    if "://" in str(given):
        raise UserError(f"{one_line(str(given), 80)}: nothing is fetched; give the path of a file or its bytes")
    return Path(given)
