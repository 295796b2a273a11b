"""Joint image-text embedding: two encoders and a similarity that save, load and encode as one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from numpy.typing import NDArray
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

import rungwise
from rungwise.core.configuration import from_plain, to_plain
from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.data.collection import Issue
from rungwise.encoders.cache import ImageRows, feature_rows
from rungwise.encoders.image import Backbone, load_backbone, read_tensors
from rungwise.encoders.preprocessing import Preprocessing
from rungwise.encoders.reading import prepared_batches
from rungwise.encoders.text import GRUEncoder, learn_vocabulary, pad, tokenise
from rungwise.models.card import model_card
from rungwise.models.config import ModelConfig

FORMAT = 1


@dataclass(frozen=True)
class EncodedPictures:
    """Vectors of the pictures that could be read.

    Attributes:
        vectors: (kept, dimension) float32.
        kept: (kept,) position of each among the pictures asked for, ascending.
        issues: The others, with the reason.
    """

    vectors: NDArray[np.float32]
    kept: NDArray[np.int64]
    issues: tuple[Issue, ...]


class JointEmbedding(nn.Module):
    """f(image) and g(caption) in one space (VSE++, Faghri et al. 2018, Eq. 1-2).

    Attributes:
        provenance: Facts about data, training and results that were saved with it.

    >>> from rungwise.encoders.image import ImageConfig
    >>> image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    >>> model = JointEmbedding.create(ModelConfig(image, dimension=8), ["a dog", "a cat"])
    >>> model.encode_text(["a cat", "two dogs"]).shape
    (2, 8)
    """

    def __init__(self, config: ModelConfig, backbone: Backbone, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.provenance: dict[str, Any] = {}
        self.image_projection = nn.Linear(backbone.features, config.dimension)
        nn.init.xavier_uniform_(self.image_projection.weight)
        nn.init.zeros_(self.image_projection.bias)
        self.text_encoder = GRUEncoder(tokenizer.get_vocab_size(), config.text.word_dimension, config.dimension)
        if config.image.frozen:
            self.backbone.requires_grad_(False)

    @classmethod
    def create(cls, config: ModelConfig, captions: Sequence[str]) -> Self:
        """A new model whose vocabulary comes from ``captions`` (those of the training split).

        Raises:
            UserError: If the backbone or its weights cannot be had.
        """
        return cls(config, load_backbone(config.image), learn_vocabulary(captions, config.text.min_count))

    @property
    def dimension(self) -> int:
        """Width of the joint space."""
        return self.config.dimension

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.image_projection.weight.device

    @property
    def fingerprint(self) -> str:
        """Hash of weights, vocabulary, configuration and preprocessing: equal exactly for models that encode alike."""
        digest = hashlib.sha256(self.tokenizer.to_str().encode())
        plain = to_plain(self.config)
        # Where the weights came from and whether they were trained changes no vector.
        plain["image"] = {k: v for k, v in plain["image"].items() if k not in ("weights", "frozen")}
        digest.update(json.dumps([plain, asdict(self.backbone.preprocessing)], sort_keys=True).encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def train(self, mode: bool = True) -> Self:
        """As in torch; a frozen backbone stays in evaluation mode, so that its batch statistics are frozen too."""
        super().train(mode)
        if self.config.image.frozen:
            self.backbone.eval()
        return self

    def embed_images(self, rows: Tensor) -> Tensor:
        """What :class:`rungwise.encoders.cache.ImageRows` gives to (n, dimension).

        Args:
            rows: (n, features) float32 of a frozen backbone, or (n, 3, size, size) uint8 pixels.
        """
        features = (self.backbone(rows) if rows.dtype == torch.uint8 else rows).float()
        if self.config.image.l2_normalise:
            features = F.normalize(features, dim=1)
        vectors = self.image_projection(features).float()
        return F.normalize(vectors, dim=1) if self.config.similarity == "cosine" else vectors

    def embed_captions(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest) token numbers and (n,) lengths to (n, dimension), normalised."""
        return F.normalize(self.text_encoder(tokens, lengths).float(), dim=1)

    def encode_image(
        self,
        pictures: Sequence[Path | bytes],
        *,
        progress: Callable[[int], None] | None = None,
        cache: Path | None = None,
        batch: int = 64,
    ) -> EncodedPictures:
        """Vectors of picture files or of pictures in memory.

        Features of files under a frozen backbone are cached, as in training.

        Args:
            pictures: Files, or the bytes of files.
            progress: Called with the number of pictures done since the last call.
            cache: Folder of the feature cache; the default one if None.
            batch: Pictures a step.
        """
        paths = [picture for picture in pictures if isinstance(picture, Path)]
        if self.config.image.frozen and len(paths) == len(pictures):
            rows = feature_rows(self.backbone, paths, cache, batch=batch, progress=progress)
            return EncodedPictures(self.encode_rows(rows), rows.kept, rows.issues)
        vectors, kept, issues = [], [], []
        with self._inference():
            for part in prepared_batches(pictures, self.backbone.preprocessing, batch):
                if part.positions:
                    vectors.append(self.embed_images(part.pictures.to(self.device)).float().cpu().numpy())
                kept += part.positions
                issues += [issue for _, issue in part.issues]
                if progress:
                    progress(part.asked)
        stacked = np.concatenate(vectors) if vectors else np.zeros((0, self.dimension), np.float32)
        return EncodedPictures(stacked, np.array(kept, dtype=np.int64), tuple(issues))

    def encode_text(self, texts: Sequence[str], *, batch: int = 256) -> NDArray[np.float32]:
        """(len(texts), dimension) float32 vectors of captions or queries."""
        return self.encode_tokens(tokenise(self.tokenizer, texts), batch=batch)

    def encode_rows(self, rows: ImageRows, batch: int = 256) -> NDArray[np.float32]:
        """(len(rows), dimension) vectors of pictures whose features or pixels are at hand."""
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

    def similarity(self, image_vectors: NDArray[np.float32], text_vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """S: (images, captions) inner products of vectors that are normalised as the configuration says."""
        product: NDArray[np.float32] = np.asarray(image_vectors) @ np.asarray(text_vectors).T
        return product

    def save_pretrained(self, folder: Path | str, provenance: dict[str, Any] | None = None) -> None:
        """Write the model as a folder of safetensors and JSON, with a model card; each file is replaced atomically.

        Args:
            folder: Made if missing.
            provenance: What the card should say of data, training and results; kept when the model is loaded.
        """
        folder = Path(folder)
        if provenance is not None:
            self.provenance = provenance
        facts = {"format": FORMAT, "rungwise": rungwise.__version__, "model": to_plain(self.config)}
        if self.provenance:
            facts["provenance"] = self.provenance
        for name, text in (
            ("config.json", json.dumps(facts, indent=2)),
            ("preprocessing.json", json.dumps(asdict(self.backbone.preprocessing), indent=2)),
            ("tokenizer.json", self.tokenizer.to_str(pretty=True)),
            ("README.md", model_card(self.config, self.backbone.preprocessing, self.provenance)),
        ):
            with replacing(folder / name) as draft:
                draft.write_text(text, encoding="utf-8")
        with replacing(folder / "model.safetensors") as draft:
            save_file({name: tensor.contiguous() for name, tensor in self.state_dict().items()}, draft)

    @classmethod
    def from_pretrained(cls, source: Path | str) -> Self:
        """Read a model from a folder, or from a hub repository of that name.

        Raises:
            UserError: If files are missing or do not fit each other.
        """
        folder = _folder(source)
        facts = _read_json(folder / "config.json")
        if facts.get("format") != FORMAT:
            raise UserError(
                f"{folder / 'config.json'}: model format {facts.get('format')!r}, this version reads {FORMAT};"
                " use the rungwise version that wrote it"
            )
        config = from_plain(ModelConfig, facts.get("model"), str(folder / "config.json"))
        plain = _read_json(folder / "preprocessing.json")
        preprocessing = from_plain(Preprocessing, plain, str(folder / "preprocessing.json"))
        vocabulary = folder / "tokenizer.json"
        if not vocabulary.is_file():
            raise UserError(f"{vocabulary}: missing; a model folder needs its vocabulary")
        model = cls(config, Backbone(config.image, preprocessing), Tokenizer.from_file(str(vocabulary)))
        tensors = read_tensors(folder / "model.safetensors")
        wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        for name in sorted(wanted.keys() | found.keys()):
            if wanted.get(name) != found.get(name):
                raise UserError(
                    f"{folder / 'model.safetensors'}: {name}: {found.get(name, 'no such tensor')}, but config.json asks"
                    f" for {wanted.get(name, 'no such tensor')}; the files belong to different models"
                )
        model.load_state_dict(tensors)
        model.eval()
        model.provenance = facts.get("provenance", {})
        return model


def load(source: Path | str) -> JointEmbedding:
    """:meth:`JointEmbedding.from_pretrained`, as a function."""
    return JointEmbedding.from_pretrained(source)


def _folder(source: Path | str) -> Path:
    if Path(source).is_dir():
        if not (Path(source) / "config.json").is_file():
            raise UserError(
                f"{source}: no model here (config.json is missing); give the folder that training wrote, DIR/model"
            )
        return Path(source)
    try:
        return Path(snapshot_download(str(source)))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{source}: no such folder, and no model of that name could be fetched ({reason})") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: missing; the model folder is incomplete") from None
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected a JSON object")
    return values
