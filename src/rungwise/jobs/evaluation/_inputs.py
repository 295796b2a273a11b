"""Inputs of an evaluation: scores of a model, of files or of arrays, with their data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.disk import digest_of
from rungwise.core.formats import in_file
from rungwise.data import NO_SPLIT, ImageCaptions, read, with_splits, with_validation
from rungwise.data.layouts import Key
from rungwise.evaluation import Provenance, Result, refuse_own_opinion
from rungwise.evaluation.inputs import (
    TOP,
    Embeddings,
    RankedLists,
    Reranked,
    checked_owners,
    ids_of,
    is_frame,
    matrix_shape,
    owners_by_count,
    read_embeddings,
    read_owners,
    read_ranked_lists,
    read_relevance,
    read_similarity,
    rows_by_id,
    similarity_source,
    split_key,
    vectors_of_frame,
)
from rungwise.jobs._models import encoding_in, read_model, say_cut
from rungwise.jobs._options import PrecisionName
from rungwise.jobs._terminal import progress_bar, say, say_issues
from rungwise.jobs.evaluation._options import Evaluate
from rungwise.metrics import SimilaritySource, as_slice
from rungwise.scenes import own_degrees

if TYPE_CHECKING:
    from rungwise.models import PairScorer, PairScores


class Encoding(Protocol):
    """The options that say how a model reads pictures."""

    precision: PrecisionName
    least_cosine: float
    cache: Path | None


@dataclass(frozen=True)
class ScoredInputs:
    """Scores and data, read once for everything that uses them.

    Attributes:
        similarity: Scores of all images with all captions; with a reranker, the rankings of both stages.
        data: Ids, captions and the captions' images; made up of positions where no data were given.
        has_texts: Whether data were given.
        relevance: Degrees of relevance, or None.
        relevance_name: Name of degrees that do not have one themselves.
        model_hash: Hash of the model; empty for scores from files.
        seed: Seed of the model's training, where it is known.
        split: Split that was evaluated; empty where there is none.
        model: Model that made the scores; None where they came as files.
        reranker: Model that reranks the best candidates; None without one.
        named: What the result is to name instead; None where that is found here.
    """

    similarity: SimilaritySource
    data: ImageCaptions
    has_texts: bool
    relevance: Any = None
    relevance_name: str = ""
    model_hash: str = ""
    seed: int | None = None
    split: str = ""
    model: PairScorer | None = None
    reranker: PairScorer | None = None
    named: Provenance | None = None

    @property
    def orders(self) -> PairScorer | None:
        """The model that orders the first candidates."""
        return self.reranker or self.model

    @property
    def provenance(self) -> Provenance:
        """What a result names as its data, model and degrees."""
        if self.named is not None:
            return self.named
        named = Provenance.of(self.data) if self.has_texts else Provenance(data_name=self.data.name)
        return replace(
            named, split=self.split, model_hash=self.model_hash, seed=self.seed, relevance_name=self.relevance_name
        )

    def refuse_own_opinion(self, relevance: Any) -> None:
        """Refuse degrees that came from one of the evaluated models, or from a part of one."""
        for model in (self.model, self.reranker):
            for one in sorted(model.made_of) if model is not None else ():
                refuse_own_opinion(relevance, one)


def read_scored(asked: Evaluate) -> ScoredInputs:
    """Read scores and data.

    Raises:
        UserError: If the options do not name exactly one kind of scores, or do not fit together.
    """
    embeddings = [one is not None for one in (asked.image_embeddings, asked.text_embeddings)]
    given = {
        "a model": asked.model is not None,
        "--image-embeddings and --text-embeddings": any(embeddings),
        "--similarity": asked.similarity is not None,
        "--ranked-lists": bool(asked.ranked_lists),
    }
    if sum(given.values()) != 1:
        raise UserError(f"give one thing to evaluate of {', '.join(given)}; got {sum(given.values())}")
    if any(embeddings) and not all(embeddings):
        raise UserError("--image-embeddings and --text-embeddings go together; give both")
    if asked.data is None and asked.ranked_lists:
        raise UserError(f"{asked.ranked_lists[0]}: ranked lists are of data; give these, too")
    if asked.data is None and asked.model is not None:
        raise UserError(_lacking_data(asked.model))
    data = None
    if asked.data is not None:
        data = read_part(
            asked.data,
            asked.split,
            layout=asked.layout,
            key=asked.key,
            join_restval=asked.join_restval,
            captions_only=asked.captions_only,
        )
    if asked.model is not None and data is not None:
        assert not isinstance(asked.model, Result)  # which is not measured again
        scored = _of_model(asked.model, data, asked)
    elif asked.ranked_lists and data is not None:
        scored = ScoredInputs(_lists(asked, data), data, True)
    elif is_place(asked.similarity):
        scored = _of_matrix(asked.similarity, asked, data)
    elif is_place(asked.image_embeddings) and is_place(asked.text_embeddings) and asked.similarity_function is None:
        scored = _of_vectors(asked.image_embeddings, asked.text_embeddings, asked, data)
    else:
        scored = _of_memory(asked, data)
    if asked.rerank is not None:
        scored = _reranked(asked.rerank, scored, asked)
    relevance = _relevance(asked, scored)
    named = _name_of(asked.relevance) if is_place(asked.relevance) else ""
    split = asked.split if data else ""
    return replace(scored, relevance=relevance, relevance_name=named, split=split, named=asked.provenance)


def is_place(value: Any) -> TypeGuard[str]:
    """Whether a value names a file or folder, and is not the thing itself."""
    return isinstance(value, str)


def read_beside(given: Sequence[str], scored: ScoredInputs, asked: Evaluate) -> SimilaritySource:
    """Read scores of another model for the same data: a model, a similarity file, or two files of embeddings.

    Raises:
        UserError: If the scores do not fit the data, or the degrees of relevance are this model's opinion.
    """
    if len(given) == 2:
        sides = [read_embeddings(*split_key(one)) for one in given]
        return _product(sides[0], sides[1], scored.data, scored.split, by_id=scored.has_texts)
    if len(given) != 1:
        raise UserError("--beside takes a model, a similarity file, or image and text embeddings")
    path, key = split_key(given[0])
    if path.suffix.lower() in (".npy", ".npz", ".json", ".jsonl"):
        return _fitting(read_similarity(path, key), scored.data, str(path), scored.split)
    other = _of_model(given[0], scored.data, asked)
    other.refuse_own_opinion(scored.relevance)
    if len(other.data) != len(scored.data):
        raise UserError(f"{given[0]}: could not read all pictures that the first model read; give the same data")
    return other.similarity


def read_part(
    place: Path | ImageCaptions,
    split: str,
    *,
    layout: str | None = None,
    key: Key = "dot",
    join_restval: bool = False,
    captions_only: bool = False,
) -> ImageCaptions:
    """A split of a collection, or all of it; the issues of one that is read here are printed."""
    if isinstance(place, ImageCaptions):
        data = place
    else:
        data = read(place, layout=layout, key=key, join_restval=join_restval, captions_only=captions_only)
        say_issues(data.issues)
    if split == "all":
        return data
    given, data = data, with_splits(data)
    if split == "val":  # which training holds out of what it is trained on, where the data have none
        trained = [one for one in data.split_names if one != NO_SPLIT]
        data = with_validation(data, ("train",) if "train" in trained else trained)
    if data is not given and split not in data.splits:
        raise UserError(
            f"{data.name}: has no splits, and of those that are drawn by the ids of its {len(data)} pictures none is"
            f" {split!r}; --split all takes every one"
        )
    return data.split(split)


def _of_model(name: str | PairScorer, data: ImageCaptions, asked: Evaluate) -> ScoredInputs:
    _refuse_incomplete(data)
    return scored_by(read_model(name, asked.device, altered=asked.altered_model), name, data, asked)


def _lists(asked: Evaluate, data: ImageCaptions) -> RankedLists:
    """The ranked lists, and a line of how many queries they lack where these count 0."""
    zero = asked.missing_queries == "zero"
    lists = read_ranked_lists(asked.ranked_lists, data.image_ids, data.caption_ids, missing_zero=zero)
    for way in lists.directions if zero else ():
        none = len(lists.counted_zero(way))
        say(f"{way}: {none} of {lists.sizes(way)[0]} queries have no list and count 0")
    return lists


def _refuse_incomplete(data: ImageCaptions) -> None:
    if not data.has_pictures or not data.captions:
        missing = "captions" if data.has_pictures else "pictures (--captions-only leaves them out)"
        raise UserError(f"{data.name}: a model is evaluated on pictures and captions, and here are no {missing}")


def scored_by(model: PairScorer, name: str | PairScorer, data: ImageCaptions, asked: Encoding) -> ScoredInputs:
    """Scores of a collection by a model, with a progress bar while pictures are encoded."""
    scores = scores_of(model, name, data, asked)
    source = similarity_source(**scores.for_evaluation(), image_of_caption=scores.data.image_of_caption)
    seed = _seed_of(model.provenance)
    return ScoredInputs(source, scores.data, True, model_hash=model.fingerprint, seed=seed, model=model)


def scores_of(model: PairScorer, name: str | PairScorer, data: ImageCaptions, asked: Encoding) -> PairScores:
    """A model's scores of a collection, with arguments of :func:`scored_by`; unreadable pictures are listed."""
    _refuse_incomplete(data)
    say_cut(model, data.captions)
    encoding = encoding_in(name, asked.precision, asked.least_cosine)
    with encoding, progress_bar("pictures", len(data)) as advance:
        scores = model.on(data, cache=asked.cache, progress=advance)
    if not len(scores.kept):
        first = scores.issues[0]
        raise UserError(
            f"{data.name}: none of {len(data)} pictures could be read; the first: {first.where}: {first.detail}"
        )
    if scores.issues:
        say(f"{len(scores.issues)} of {len(data)} pictures could not be read and are left out, with their captions")
        say_issues(scores.issues)
    return scores


def _reranked(name: str | PairScorer, scored: ScoredInputs, asked: Evaluate) -> ScoredInputs:
    """The scores as a first stage with a model as the second, restricted to the pictures that both can read."""
    model = read_model(name, asked.device, altered=asked.altered_model)
    scores = scores_of(model, name, scored.data, asked)
    first = scored.similarity
    if len(scores.kept) < len(scored.data):
        of_image = scored.data.captions_of_image
        captions = [caption for image in scores.kept.tolist() for caption in of_image[image]]
        first = first.select(scores.kept, np.array(captions, dtype=np.int64))
    both = Reranked(first, scores, TOP if asked.top is None else asked.top, second_hash=model.fingerprint)
    return replace(scored, similarity=both, data=scores.data, reranker=model)


def _seed_of(provenance: Mapping[str, Any]) -> int | None:
    """The seed in a model's provenance, which may hold anything."""
    seed = provenance.get("seed")
    return seed if isinstance(seed, int) else None


def _lacking_data(model: object) -> str:
    """What to do where a model is given alone; a file in its place holds scores or vectors."""
    if isinstance(model, str) and Path(model).suffix.lower() in (".npy", ".npz", ".safetensors", ".parquet"):
        return f"{model}: a file of numbers; give it as --similarity, or two with --image-embeddings, --text-embeddings"
    name = model if isinstance(model, str) else type(model).__name__
    return f"{name}: a model is evaluated on data; give a folder or a caption file after it"


def _of_matrix(given: str, asked: Evaluate, data: ImageCaptions | None) -> ScoredInputs:
    path, key = split_key(given)
    matrix = read_similarity(path, key, stays_in_file=_in_shards(asked))
    known = data or _unnamed(asked, (matrix.shape[0], matrix.shape[1]), path)
    return ScoredInputs(_fitting(matrix, known, str(path), asked.split if data else ""), known, data is not None)


def _of_memory(asked: Evaluate, data: ImageCaptions | None) -> ScoredInputs:
    """Scores from arrays, functions and values, at least one of which is in memory."""
    images = _in_memory(asked.image_embeddings, asked, "image_embeddings", data.image_ids if data else None, "images")
    texts = _in_memory(asked.text_embeddings, asked, "text_embeddings", data.caption_ids if data else None, "captions")
    similarity = _matrix_in_memory(asked, data)
    if data is not None:
        owners = data.image_of_caption
        if hasattr(similarity, "shape"):
            return ScoredInputs(_fitting(similarity, data, "similarity", asked.split), data, True)
    elif asked.image_of_caption is not None and not isinstance(asked.image_of_caption, Path):
        _refuse_two_owners(asked)
        owners = checked_owners(asked.image_of_caption)
    else:
        owners = _owners_of_files(
            asked, matrix_shape(similarity) if images is None or texts is None else (len(images), len(texts))
        )
    source = similarity_source(
        similarity=similarity,
        image_embeddings=images,
        text_embeddings=texts,
        image_of_caption=owners,
        similarity_function=asked.similarity_function,
    )
    if data is None:
        return ScoredInputs(source, _of_positions(source.shape[0], owners), False)
    return ScoredInputs(_fitting(source, data, "the scores", asked.split), data, True)


def _in_memory(vectors: Any, asked: Evaluate, name: str, ids: Sequence[str] | None, what: str) -> Any:
    """Vectors as an array, in the order of the data: those of a file or frame by their ids."""
    own: tuple[str, ...] = ()
    if is_place(vectors):
        found = read_embeddings(*split_key(vectors), stays_in_file=_in_shards(asked))
        vectors, own, name = found.vectors, found.ids, str(found.path)
    elif is_frame(vectors):
        vectors, own = vectors_of_frame(vectors, name)
        name += " (by the ids in its index; .to_numpy() leaves them out)" if own else ""
    elif _in_shards(asked):
        vectors = in_file(vectors)
    if ids is None or not getattr(vectors, "shape", ()):
        return vectors
    rows = rows_by_id(name, len(vectors), own, ids, what + _of_split(asked.split))
    return vectors if rows is None else vectors[as_slice(rows)]


def _matrix_in_memory(asked: Evaluate, data: ImageCaptions | None) -> Any:
    """Similarities that are no file; those of a frame in the order of the data, by the ids of its rows and columns."""
    if not is_frame(asked.similarity):
        return in_file(asked.similarity) if _in_shards(asked) else asked.similarity
    matrix = asked.similarity.to_numpy()
    if data is None or matrix.ndim != 2:
        return matrix
    split = _of_split(asked.split)
    for axis, labels, ids, what, item in (
        (0, asked.similarity.index, data.image_ids, "images", "row"),
        (1, asked.similarity.columns, data.caption_ids, "captions", "column"),
    ):
        if own := ids_of(labels):
            where = f"similarity (by the ids of its {item}s; .to_numpy() leaves them out)"
            places = rows_by_id(where, len(own), own, ids, what + split, item)
            matrix = matrix if places is None else np.take(matrix, places, axis)
    return matrix


def _of_vectors(image: str, text: str, asked: Evaluate, data: ImageCaptions | None) -> ScoredInputs:
    images, texts = (read_embeddings(*split_key(one), stays_in_file=_in_shards(asked)) for one in (image, text))
    known = data or _unnamed(asked, (len(images.vectors), len(texts.vectors)), images.path)
    split = asked.split if data else ""
    return ScoredInputs(_product(images, texts, known, split, by_id=data is not None), known, data is not None)


def _product(image: Embeddings, text: Embeddings, data: ImageCaptions, split: str, by_id: bool) -> SimilaritySource:
    sides = []
    for found, ids, what in ((image, data.image_ids, "images"), (text, data.caption_ids, "captions")):
        ordered = (found if by_id else replace(found, ids=())).ordered(ids, what + _of_split(split))
        if ordered.warning:
            say(f"warning: {ordered.warning}")
        sides.append(ordered)
    return similarity_source(
        image_embeddings=sides[0], text_embeddings=sides[1], image_of_caption=data.image_of_caption
    )


def _of_split(split: str) -> str:
    return "" if split in ("", "all") else f" of split {split!r} (--split all takes every one)"


def _fitting(matrix: Any, data: ImageCaptions, name: str, split: str) -> SimilaritySource:
    wanted = (len(data), len(data.captions))
    if tuple(matrix.shape) == wanted:
        return similarity_source(similarity=matrix, image_of_caption=data.image_of_caption)
    turned = "it is transposed; give its .T" if tuple(matrix.shape) == wanted[::-1] else "give scores of these data"
    raise UserError(
        f"{name}: shape {tuple(matrix.shape)} for {wanted[0]} images x {wanted[1]} captions of {data.name}"
        f"{_of_split(split)}: {turned}"
    )


def _unnamed(asked: Evaluate, shape: tuple[int, int], path: Path) -> ImageCaptions:
    """A collection of positions, for scores from files without data."""
    owners = asked.image_of_caption
    if owners is None or isinstance(owners, Path):
        return _of_positions(shape[0], _owners_of_files(asked, shape), path.stem)
    _refuse_two_owners(asked)
    return _of_positions(shape[0], checked_owners(owners), path.stem)


def _owners_of_files(asked: Evaluate, shape: tuple[int, int]) -> NDArray[np.int64]:
    """The position of each caption's image, by a number or from a file."""
    _refuse_two_owners(asked)
    if asked.captions_per_image is not None:
        return owners_by_count(asked.captions_per_image, shape)
    file = asked.image_of_caption
    assert isinstance(file, Path)
    owners = read_owners(file)
    if len(owners) != shape[1]:
        turned = ": images and captions are exchanged" if len(owners) == shape[0] else ""
        raise UserError(f"{file}: names {len(owners)} captions, but {shape[1]} were given{turned}; correct one")
    if owners.max(initial=-1) >= shape[0]:
        raise UserError(
            f"{file}, caption {int(owners.argmax())}: image {owners.max()} does not exist among {shape[0]} images"
            f" (0..{shape[0] - 1}); correct the position"
        )
    return owners


def _refuse_two_owners(asked: Evaluate) -> None:
    if asked.captions_per_image is not None and asked.image_of_caption is not None:
        raise UserError("--captions-per-image and --image-of-caption both say whose a caption is; give one of them")
    if asked.captions_per_image is None and asked.image_of_caption is None:
        raise UserError(
            "say which caption belongs to which image: one of DATA, --captions-per-image N and --image-of-caption FILE"
        )


def _of_positions(images: int, owners: NDArray[np.int64], name: str = "") -> ImageCaptions:
    captions = tuple(f"caption {number}" for number in range(len(owners)))
    return ImageCaptions(tuple(f"image {number}" for number in range(images)), captions, owners, captions, name=name)


def _in_shards(asked: Evaluate) -> bool:
    return asked.shards is not None or asked.ray is not None


def _name_of(relevance: str) -> str:
    """Name and hash of a file of degrees; empty for a folder, which has a name of its own."""
    path = split_key(relevance)[0]
    if path.is_dir():
        return ""
    return f"{Path(relevance).name}, hash {digest_of(path)[:16]}"


def _relevance(asked: Evaluate, scored: ScoredInputs) -> Any:
    if asked.relevance is not None and not is_place(asked.relevance):
        return in_file(asked.relevance) if _in_shards(asked) else asked.relevance
    if asked.relevance is not None:
        path, key = split_key(asked.relevance)
        data = scored.data if scored.has_texts else None
        return read_relevance(
            path,
            (len(scored.data), len(scored.data.captions)),
            key,
            data=data,
            ids=(scored.data.image_ids, scored.data.caption_ids),
            stays_in_file=_in_shards(asked),
        )
    return own_degrees(None if asked.data is None else place_of(asked.data), scored.data)


def place_of(data: ImageCaptions | str | PathLike[str]) -> Path | None:
    """Where data are read from; None of a collection in memory, of a part of one, or of several folders."""
    if not isinstance(data, ImageCaptions):
        return Path(data)
    return Path(data.source.paths[0]) if data.source is not None and len(data.source.paths) == 1 else None
