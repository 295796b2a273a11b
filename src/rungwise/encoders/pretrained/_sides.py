"""The two sides of a published dual encoder: built from its checkpoint, restored from a saved model's description."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rungwise.core import ELSEWHERE, UserError, from_plain, identity
from rungwise.core.formats import digest_of_tensors
from rungwise.data.files import FeatureRows
from rungwise.encoders._precision import copied_in
from rungwise.encoders._preprocessing import Preprocessing
from rungwise.encoders._sides import (
    IMAGE_ENCODER,
    PREPROCESSING,
    TEXT_ENCODER,
    TOKENIZER,
    ImageSideConfig,
    PictureSide,
    SavedFiles,
    TextSide,
    TextSideConfig,
    require_words,
)
from rungwise.encoders.pretrained._halves import open_image, open_text
from rungwise.encoders.pretrained._patches import PatchPreprocessing
from rungwise.encoders.pretrained._towers import ImageHalf, ImageTower, TextHalf, TextTower
from rungwise.encoders.pretrained.open_clip import cleaner
from rungwise.encoders.untrusted import PretrainedTokenizer, TokenRules

_LIBRARIES: Mapping[str, str] = {
    "transformers": "rungwise.encoders.pretrained._transformers",
    "open_clip": "rungwise.encoders.pretrained.open_clip.towers",
}


@dataclass(frozen=True)
class PretrainedImageConfig(ImageSideConfig):
    """The image side of a published dual encoder.

    Attributes:
        kind: Name of the side.
        source: hf:, open_clip: or st:, and a folder or a name; see rungwise.models.load.
        frozen: Compute vectors once and cache them; otherwise the network is trained with the rest.
        l2_normalise: Normalise vectors before the head.
    """

    source: str = field(default="", metadata=ELSEWHERE)
    frozen: bool = field(default=True, metadata=ELSEWHERE)
    l2_normalise: bool = True
    kind: Literal["pretrained"] = "pretrained"

    def build(self) -> PretrainedImageSide:
        """The side with its weights.

        Raises:
            UserError: If the model cannot be loaded, is damaged, or has settings that are not allowed.
        """
        return PretrainedImageSide(open_image(self.source))

    def restore(self, files: SavedFiles) -> PretrainedImageSide:
        """The image side of a saved model, without its weights; ``source`` is not read."""
        where = str(files.path / IMAGE_ENCODER)
        said = files.json(IMAGE_ENCODER)
        tower = _library(said, where).image_tower(said["architecture"], said["settings"], where)
        known = files.json(PREPROCESSING)
        kind = PatchPreprocessing if "patch" in known else Preprocessing
        seen: Preprocessing = from_plain(kind, known, str(files.path / PREPROCESSING))
        return PretrainedImageSide(ImageHalf(tower, seen))


@dataclass(frozen=True)
class PretrainedTextConfig(TextSideConfig):
    """The text side of a published dual encoder.

    Attributes:
        kind: Name of the side.
        source: hf:, open_clip: or st:, and a folder or a name; see rungwise.models.load.
        frozen: Compute vectors once and cache them; otherwise the network is trained with the rest.
        l2_normalise: Normalise vectors before the head.
    """

    source: str = field(default="", metadata=ELSEWHERE)
    frozen: bool = field(default=True, metadata=ELSEWHERE)
    l2_normalise: bool = True
    kind: Literal["pretrained"] = "pretrained"

    def of(self, texts: Sequence[str] | FeatureRows) -> PretrainedTextConfig:
        """The configuration unchanged."""
        require_words(texts)
        return self

    def build(self, texts: Sequence[str] | FeatureRows, dimension: int) -> PretrainedTextSide:
        """The side with its weights; it depends neither on the texts nor on the joint space.

        Raises:
            UserError: If the model cannot be loaded, is damaged, or has settings that are not allowed.
        """
        return PretrainedTextSide(open_text(self.source), self.source)

    def restore(self, files: SavedFiles, dimension: int) -> PretrainedTextSide:
        """The text side of a saved model, without its weights; ``source`` is not read."""
        where = str(files.path / TEXT_ENCODER)
        said = files.json(TEXT_ENCODER)
        library = _library(said, where)
        tower = library.text_tower(said["architecture"], said["settings"], where)
        rules = from_plain(TokenRules, said.get("tokens"), f"{where}: tokens")
        text = files.text(TOKENIZER)
        return PretrainedTextSide(TextHalf(tower, text, rules, cleaner(rules.clean)), str(files.path / TOKENIZER))


class PretrainedImageSide(PictureSide):
    """The image tower of a published model as an image side."""

    def __init__(self, half: ImageHalf) -> None:
        super().__init__()
        self.network: ImageTower = half.tower
        self.features = half.tower.width
        self.preprocessing = half.preprocessing

    def forward(self, rows: Tensor) -> Tensor:
        """(n, features) float32 vectors of (n, 3, size, size) uint8 pictures."""
        return torch.as_tensor(self.network(self.preprocessing.normalise(rows))).float()

    def inference(self, half: bool) -> Callable[[Tensor], Tensor]:
        """A bfloat16 copy of the network if ``half``, which is a quarter faster than autocast."""
        if not half or isinstance(self.preprocessing, PatchPreprocessing):  # whose counts bfloat16 cannot hold
            return super().inference(half)
        network = copied_in(self.network, torch.bfloat16)  # a quarter faster than autocast
        return lambda rows: torch.as_tensor(network(self.preprocessing.normalise(rows).to(torch.bfloat16))).float()

    def identity(self) -> str:
        """The description of the network."""
        return self.network.description.text()

    def fingerprint(self) -> str:
        """Hash of the network with its weights, and of the preprocessing."""
        known = [self.identity(), identity(self.preprocessing)]
        return digest_of_tensors(self.network.state_dict(), json.dumps(known, sort_keys=True))

    def files(self) -> Mapping[str, str]:
        """Network and preprocessing, as JSON files."""
        return {
            IMAGE_ENCODER: self.network.description.text(),
            PREPROCESSING: json.dumps(asdict(self.preprocessing), indent=2),
        }


class PretrainedTextSide(TextSide):
    """The text tower of a published model as a text side, with the model's own tokenizer.

    Args:
        half: The text half of the model.
        where: Name of its tokenizer in errors.
    """

    def __init__(self, half: TextHalf, where: str) -> None:
        super().__init__()
        self.network: TextTower = half.tower
        self.width = half.tower.width
        self.tokenizer = PretrainedTokenizer(half.tokenizer, half.rules, where, half.tower.rows, half.clean)
        self.longest = half.rules.longest
        self.pad_number = half.rules.pad

    @property
    def rules(self) -> TokenRules:
        """How the model reads tokens."""
        return self.tokenizer.rules

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, cut to the context length, with the token that ends them."""
        return self.tokenizer.tokenise(texts)

    def too_long(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Positions of the texts that are cut, ascending."""
        return self.tokenizer.too_long(texts)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text with signs that the vocabulary lacks."""
        return self.tokenizer.unknown_words(text)

    @property
    def known_words(self) -> Collection[str]:
        """Whole words of the vocabulary."""
        return self.tokenizer.known_words

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, width) float32 vectors, from (n, longest) int64 tokens and (n,) lengths."""
        rules = self.rules
        if rules.padded:
            tokens = F.pad(tokens, (0, rules.longest - tokens.shape[1]), value=rules.pad)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        lengths = lengths.to(tokens.device)[:, None]
        if rules.side == "left":  # each row turns until its text stands at the end
            tokens = tokens.gather(1, (places + lengths) % tokens.shape[1])
        counts = places < lengths if rules.side == "right" else places >= tokens.shape[1] - lengths
        return torch.as_tensor(self.network(tokens, counts.long() if rules.masked else None)).float()

    def identity(self) -> str:
        """The description of the network, its tokenizer, and how this is used."""
        return json.dumps([self.network.description.text(), identity(self.rules), self.tokenizer.text])

    def fingerprint(self) -> str:
        """Hash of the network with its weights, and of the tokenizer."""
        return digest_of_tensors(self.network.state_dict(), self.identity())

    def files(self) -> Mapping[str, str]:
        """Network and tokenizer, as files."""
        return {
            TEXT_ENCODER: self.network.description.text(tokens=asdict(self.rules)),
            TOKENIZER: self.tokenizer.text,
        }


def _library(said: Mapping[str, Any], where: str) -> Any:
    """The module for the library that a description names."""
    for name in ("library", "architecture"):
        if not isinstance(said.get(name), str):
            raise UserError(f"{where}: {name}: expected a name; copy the folder anew")
    if not isinstance(said.get("settings"), dict):
        raise UserError(f"{where}: settings: expected a JSON object; copy the folder anew")
    if said["library"] not in _LIBRARIES:
        raise UserError(f"{where}: library {said['library'][:60]!r} is not one of {', '.join(_LIBRARIES)}")
    return importlib.import_module(_LIBRARIES[said["library"]])
