"""Joint image-text embedding of the VSE family: a backbone and a linear layer, a GRU, and a similarity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core.configuration import STRICT, changed, check_size, from_plain, to_plain
from rungwise.core.errors import UserError
from rungwise.core.tensors import add_tensors
from rungwise.data.collection import ImageCaptions
from rungwise.data.features import FeatureRows
from rungwise.data.packed import Picture
from rungwise.data.pictures import load_picture
from rungwise.encoders.cache import feature_rows, pixel_rows
from rungwise.encoders.features import FeatureConfig, FeatureInput
from rungwise.encoders.image import Backbone, ImageConfig, load_backbone
from rungwise.encoders.preprocessing import Preprocessing
from rungwise.encoders.reading import prepared_batches
from rungwise.encoders.text import GRUEncoder, TextConfig, learn_vocabulary, pad, tokenise
from rungwise.encoders.vocabulary import read_vocabulary
from rungwise.models.contracts import EncodedImages, Pictures, Progress, VectorScores, pictures_at
from rungwise.models.folder import ModelFolder
from rungwise.models.pairs import Autocast, Pairs, Positions, Rows, TrainableEncoder, pair_up
from rungwise.models.saving import ModelConfig
from rungwise.similarity import AnySimilarity, Cosine, Similarity

TOKENIZER, PREPROCESSING = "tokenizer.json", "preprocessing.json"

AnyImageSide = Annotated[
    Annotated[ImageConfig | FeatureConfig, Field(discriminator="kind")],
    BeforeValidator(lambda value: {"kind": "pictures"} | value if isinstance(value, dict) else value),
]
"""Pictures under a backbone, unless ``kind: features`` says that rows of features stand for them."""


@dataclass(frozen=True)
class VSEConfig(ModelConfig):
    """A joint embedding of the VSE family (Faghri et al. 2018, section 2).

    Attributes:
        kind: Names the family.
        image: The backbone, or features in its place.
        text: The caption encoder.
        dimension: Width of the joint space.
        similarity: cosine, inner (the caption side alone is normalised: VSE0), order or shifted_cosine.
    """

    __pydantic_config__ = STRICT

    kind: Literal["vse"] = "vse"
    image: AnyImageSide = field(default_factory=ImageConfig)
    text: TextConfig = field(default_factory=TextConfig)
    dimension: int = 1024
    similarity: AnySimilarity = field(default_factory=Cosine)

    def __post_init__(self) -> None:
        check_size("dimension", self.dimension)


@dataclass(frozen=True)
class Batch:
    """Pairs as the encoders read them.

    Attributes:
        rows: (n, ...) of the images.
        tokens: (n, longest) token numbers.
        lengths: (n,) of the captions.
    """

    rows: Tensor
    tokens: Tensor
    lengths: Tensor


class JointEmbedding(TrainableEncoder):
    """f(image) and g(caption) in one space (VSE++, Faghri et al. 2018, Eq. 1-2).

    Attributes:
        provenance: Facts about data, training and results that were saved with it.

    >>> image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    >>> model = JointEmbedding.create(VSEConfig(image=image, dimension=8), ["a dog", "a cat"])
    >>> model.encode_text(["a cat", "two dogs"]).shape
    (2, 8)
    """

    kind: ClassVar[str] = "vse"
    config_type: ClassVar[type[ModelConfig]] = VSEConfig

    def __init__(self, config: VSEConfig, backbone: Backbone | FeatureInput, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.provenance: dict[str, Any] = {}
        self.image_projection = nn.Linear(backbone.features, config.dimension)
        nn.init.xavier_uniform_(self.image_projection.weight)
        nn.init.zeros_(self.image_projection.bias)
        self.text_encoder = GRUEncoder(tokenizer.get_vocab_size(), config.text.word_dimension, config.dimension)
        if self._frozen:
            self.backbone.requires_grad_(False)

    @classmethod
    def create(cls, config: VSEConfig, captions: Sequence[str], features: FeatureRows | None = None) -> Self:
        """A new model whose vocabulary comes from ``captions`` (those of the training split).

        Where the collection has rows of features instead of pictures, they stand in for the backbone.

        Raises:
            UserError: If the backbone or its weights cannot be had, or the data have no features where the
                configuration wants them.
        """
        if features is not None and isinstance(config.image, ImageConfig):
            config = replace(config, image=FeatureConfig(l2_normalise=config.image.l2_normalise))
        if isinstance(config.image, FeatureConfig):
            width = config.image.width or (features.shape[-1] if features is not None else None)
            if width is None:
                raise UserError(
                    "model.image.kind is features, but the data have picture files and no rows of features; set"
                    " model.image to a backbone"
                )
            config = replace(config, image=replace(config.image, width=width))
            side: Backbone | FeatureInput = FeatureInput(width)
        else:
            side = load_backbone(config.image)
        return cls(config, side, learn_vocabulary(captions, config.text.min_count))

    @classmethod
    def restore(cls, config: VSEConfig, folder: ModelFolder) -> Self:
        """See :meth:`SavedModel.restore <rungwise.models.saving.SavedModel.restore>`."""
        if isinstance(config.image, FeatureConfig):
            if config.image.width is None:
                raise UserError(f"{folder.path}: model.image.width is missing in config.json; copy the folder anew")
            side: Backbone | FeatureInput = FeatureInput(config.image.width)
        else:
            where = str(folder.path / PREPROCESSING)
            preprocessing = from_plain(Preprocessing, folder.json(PREPROCESSING), where)
            try:
                side = Backbone(config.image, preprocessing)
            except UserError as error:
                raise UserError(f"{folder.path}: model.image: {error}") from None
        return cls(config, side, read_vocabulary(folder.text(TOKENIZER), str(folder.path / TOKENIZER)))

    def files(self) -> Mapping[str, str]:
        """Vocabulary and, for pictures, preprocessing."""
        texts = {TOKENIZER: self.tokenizer.to_str(pretty=True)}
        if isinstance(self.backbone, Backbone):
            texts[PREPROCESSING] = json.dumps(asdict(self.backbone.preprocessing), indent=2)
        return texts

    @property
    def dimension(self) -> int:
        """Width of the joint space."""
        return int(self.config.dimension)

    @property
    def similarity(self) -> Similarity:
        """How vectors are compared."""
        value: Similarity = self.config.similarity
        return value

    @property
    def fingerprint(self) -> str:
        """Hash of weights, vocabulary, configuration and preprocessing: equal exactly for models that encode alike."""
        digest = hashlib.sha256(self.tokenizer.to_str().encode())
        digest.update(json.dumps(self._identity(), sort_keys=True).encode())
        add_tensors(digest, self.state_dict())
        return digest.hexdigest()

    def _identity(self) -> list[Any]:
        """What besides vocabulary and weights decides a vector, in the form that indexes made so far remember."""
        plain = {name: value for name, value in to_plain(self.config).items() if name != "kind"}
        # Where the weights came from and whether they were trained changes no vector.
        plain["image"] = {k: v for k, v in plain["image"].items() if k not in ("weights", "frozen")}
        if isinstance(self.config.image, ImageConfig):
            del plain["image"]["kind"]
        options = changed(self.similarity)
        plain["similarity"] = [self.similarity.kind, options] if options else self.similarity.kind
        side = self.backbone
        return [plain, asdict(side.preprocessing) if isinstance(side, Backbone) else {}]

    @property
    def _frozen(self) -> bool:
        return isinstance(self.config.image, FeatureConfig) or self.config.image.frozen

    def train(self, mode: bool = True) -> Self:
        """As in torch; a frozen backbone stays in evaluation mode, so that its batch statistics are frozen too."""
        super().train(mode)
        if self._frozen:
            self.backbone.eval()
        return self

    def embed_images(self, rows: Tensor) -> Tensor:
        """Rows of images to (n, dimension), prepared for the similarity.

        Args:
            rows: (n, features) float32 of a frozen backbone, (n, 3, size, size) uint8 pixels, or rows of features.
        """
        as_they_are = rows.dtype != torch.uint8 and isinstance(self.backbone, Backbone)
        features = (rows if as_they_are else self.backbone(rows)).float()
        if self.config.image.l2_normalise:
            features = F.normalize(features, dim=1)
        return self.similarity.images(self.image_projection(features).float())

    def embed_captions(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest) token numbers and (n,) lengths to (n, dimension), prepared for the similarity."""
        return self.similarity.texts(self.text_encoder(tokens, lengths).float())

    def read(
        self, data: ImageCaptions, images: Positions, *, cache: Path | None = None, progress: Progress | None = None
    ) -> Pairs:
        """Features or pixels of these images, and the tokens of their captions.

        Raises:
            UserError: If the collection has pictures where the model reads features, or the other way round.
        """
        rows = self._rows(pictures_at(data, images), cache, progress)
        return pair_up(data, images, rows, lambda texts: tokenise(self.tokenizer, texts))

    def batch(self, pairs: Pairs, chosen: Positions) -> Batch:
        """Rows, tokens and lengths of some pairs, on the model's device."""
        tokens, lengths = pad([pairs.texts[caption] for caption in chosen])
        rows = pairs.rows.take(pairs.image[chosen]).to(self.device)
        return Batch(rows, tokens.to(self.device), lengths)

    def embed(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(n, dimension) vectors of either side."""
        return self.embed_images(batch.rows), self.embed_captions(batch.tokens, batch.lengths)

    def scores_of(self, pairs: Pairs, autocast: Autocast = nullcontext) -> VectorScores:
        """Similarities of all images with all captions of some pairs."""
        with autocast():
            images = self.encode_rows(pairs.rows)
            texts = self.encode_tokens(pairs.texts)
        kept: NDArray[np.int64] = np.arange(len(pairs.rows))
        return VectorScores(pairs.collection, kept, pairs.rows.issues, images, texts, self.similarity)

    def encode_image(
        self,
        pictures: Pictures,
        *,
        progress: Progress | None = None,
        cache: Path | None = None,
        batch: int = 64,
    ) -> EncodedImages:
        """Vectors of picture files, of pictures in memory, or of rows of features.

        Features of files under a frozen backbone are cached, as in training.

        Args:
            pictures: Files, the bytes of files, or rows of features.
            progress: Called with the number of images done since the last call.
            cache: Folder of the feature cache; the default one if None.
            batch: Pictures a step.
        """
        if isinstance(pictures, FeatureRows) or (self._frozen and not any(isinstance(one, bytes) for one in pictures)):
            rows = self._rows(pictures, cache, progress, batch)
            return EncodedImages(self.encode_rows(rows), rows.kept, rows.issues)
        side = self._picture_side()
        vectors, kept, issues = [], [], []
        with self._inference():
            for part in prepared_batches(pictures, side.preprocessing, batch):
                if part.positions:
                    vectors.append(self.embed_images(part.pictures.to(self.device)).float().cpu().numpy())
                kept += part.positions
                issues += [issue for _, issue in part.issues]
                if progress:
                    progress(part.asked)
        stacked = np.concatenate(vectors) if vectors else np.zeros((0, self.dimension), np.float32)
        return EncodedImages(stacked, np.array(kept, dtype=np.int64), tuple(issues))

    def prepare_image(self, picture: Picture | bytes) -> Callable[[], EncodedImages]:
        """See :meth:`DualEncoder.prepare_image <rungwise.models.contracts.DualEncoder.prepare_image>`."""
        if not isinstance(picture, bytes):
            return super().prepare_image(picture)  # its features may be cached
        preprocessing = self._picture_side().preprocessing
        pixels = preprocessing.apply(load_picture(picture, shorter_side=preprocessing.resized_side))

        def encode() -> EncodedImages:
            with self._inference():
                vectors = self.embed_images(pixels[None].to(self.device)).float().cpu().numpy()
            return EncodedImages(vectors, np.arange(1))

        return encode

    def encode_text(self, texts: Sequence[str], *, batch: int = 256) -> NDArray[np.float32]:
        """(len(texts), dimension) float32 vectors of captions or queries."""
        return self.encode_tokens(tokenise(self.tokenizer, texts), batch=batch)

    def encode_rows(self, rows: Rows, batch: int = 256) -> NDArray[np.float32]:
        """(len(rows), dimension) vectors of images whose features or pixels are at hand."""
        vectors = np.zeros((len(rows), self.dimension), np.float32)
        with self._inference():
            for begin in range(0, len(rows), batch):
                chosen = np.arange(begin, min(begin + batch, len(rows)))
                vectors[chosen] = self.embed_images(rows.take(chosen).to(self.device)).float().cpu().numpy()
        return vectors

    def encode_tokens(self, tokens: Sequence[Sequence[int]], batch: int = 256) -> NDArray[np.float32]:
        """Vectors of tokenised captions, encoded shortest first so that batches hold little padding."""
        vectors = np.zeros((len(tokens), self.dimension), np.float32)
        order = np.argsort([len(one) for one in tokens], kind="stable")
        with self._inference():
            for begin in range(0, len(order), batch):
                chosen = order[begin : begin + batch]
                padded, lengths = pad([tokens[position] for position in chosen])
                vectors[chosen] = self.embed_captions(padded.to(self.device), lengths).float().cpu().numpy()
        return vectors

    def _rows(self, pictures: Pictures, cache: Path | None, progress: Progress | None, batch: int = 64) -> Rows:
        """Features from the cache under a frozen backbone, pixels under a trained one, or features as they are."""
        if isinstance(pictures, FeatureRows):
            if isinstance(self.backbone, Backbone):
                raise UserError(
                    "the data are rows of features, but the model reads pictures; train one with model.image.kind"
                    " features"
                )
            if progress:
                progress(len(pictures))
            return self.backbone.read(pictures)
        side, paths = self._picture_side(), [one for one in pictures if not isinstance(one, bytes)]
        if self._frozen:
            return feature_rows(side, paths, cache, batch=batch, progress=progress)
        return pixel_rows(side.preprocessing, paths, cache, batch=batch, progress=progress)

    def _picture_side(self) -> Backbone:
        if isinstance(self.backbone, FeatureInput):
            raise UserError(
                "the model was trained on rows of features and reads no pictures; give features of the same extractor"
            )
        return self.backbone

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Without gradients and with the statistics of training; the mode is put back afterwards."""
        training = self.training
        self.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.train(training)
