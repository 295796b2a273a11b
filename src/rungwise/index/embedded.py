"""An index in a folder: vectors in a memory map, searched exactly, by one process or many readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.errors import UserError
from rungwise.core.npy import NpyWriter
from rungwise.core.topk import rank
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.index import storage
from rungwise.index.hits import CaptionHit, Hit, Hits
from rungwise.index.items import Item, from_record, items_at, positions_of_texts, to_record
from rungwise.index.model import EmbeddingModel

_PICTURES_AT_ONCE = 4096
_TEXTS_AT_ONCE = 4096


class Index:
    """Pictures that can be found by text, by picture, or by one of their own.

    Pictures are ranked for a text by the model's similarity and for a picture by the cosine of their vectors.
    Equal scores stand in the order of the collection. Open one with :meth:`open`, make one with :meth:`build`.

    Attributes:
        folder: Where the index is stored.
        manifest: What it holds and which model made it.
        items: The pictures by position.
        vectors: (pictures, D) float32, memory-mapped.

    >>> items = [Item("dog", Path("dog.jpg")), Item("cat", Path("cat.jpg")), Item("wolf", Path("wolf.jpg"))]
    >>> vectors = np.array([[1, 0], [0, 1], [4, 3]], np.float32)
    >>> manifest = storage.Manifest("pets", "9a3f", "", "cosine", dimension=2, pictures=3, captions=0, skipped=0)
    >>> index = Index(Path("in memory"), manifest, items, vectors)
    >>> index.similar("dog", k=1)
    [Hit(position=2, id='wolf', score=0.800000...)]
    >>> index.search([[0, 2]], k=2).ids
    (('cat', 'wolf'),)
    >>> Index.open(Path("nowhere"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere: no index here; make one with `rungwise index PICTURES ... --out nowhere`
    """

    def __init__(
        self, folder: Path, manifest: storage.Manifest, items: Sequence[Item], vectors: NDArray[np.float32]
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.items = tuple(items)
        self.vectors = vectors

    @classmethod
    def build(
        cls,
        data: ImageCaptions,
        model: EmbeddingModel,
        folder: Path,
        *,
        model_location: str = "",
        similarity: str = "cosine",
        progress: Callable[[int], None] | None = None,
        overwrite: bool = False,
    ) -> Index:
        """Encode and store a collection's pictures and captions; all of it appears in ``folder`` at once.

        Pictures that cannot be read are left out, counted, and listed in :attr:`issues`. Paths of pictures that lie
        in the same folder as the index, or below it, are stored relative to it: both can be moved together.

        Args:
            data: Pictures with paths, and captions if there are any.
            model: Encodes them; only this model can search the index later.
            folder: Made, together with its parents.
            model_location: Where the model came from, for those who open the index.
            similarity: Name of the model's similarity.
            progress: Called with how many more pictures are done.
            overwrite: Replace an index that stands there already.

        Raises:
            UserError: If no picture can be read, the folder is taken, or the disk is full.
        """
        if not data.paths:
            raise UserError(f"{data.name}: no picture files to index; name a collection with pictures")
        with storage.replacing_folder(folder, overwrite=overwrite) as draft:
            kept, issues = _write_picture_vectors(draft / storage.VECTORS, data.paths, model, progress)
            if not kept:
                first = f"; the first: {_one_line(issues[0])}" if issues else ""
                raise UserError(f"{data.name}: none of {len(data)} pictures could be read{first}")
            items = items_at(data, kept)
            texts = list(positions_of_texts(items))
            _write_caption_vectors(draft / storage.CAPTION_VECTORS, texts, model)
            storage.write_lines(draft / storage.ITEMS, (to_record(item, folder) for item in items))
            storage.write_lines(draft / storage.ISSUES, (asdict(issue) for issue in issues))
            manifest = storage.Manifest(
                name=data.name,
                model_fingerprint=model.fingerprint,
                model_location=model_location,
                similarity=similarity,
                dimension=model.dimension,
                pictures=len(items),
                captions=len(texts),
                skipped=len(data) - len(items),
            )
            storage.write_manifest(draft, manifest)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Index:
        """Open a stored index; vectors stay on disk until they are needed.

        Raises:
            UserError: If there is none, it is damaged, or another version of rungwise made it.
        """
        folder = Path(folder)
        manifest = storage.read_manifest(folder)
        path = folder / storage.ITEMS
        try:
            items = [from_record(record, folder) for record in storage.read_lines(path)]
        except (KeyError, TypeError) as error:
            raise UserError(f"{path}: damaged (an item lacks id, path or captions); build the index again") from error
        if len(items) != manifest.pictures:
            counts = f"{len(items)} items where index.json says {manifest.pictures}"
            raise UserError(f"{path}: damaged ({counts}); build the index again")
        vectors = storage.open_vectors(folder / storage.VECTORS, manifest.pictures, manifest.dimension)
        return cls(folder, manifest, items, vectors)

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.items)

    @cached_property
    def issues(self) -> tuple[Issue, ...]:
        """The pictures that were left out, and why."""
        return tuple(Issue(**record) for record in storage.read_lines(self.folder / storage.ISSUES))

    @cached_property
    def captions(self) -> tuple[str, ...]:
        """The distinct captions of the collection, in order of first appearance."""
        return tuple(self._positions_of_texts)

    def position(self, item_id: str) -> int:
        """The position of the picture with this id.

        Raises:
            UserError: If no picture has it.
        """
        try:
            return self._position_of_id[item_id]
        except KeyError:
            raise UserError(f"{self.folder}: no picture with id {item_id!r}; ids are as in the collection") from None

    def check(self, model: EmbeddingModel) -> None:
        """Refuse a model that did not make this index: its vectors would mean something else.

        Raises:
            UserError: Naming both models and the remedy.
        """
        ours = (self.manifest.model_fingerprint, self.manifest.dimension)
        if ours != (model.fingerprint, model.dimension):
            raise UserError(
                f"{self.folder}: built by model {ours[0][:12]} (dimension {ours[1]}), not by"
                f" {model.fingerprint[:12]} (dimension {model.dimension}); search with the model that built it, or"
                f" rebuild with `rungwise index PICTURES --model MODEL --out {self.folder} --overwrite`"
            )

    def search(self, vectors: ArrayLike, k: int = 10, exclude: Sequence[int] = ()) -> Hits:
        """The k pictures with the highest cosine to each vector, exactly.

        Args:
            vectors: (queries, D), or one (D,).
            k: More than the index holds means all of it.
            exclude: Positions to leave out.

        Raises:
            UserError: If the vectors are of another dimension or not finite, or k is less than 1.
        """
        queries = self._queries(vectors)
        length = np.linalg.norm(queries, axis=1, keepdims=True)
        queries = np.divide(queries, length, out=np.zeros_like(queries), where=length > 0)

        def cosine(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            norms = np.linalg.norm(rows, axis=1)
            # A vector of zeros has no direction; its cosine is 0 with everything.
            return np.asarray((queries @ rows.T) / np.where(norms > 0, norms, 1), dtype=np.float32)

        return self._hits(*rank(self.vectors, cosine, len(queries), _at_least_one(k), exclude=exclude))

    def search_text(self, model: EmbeddingModel, text: str, k: int = 10) -> list[Hit]:
        """The k pictures most similar to a text, by the model's own similarity, best first.

        Raises:
            UserError: If another model built the index, or the text is blank.
        """
        self.check(model)
        if not text.strip():
            raise UserError("the query is empty; write a few words about the picture")
        query = self._queries(model.encode_text([text]))

        def similarity(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            return model.similarity(rows, query).T

        return self._hits(*rank(self.vectors, similarity, 1, _at_least_one(k)))[0]

    def search_image(self, model: EmbeddingModel, picture: Path | bytes, k: int = 10) -> list[Hit]:
        """The k pictures most similar to any picture, best first.

        Raises:
            UserError: If another model built the index, or the picture cannot be read.
        """
        return self.search(self.encode_picture(model, picture), k)[0]

    def similar(self, item_id: str, k: int = 10) -> list[Hit]:
        """The k pictures most similar to one of the index, without itself, best first; needs no model.

        Raises:
            UserError: If no picture has this id.
        """
        position = self.position(item_id)
        return self.search(self.vectors[position], k, exclude=(position,))[0]

    def captions_for(self, model: EmbeddingModel, picture: Path | bytes, k: int = 10) -> list[CaptionHit]:
        """The k captions of the collection that fit a picture best; none when the collection has no captions.

        Raises:
            UserError: If another model built the index, or the picture cannot be read.
        """
        return self.captions_near(model, self.encode_picture(model, picture), k)

    def captions_near(self, model: EmbeddingModel, vector: ArrayLike, k: int = 10) -> list[CaptionHit]:
        """As :meth:`captions_for`, for a picture that is encoded already, (D,) or (1, D)."""
        self.check(model)
        picture = self._queries(vector)

        def similarity(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            return model.similarity(picture, rows)

        positions, scores = rank(self._caption_vectors, similarity, 1, _at_least_one(k))
        texts = [self.captions[position] for position in positions[0].tolist()]
        return [
            CaptionHit(text, score, self._positions_of_texts[text])
            for text, score in zip(texts, scores[0].tolist(), strict=True)
        ]

    def encode_picture(self, model: EmbeddingModel, picture: Path | bytes) -> NDArray[np.float32]:
        """(1, D), the vector of a picture that need not be in the index.

        Raises:
            UserError: If another model built the index, or the picture cannot be read.
        """
        self.check(model)
        encoded = model.encode_image([picture])
        if not len(encoded.kept):
            raise UserError(_one_line(encoded.issues[0]))
        return self._queries(encoded.vectors)

    @cached_property
    def _position_of_id(self) -> dict[str, int]:
        return {item.id: position for position, item in enumerate(self.items)}

    @cached_property
    def _positions_of_texts(self) -> dict[str, tuple[int, ...]]:
        return positions_of_texts(self.items)

    @cached_property
    def _caption_vectors(self) -> NDArray[np.float32]:
        if not self.manifest.captions:
            return np.empty((0, self.manifest.dimension), np.float32)
        path = self.folder / storage.CAPTION_VECTORS
        return storage.open_vectors(path, self.manifest.captions, self.manifest.dimension)

    def _queries(self, vectors: ArrayLike) -> NDArray[np.float32]:
        queries = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if queries.ndim != 2 or queries.shape[1] != self.manifest.dimension:
            raise UserError(
                f"{self.folder}: vectors here have dimension {self.manifest.dimension}, the query's shape is"
                f" {queries.shape}; encode it with the model that built the index"
            )
        if not np.isfinite(queries).all():
            raise UserError("the query's vector holds NaN or infinity; the model is damaged or its input was")
        return queries

    def _hits(self, positions: NDArray[np.int64], scores: NDArray[np.float32]) -> Hits:
        ids = tuple(tuple(self.items[position].id for position in row) for row in positions.tolist())
        return Hits(positions, scores, ids)


def _at_least_one(k: int) -> int:
    if k < 1:
        raise UserError(f"k is {k}; ask for at least 1 result")
    return k


def _write_picture_vectors(
    path: Path, pictures: Sequence[Path], model: EmbeddingModel, progress: Callable[[int], None] | None
) -> tuple[list[int], list[Issue]]:
    kept: list[int] = []
    issues: list[Issue] = []
    with NpyWriter(path, (model.dimension,), np.float32) as writer:
        for start in range(0, len(pictures), _PICTURES_AT_ONCE):
            encoded = model.encode_image(pictures[start : start + _PICTURES_AT_ONCE], progress=progress)
            positions = (encoded.kept + start).tolist()
            _require_finite(encoded.vectors, [str(pictures[position]) for position in positions])
            writer.append(encoded.vectors)
            kept.extend(positions)
            issues.extend(encoded.issues)
    return kept, issues


def _write_caption_vectors(path: Path, texts: Sequence[str], model: EmbeddingModel) -> None:
    with NpyWriter(path, (model.dimension,), np.float32) as writer:
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = texts[start : start + _TEXTS_AT_ONCE]
            vectors = model.encode_text(some)
            _require_finite(vectors, some)
            writer.append(vectors)


def _require_finite(vectors: NDArray[np.float32], names: Sequence[str]) -> None:
    odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if odd.size:
        raise UserError(f"{names[odd[0]]}: the model gives NaN or infinity for it; the model's weights are damaged")


def _one_line(issue: Issue) -> str:
    return ": ".join(part for part in (issue.where, issue.kind, issue.detail) if part)
