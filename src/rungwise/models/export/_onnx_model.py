"""Exported models: two ONNX graphs that onnxruntime computes, without torch.

A folder holds ``config.json``, ``image.onnx``, ``text.onnx``, ``tokenizer.json``, a card and a seal. It is written by
:mod:`rungwise.models.export._onnx_export`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Tokenizer

from rungwise.core import (
    ELSEWHERE,
    STRICT,
    Bounded,
    Natural,
    Size,
    UserError,
    digest_of_json,
    digest_of_parts,
    from_plain,
    identity,
)
from rungwise.core.compute import cores, thread_pool
from rungwise.data import Issue
from rungwise.data.files import FeatureRows, Picture
from rungwise.data.pictures import picture_name, prepared_array
from rungwise.encoders import Preprocessing
from rungwise.encoders.pretrained.open_clip import Cleaning, cleaner
from rungwise.encoders.vocabulary import cutting, read_vocabulary, tokenise, too_long, unknown_words, whole_words
from rungwise.models._contracts import DualEncoder, EncodedImages, Pictures, Progress, Texts, Vectors
from rungwise.models.export._onnx_graphs import Graph, Input, check_graph, default_threads
from rungwise.models.io import CONFIG, IMAGE_GRAPH, TEXT_GRAPH, TOKENIZER, AlteredModelError, ModelFolder, StoredModel
from rungwise.similarity import AnySimilarity, Similarity

PICTURES, ROWS, TOKENS, LENGTHS = "pictures", "rows", "tokens", "lengths"
"""Names of what graphs take: of the image side pictures or rows of features, of the text side tokens and lengths."""

_LARGEST_GRAPH = (1 << 31) - 1
_PICTURES_AT_ONCE, _TEXTS_AT_ONCE, _ROWS_AT_ONCE = 32, 256, 4096


@dataclass(frozen=True)
class Origin:
    """The model that was exported, and how close the export came to it.

    Attributes:
        fingerprint: Fingerprint of the exported model.
        image_cosine: Least cosine between a vector of the model and one of the export, over the compared pictures.
        text_cosine: Least cosine over the compared texts, alone and in padded batches.
        opset: Version of ONNX's operators.
        seal: SHA-256 of the export's own fingerprint, its provenance and the other attributes, as :meth:`sealed`
            computes it. An export whose description was changed afterwards stands for no model.
    """

    __pydantic_config__ = STRICT

    fingerprint: str
    image_cosine: float
    text_cosine: float
    opset: int
    seal: str = ""

    def sealed(self, fingerprint: str, provenance: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """A copy with the seal of an export.

        Args:
            fingerprint: Fingerprint of the export, which covers its graphs, vocabulary and configuration.
            provenance: Facts about data, training and results that are saved with it.
        """
        facts = [fingerprint, self.fingerprint, self.image_cosine, self.text_cosine, self.opset, dict(provenance)]
        return replace(self, seal=digest_of_json(facts))


@dataclass(frozen=True)
class OnnxConfig(Bounded):
    """Configuration of an exported model, besides its graphs and vocabulary.

    Attributes:
        origin: The model that was exported.
        dimension: Length D of a vector.
        similarity: How vectors are compared; the graphs give vectors that are prepared for it.
        preprocessing: Preprocessing of pictures before the graph, which normalises them itself; None for rows of
            features.
        features: Width of a row of features; None for pictures.
        regions: Whether a row of features is the regions of a picture, any number of them; otherwise their mean is
            taken.
        token_rows: Size of the token table: every token number lies below it.
        longest: Tokens of a text that are read at most; None for any number.
        pad_number: The token number that fills a batch.
        clean: Cleaning of a text before it is cut into tokens; see
            rungwise.encoders.pretrained.open_clip._text_cleaning.
        zeroed: A token number that is replaced by 0 afterwards.
        kind: Name of the family.
    """

    __pydantic_config__ = STRICT

    origin: Origin = field(metadata=ELSEWHERE)
    dimension: Size
    similarity: AnySimilarity
    preprocessing: Preprocessing | None
    features: Size | None
    token_rows: Annotated[int, Field(ge=1, le=1 << 31)]
    longest: Size | None
    pad_number: Natural
    clean: Cleaning = "none"
    zeroed: int | None = None
    kind: Literal["onnx"] = "onnx"
    regions: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.preprocessing is None) == (self.features is None):
            raise UserError(
                "name either preprocessing, of pictures, or features, the width of rows that stand for them"
            )
        if self.pad_number >= self.token_rows:
            raise UserError(f"pad_number must lie in 0..{self.token_rows - 1}, got {self.pad_number}")

    @property
    def image_input(self) -> Input:
        """Name, type and shape of the image graph's input."""
        if self.preprocessing is None:
            return Input(ROWS, np.float32, (None, None, self.features) if self.regions else (None, self.features))
        return Input(PICTURES, np.uint8, (None, *self.preprocessing.prepared_shape))

    @property
    def text_inputs(self) -> tuple[Input, Input]:
        """Names, types and shapes of the text graph's inputs."""
        return Input(TOKENS, np.int64, (None, None)), Input(LENGTHS, np.int64, (None,))


class OnnxModel(StoredModel, DualEncoder):
    """A dual encoder of two ONNX graphs, as :func:`rungwise.models.load` opens it.

    Args:
        config: Configuration from the folder.
        image: Graph that gives vectors of pictures, or of rows of features.
        text: Graph that gives vectors of texts.
        tokenizer: The vocabulary.
        fingerprint: Hash of everything that a vector depends on.
    """

    kind: ClassVar[str] = "onnx"

    def __init__(self, config: OnnxConfig, image: Graph, text: Graph, tokenizer: Tokenizer, fingerprint: str) -> None:
        self.config = config
        self.provenance: dict[str, Any] = {}
        self._image, self._text = image, text
        self._words = WordCutter(tokenizer, config.longest, config.clean, config.zeroed)
        self._fingerprint = fingerprint

    @classmethod
    def from_folder(cls, folder: ModelFolder, device: str | None, *, threads: int | None = None) -> Self:
        """Read the two graphs, the vocabulary and the configuration of an export.

        Args:
            folder: The opened folder.
            device: None or ``"cpu"``.
            threads: Number of computing threads; None takes ``OMP_NUM_THREADS``, or one for each core.

        Raises:
            UserError: If files are missing or damaged, or a graph asks for anything that is not allowed.
            AlteredModelError: If configuration, vocabulary and graphs are not those that were exported together,
                whatever the folder's seal says. With ``altered`` the model is read all the same, and stands for no
                other.
        """
        if device not in (None, "cpu"):
            raise UserError(
                f"{folder.path}: an exported model computes on the cpu, not on {device}; leave the device out"
            )
        facts, where = folder.json(CONFIG), str(folder.path / CONFIG)
        config = from_plain(OnnxConfig, facts.get("model"), where)
        tokenizer = read_vocabulary(folder.text(TOKENIZER), str(folder.path / TOKENIZER), config.token_rows)
        graphs, read = [], []
        for name, inputs in ((IMAGE_GRAPH, (config.image_input,)), (TEXT_GRAPH, config.text_inputs)):
            data, place = folder.data(name, _LARGEST_GRAPH), str(folder.path / name)
            check_graph(data, place, inputs, config.dimension)
            read.append(data)
            graphs.append(Graph(data, place, config.dimension, threads or default_threads()))
        image, text = graphs
        fingerprint = fingerprint_of(config, folder.text(TOKENIZER), *read)
        model = cls(config, image, text, tokenizer, fingerprint)
        provenance = facts.get("provenance", {})
        model.provenance = provenance if isinstance(provenance, dict) else {}
        if not model.stands_for and folder.seal is not None:
            raise AlteredModelError(f"{where}: says something else of the model than when it was exported")
        return model

    def try_out(self) -> str:
        """Run each graph on two rows."""
        shape = [2 if size is None else size for size in self.config.image_input.shape]
        image, tokens = self.config.image_input, np.full((2, 1), self.config.pad_number, np.int64)
        for graph, given in (
            (self._image, {image.name: np.zeros(shape, image.dtype)}),
            (self._text, {TOKENS: tokens, LENGTHS: np.ones(2, np.int64)}),
        ):
            if not np.isfinite(graph.run(**given)).all():
                raise UserError(f"{graph.where}: gives NaN or infinity; export the model anew")
        return "each graph was computed with"

    @property
    def fingerprint(self) -> str:
        """Hash of the graphs, the vocabulary and the configuration."""
        return self._fingerprint

    @property
    def stands_for(self) -> str:
        """Fingerprint of the model that was exported; empty where the files are not those that were exported."""
        origin = self.config.origin
        return origin.fingerprint if origin == origin.sealed(self._fingerprint, self.provenance) else ""

    @property
    def contents(self) -> str:
        """What was read, in words."""
        return f"2 graphs exported from model {self.config.origin.fingerprint[:12]}"

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""
        return self.config.dimension

    @property
    def similarity(self) -> Similarity:
        """How vectors are compared."""
        return self.config.similarity

    def encode_image(
        self, pictures: Pictures, *, progress: Progress | None = None, cache: Path | None = None
    ) -> EncodedImages:
        """Vectors of picture files, of pictures in memory, or of rows of features; nothing is cached."""
        if isinstance(pictures, FeatureRows):
            vectors = self._of_rows(pictures)
            if progress:
                progress(len(pictures))
            return EncodedImages(vectors, np.arange(len(pictures)))
        found, kept, issues = [np.zeros((0, self.dimension), np.float32)], [], []
        for begin, prepared in _prepared(pictures, self._preprocessing()):
            ready = [(begin + at, one) for at, one in enumerate(prepared) if not isinstance(one, Issue)]
            issues += [one for one in prepared if isinstance(one, Issue)]
            if ready:
                # Always so many, so that a vector does not depend on what else is encoded, not even in its last bit.
                full = [*ready, *[ready[0]] * (_PICTURES_AT_ONCE - len(ready))] if len(pictures) > 1 else ready
                found.append(self._image.run(pictures=np.stack([pixels for _, pixels in full]))[: len(ready)])
                kept += [position for position, _ in ready]
            if progress:
                progress(len(prepared))
        return EncodedImages(np.concatenate(found), np.array(kept, np.int64), tuple(issues))

    def prepare_image(self, picture: Picture | bytes) -> Callable[[], EncodedImages]:
        """Read a picture now; the returned function runs the graph."""
        pixels = _read(picture, self._preprocessing())
        return lambda: EncodedImages(self._image.run(pictures=pixels[None]), np.arange(1))

    def encode_text(self, texts: Texts) -> Vectors:
        """(texts, D) float32 vectors, encoded shortest first so that batches hold little padding."""
        tokens = self._words.tokenise(_read_words(texts))
        vectors = np.zeros((len(tokens), self.dimension), np.float32)
        order = np.argsort([len(one) for one in tokens], kind="stable")
        for begin in range(0, len(order), _TEXTS_AT_ONCE):
            chosen = order[begin : begin + _TEXTS_AT_ONCE]
            padded, lengths = pad_tokens([tokens[position] for position in chosen], self.config.pad_number)
            vectors[chosen] = self._text.run(tokens=padded, lengths=lengths)
        return vectors

    @property
    def reads_pictures(self) -> bool:
        """Whether the model was trained on pictures, and not on rows of features."""
        return self.config.preprocessing is not None

    @property
    def decoded_side(self) -> int | None:
        """Shorter side in pixels to which large pictures are decoded; None where every pixel is read."""
        seen = self.config.preprocessing
        return None if seen is None else seen.decoded_side

    @property
    def longest_text(self) -> int | None:
        """Tokens of a text that are read at most; None for any number."""
        return self.config.longest

    def too_long(self, texts: Texts) -> NDArray[np.int64]:
        """Positions of the texts that are cut, ascending."""
        return self._words.too_long(_read_words(texts))

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that the vocabulary lacks."""
        return self._words.unknown_words(text)

    @property
    def known_words(self) -> Collection[str]:
        """Whole words of the vocabulary."""
        return self._words.known_words

    def _preprocessing(self) -> Preprocessing:
        if self.config.preprocessing is None:
            raise UserError(
                "the model was trained on rows of features and reads no pictures; give features of the same extractor"
            )
        return self.config.preprocessing

    def _of_rows(self, rows: FeatureRows) -> Vectors:
        if self.config.features is None:
            raise UserError("the data are rows of features, but the model reads pictures; give picture files")
        if rows.shape[-1] != self.config.features:
            raise UserError(
                f"{rows.file}: features of length {rows.shape[-1]}, but the model reads features of"
                f" length {self.config.features}; give those of the extractor that it was trained with"
            )
        if self.config.regions and len(rows.shape) != 3:
            raise UserError(
                f"{rows.file}: one vector for each image, but the model reads regions; give an array"
                " (images, regions, D)"
            )
        vectors = np.zeros((len(rows), self.dimension), np.float32)
        at_once = max(1, _ROWS_AT_ONCE // (rows.shape[1] or 1)) if len(rows.shape) == 3 else _ROWS_AT_ONCE
        for begin in range(0, len(rows), at_once):
            with np.errstate(over="ignore"):  # to infinity, which is refused
                some = rows[begin : begin + at_once].astype(np.float32)
            finite = np.isfinite(some).reshape(len(some), -1).all(axis=1)
            if not finite.all():
                place = rows.place(begin + int(np.flatnonzero(~finite)[0]))
                raise UserError(f"{place} (from 0): holds numbers that are not finite in float32; extract the row anew")
            some = some.mean(axis=1) if some.ndim == 3 and not self.config.regions else some
            vectors[begin : begin + len(some)] = self._image.run(rows=some)
        return vectors


def fingerprint_of(config: OnnxConfig, tokenizer: str, image: bytes, text: bytes) -> str:
    """Hash of everything that an export's vectors depend on: configuration, vocabulary and the bytes of both graphs."""
    return digest_of_json([identity(config), tokenizer, digest_of_parts([image]), digest_of_parts([text])])


class WordCutter:
    """Cuts texts into tokens as the exported model does.

    Args:
        tokenizer: The vocabulary.
        longest: Tokens that are kept, those that frame a text included; None for all.
        clean: Cleaning of a text beforehand.
        zeroed: A token number that is replaced by 0 afterwards.
    """

    def __init__(self, tokenizer: Tokenizer, longest: int | None, clean: Cleaning, zeroed: int | None) -> None:
        self._tokenizer = tokenizer
        self._cutter = cutting(tokenizer, longest)
        self._clean = cleaner(clean)
        self._zeroed = zeroed

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text."""
        tokens = tokenise(self._cutter, self._cleaned(texts))
        if self._zeroed is None:
            return tokens
        return [[0 if one == self._zeroed else one for one in ids] for ids in tokens]

    def too_long(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Positions of the texts that are cut, ascending."""
        return too_long(self._cutter, self._cleaned(texts))

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that the vocabulary lacks."""
        return unknown_words(self._tokenizer, self._cleaned([text])[0])

    @cached_property
    def known_words(self) -> Collection[str]:
        """Whole words of the vocabulary."""
        return whole_words(self._tokenizer)

    def _cleaned(self, texts: Sequence[str]) -> Sequence[str]:
        return texts if self._clean is None else [self._clean(text) for text in texts]


def pad_tokens(tokens: Sequence[Sequence[int]], number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, longest) tokens, padded on the right, and (n,) lengths."""
    lengths = np.array([len(one) for one in tokens], np.int64)
    padded = np.full((len(tokens), int(lengths.max())), number, np.int64)
    for row, one in zip(padded, tokens, strict=True):
        row[: len(one)] = one
    return padded, lengths


def _read_words(texts: Texts) -> Sequence[str]:
    if isinstance(texts, FeatureRows):
        raise UserError("the data are rows of features in place of texts, but the model reads words")
    return texts


def _read(picture: Picture | bytes, preprocessing: Preprocessing) -> NDArray[np.uint8]:
    return prepared_array(picture, preprocessing.apply_array, shorter_side=preprocessing.decoded_side)


def _prepared(
    pictures: Sequence[Picture | bytes], preprocessing: Preprocessing
) -> Iterator[tuple[int, list[NDArray[np.uint8] | Issue]]]:
    """Batches of pictures with the position of their first; the next batch is read in threads while one is encoded."""

    def prepare(picture: Picture | bytes) -> NDArray[np.uint8] | Issue:
        try:
            return _read(picture, preprocessing)
        except UserError as error:
            name = picture_name(picture)
            return Issue("unreadable picture", name, str(error).removeprefix(f"{name}: "))

    with thread_pool(cores()) as pool:
        upcoming = pool.map(prepare, pictures[:_PICTURES_AT_ONCE])
        for begin in range(0, len(pictures), _PICTURES_AT_ONCE):
            done = list(upcoming)
            following = begin + _PICTURES_AT_ONCE
            upcoming = pool.map(prepare, pictures[following : following + _PICTURES_AT_ONCE])
            yield begin, done
