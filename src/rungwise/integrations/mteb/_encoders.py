"""mteb: our models and our search as mteb's models, degrees of relevance as its tasks, and its models as ours.

Numbers of mteb are shares from 0 to 1 and read whole-number gains. Ours stand beside them in the same results, under
the names that they have everywhere here (``t2i/nDCG@10``), in their own units, and read the degrees as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import torch
from datasets import Dataset
from mteb.models import ModelMeta
from mteb.results import ModelResult
from mteb.types import PromptType
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import DataLoader

from rungwise.calibration import UNRELATED, Calibration
from rungwise.core import UserError
from rungwise.core.output import one_line
from rungwise.data.files import EncodedOnce
from rungwise.integrations.mteb._mteb_task import DegreeTask, chunks_of
from rungwise.metrics import (
    Direction,
    Ends,
    judged_by,
)
from rungwise.models import DualEncoder


class MtebEncoder:
    """A dual encoder of ours as mteb's ``EncoderProtocol``, for any task whose inputs are texts or pictures.

    A picture reaches the model as the pixels that mteb hands over, in a file without loss. Where the model reads large
    JPEG files at a fraction of their size, its vectors differ from those of the files by that.

    An input with both a text and a picture is refused: our models compare one with the other and have no vector of
    both. Prompts and instructions of mteb are not used.

    Args:
        model: A dual encoder, such as ``rungwise.load(...)`` gives.
        name: Name in mteb's results, ``organisation/model``. Default: ``rungwise/`` and the family of the model.

    Raises:
        UserError: If the model gives no vectors, or mteb would refuse the name.
    """

    def __init__(self, model: DualEncoder, *, name: str | None = None) -> None:
        if not isinstance(model, DualEncoder):
            raise UserError(f"{type(model).__name__}: gives no vectors, which mteb asks for; give a dual encoder")
        if name is not None and (name.count("/") != 1 or not all(name.split("/"))):
            raise UserError(f"{one_line(name, 60)!r}: mteb takes names such as organisation/model; give name= like it")
        self.model = model
        self.direction: Direction = "t2i"
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": name or f"rungwise/{model.kind or type(model).__name__}",
                "revision": model.fingerprint[:40],
                "modalities": ["text", "image"],
                "embed_dim": model.dimension,
                "framework": ["PyTorch"],
                "use_instructions": False,
            }
        )

    def encode(
        self, inputs: DataLoader[Any], *, prompt_type: PromptType | None = None, **asked: Any
    ) -> NDArray[np.float32]:
        """(inputs, D) float32 vectors of batches with a column ``text`` or ``image``; other arguments are not read.

        Raises:
            UserError: If a batch has both columns or neither, or a picture cannot be read.
        """
        vectors = [np.empty((0, self.model.dimension), np.float32)]
        for batch in _read(inputs):
            kinds = [kind for kind in ("text", "image") if kind in batch]
            if len(kinds) != 1:
                has = "both a text and a picture" if kinds else "neither a text nor a picture"
                raise UserError(f"an input of mteb has {has}; our models read one of them: take another task")
            if prompt_type == PromptType.query:
                self.direction = "i2t" if kinds == ["image"] else "t2i"
            if kinds == ["text"]:
                vectors.append(self.model.encode_text([str(text) for text in batch["text"]]))
                continue
            encoded = self.model.encode_image([EncodedOnce(picture)() for picture in batch["image"]])
            if encoded.issues:
                raise UserError(f"{encoded.issues[0].where}: {encoded.issues[0].detail}")
            vectors.append(encoded.vectors)
        return np.concatenate(vectors)

    def similarity(self, embeddings1: ArrayLike, embeddings2: ArrayLike) -> torch.Tensor:
        """(n, m) similarities of queries with candidates, by the model's own similarity.

        One that is not symmetric, such as of order embeddings, takes the queries to be what was last encoded as such.
        """
        first, second = _rows(embeddings1), _rows(embeddings2)
        if self.direction == "i2t":
            return torch.from_numpy(np.ascontiguousarray(self.model.similarity.array(first, second)))
        return torch.from_numpy(np.ascontiguousarray(self.model.similarity.array(second, first).T))

    def similarity_pairwise(self, embeddings1: ArrayLike, embeddings2: ArrayLike) -> torch.Tensor:
        """(n,) similarities of the first rows, the second rows, and so on."""
        pairs = zip(_rows(embeddings1), _rows(embeddings2), strict=True)
        return torch.tensor([float(self.similarity(one[None], other[None])) for one, other in pairs])


class MtebSearch:
    """A dual encoder of ours as mteb's ``SearchProtocol``: each query's list stops where relevance ends.

    mteb takes short lists as they are: what is not listed has gain 0, and a query without a hit counts 0 in every mean.
    So its recall falls with an early end, its precision at k still divides by k, and a right end never raises its nDCG.
    What an end is worth is said by measures such as ``CutF1(0.5)`` of a :class:`DegreeTask`.

    Args:
        model: A dual encoder, or an :class:`MtebEncoder` of one.
        ends: The method that says where relevance ends. Default: the calibration in the model's folder; else, where
            texts seek pictures, one without judgements that knows how high texts score that fit nothing, and where
            pictures seek texts one that knows the query's own scores.
        name: Name in mteb's results. Default: that of the encoder, and ``-with-an-end``.
    """

    def __init__(self, model: DualEncoder | MtebEncoder, *, ends: Ends | None = None, name: str | None = None) -> None:
        self.encoder = model if isinstance(model, MtebEncoder) else MtebEncoder(model)
        meta = (MtebEncoder(self.encoder.model, name=name) if name else self.encoder).mteb_model_meta
        self.mteb_model_meta = meta if name else meta.model_copy(update={"name": f"{meta.name}-with-an-end"})
        self.ends = ends
        self._ids: list[str] = []
        self._vectors = np.empty((0, self.encoder.model.dimension), np.float32)

    def index(self, corpus: Dataset, *, encode_kwargs: Mapping[str, Any], **asked: Any) -> None:
        """Encode the candidates; arguments that are not named here are not read."""
        self._ids = list(corpus["id"])
        self._vectors = self.encoder.encode(_loader(corpus, encode_kwargs), prompt_type=PromptType.document)

    def search(
        self,
        queries: Dataset,
        *,
        top_k: int,
        encode_kwargs: Mapping[str, Any],
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **asked: Any,
    ) -> dict[str, dict[str, float]]:
        """Scores of each query's hits before its end, at most ``top_k``, best first.

        With ``top_ranked`` the end is judged among all candidates, and of the hits before it those are given that it
        lists.
        """
        vectors = self.encoder.encode(_loader(queries, encode_kwargs), prompt_type=PromptType.query)
        ends, names = self.ends or self._own_ends(), list(queries["id"])
        found: dict[str, dict[str, float]] = {}
        for part in chunks_of(len(names), len(self._ids)):
            scores = self.encoder.similarity(vectors[part], self._vectors).numpy()
            judged = judged_by(ends, scores, self.encoder.direction, part)
            for row, query in enumerate(part.tolist()):
                order = np.argsort(-scores[row], kind="stable")
                kept = order[: judged.cuts[row]] if judged.shown is None else order[judged.shown[row][order]]
                listed = None if top_ranked is None else set(top_ranked.get(names[query], ()))
                hits = [place for place in kept.tolist() if listed is None or self._ids[place] in listed][:top_k]
                found[names[query]] = {self._ids[place]: float(scores[row, place]) for place in hits}
        return found

    def _own_ends(self) -> Ends:
        model = self.encoder.model
        if model.calibration_file is not None:
            calibration = Calibration.load(model.calibration_file)
            calibration.check(model.fingerprint)
            return calibration
        if self.encoder.direction == "i2t":
            return Calibration.unsupervised(model_fingerprint=model.fingerprint)
        unrelated = self.encoder.similarity(model.encode_text(UNRELATED), self._vectors).numpy()
        return Calibration.unsupervised(unrelated, model_fingerprint=model.fingerprint)


def evaluate(
    model: DualEncoder | MtebEncoder | MtebSearch | Any,
    tasks: DegreeTask | Sequence[DegreeTask] | Any,
    *,
    folder: Path | str | None = None,
    **given: Any,
) -> ModelResult:
    """Run ``mteb.evaluate``: a dual encoder of ours is wrapped, and results are written into a folder.

    Args:
        model: A dual encoder of ours, one of the classes here, or any model of mteb.
        tasks: One task or several: ours, whose results have our measures beside mteb's, or its own.
        folder: Where the JSON of each task is written, as ``results/MODEL/REVISION/TASK.json``. Default: nowhere.
        given: Further arguments of ``mteb.evaluate``. Without ``overwrite_strategy`` every task is run, since mteb
            would take numbers of a task of the same name with other levels for those of this one.
    """
    wrapped = MtebEncoder(model) if isinstance(model, DualEncoder) else model
    cache = None if folder is None else mteb.ResultCache(Path(folder))
    usual = {"overwrite_strategy": "always", "co2_tracker": False, "show_progress_bar": False}
    return mteb.evaluate(wrapped, tasks, **{"cache": cache, **usual, **given})


def _rows(vectors: ArrayLike) -> NDArray[np.float32]:
    """(n, D) float32 vectors of an array or a tensor; a single vector is one row."""
    given = vectors.detach().cpu().float().numpy() if isinstance(vectors, torch.Tensor) else vectors
    return np.atleast_2d(np.asarray(given, np.float32))


def _read(inputs: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Batches, whose pictures mteb opens as they are asked for."""
    try:
        yield from inputs
    except OSError as error:  # which those of Pillow are, too
        raise UserError(f"a picture cannot be read ({error}); leave it out of the data") from error


def _loader(rows: Dataset, encode_kwargs: Mapping[str, Any]) -> DataLoader[Any]:
    """Batches of the columns that are encoded; a title stands before its text, as mteb's own search has it."""

    def batch(some: list[dict[str, Any]]) -> dict[str, list[Any]]:
        if "text" not in some[0]:
            return {"image": [one["image"] for one in some]}
        texts = [f"{one.get('title') or ''} {one['text']}".strip() for one in some]
        return {"text": texts, **({"image": [one["image"] for one in some]} if "image" in some[0] else {})}

    return DataLoader(rows, batch_size=encode_kwargs.get("batch_size", 32), collate_fn=batch)
