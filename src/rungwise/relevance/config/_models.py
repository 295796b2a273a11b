"""Configurations of the sources that run a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from rungwise.core import Bounded, Size, UserError
from rungwise.core.compute import choose_device
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.data import ImageCaptions
from rungwise.language import said_scale
from rungwise.relevance._base import Degrees
from rungwise.relevance.config._base import Building, CaptionPairsConfig, Counter
from rungwise.relevance.config._cache import Recipe, files_hash
from rungwise.relevance.storage import CachedSource

if TYPE_CHECKING:
    from rungwise.relevance.embedding.cross_encoder import CrossEncoder, Scale

Precision = Literal["float32", "bfloat16"]

_SCALES: dict[str, Scale] = {"raw": "raw", "sigmoid": "sigmoid", "softmax": "softmax"}


@dataclass(frozen=True)
class SourceModelConfig(Bounded, CaptionPairsConfig):
    """What sources that run a model have in common.

    Attributes:
        device: Where the model runs, such as cpu or cuda; default: cuda where there is one.
        precision: bfloat16 is faster where the device has it, about twice.
    """

    device: str | None = None
    precision: Precision = "float32"

    def _device(self, building: Building) -> str:
        """The device that the model runs on, which the user is told."""
        device = choose_device(self.device)
        building.say(f"{self.kind}: the model runs on {device}")
        return device


@dataclass(frozen=True)
class BiEncoderConfig(SourceModelConfig):
    """Sentence embeddings.

    Attributes:
        model: A sentence model: a name on the hub or a folder; default: the packaged one.
        batch_size: Captions a pass.
    """

    IN_SHARDS: ClassVar[bool] = True
    kind: Literal["bi-encoder"] = field(default="bi-encoder", init=False)
    model: str | None = None
    batch_size: Size = 128

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.language import sentence_models
        from rungwise.relevance.embedding import Inference, bi_encoder

        distinct = len(set(data.captions))
        counted = Counter(building, f"of {distinct:,} captions encoded", distinct)
        source = bi_encoder.BiEncoder(
            data.captions,
            data.image_of_caption,
            self.model or sentence_models.PACKAGED_MODEL,
            inference=Inference(self.batch_size, self.precision, self._device(building), counted),
            **self.of_captions(data),
        )
        # At once, so that a model that fails does so here and not in the middle of what comes after.
        captions, width = source.vectors.shape
        building.say(f"bi-encoder: {captions:,} captions, vectors of {width}")
        return source

    def _recipe(self, data: ImageCaptions, building: Building) -> Recipe:
        from rungwise.language.sentence_models import PACKAGED_MODEL, sentence_folder
        from rungwise.relevance.precomputed import CachedVectors, kept_vectors

        def restore(kept: CachedSource) -> Degrees:
            return CachedVectors(kept, data.captions, data.image_of_caption, **self.of_captions(data))

        # The files say what the model is, so that vectors which are at hand need no model.
        files = files_hash(sentence_folder(self.model or PACKAGED_MODEL))
        return Recipe({"model": files, "precision": self.precision}, kept_vectors, restore)


def _written(scale: Any) -> Any:
    """A scale of two numbers in YAML, as the command line writes it."""
    return ",".join(map(str, scale)) if isinstance(scale, list | tuple) else scale


@dataclass(frozen=True)
class PairModelConfig(SourceModelConfig):
    """What sources with a cross-encoder have in common.

    Attributes:
        model: A sequence-classification model of pairs: a name on the hub or a folder.
        scale: What its output means: raw, sigmoid, softmax, or LOW,HIGH such as 0,5. A model that rungwise trained says
            it itself.
        symmetric: Read each pair in one order, whichever caption is the reference, which halves the work.
        batch_size: Pairs a pass.
    """

    NEEDS: ClassVar[Mapping[str, str]] = {
        "model": "a model of pairs, such as cross-encoder/stsb-roberta-base",
        "scale": "what the model's output means: raw, sigmoid, softmax, or LOW,HIGH such as 0,5",
    }
    model: str | None = None
    scale: Annotated[str | None, BeforeValidator(_written)] = None
    symmetric: bool = False
    batch_size: Size = 64

    def missing(self) -> dict[str, str]:
        """Options that must be given and were not; the scale is not missing where the model's folder says it."""
        missing = super().missing()
        if self.model is not None and "scale" in missing:
            if said_scale(self.model) is not None:
                del missing["scale"]
            elif not Path(self.model).expanduser().is_dir():
                missing["scale"] += f" ({self.model} is no folder here, which could say it)"
        return missing

    def cross_encoder(
        self,
        data: ImageCaptions,
        building: Building,
        progress: Callable[[int], None] | None = None,
        cache: Path | None = None,
    ) -> CrossEncoder:
        """The cross-encoder itself, which a cascade uses as its fine source."""
        from rungwise.relevance.embedding import PairInference, cross_encoder

        assert self.model is not None, "missing() says so before"
        return cross_encoder.CrossEncoder(
            data.captions,
            data.image_of_caption,
            self.model,
            scale=_scale(self.scale or said_scale(self.model) or "", building.option("scale")),
            symmetric=self.symmetric,
            inference=PairInference(self.batch_size, self.precision, self._device(building), progress, cache=cache),
            **self.of_captions(data),
        )


@dataclass(frozen=True)
class CrossEncoderConfig(PairModelConfig):
    """A model that reads pairs of captions.

    Attributes:
        cache: File of scores, where a second run finds them; default: none is kept, but in training pair_scores in the
            cache folder.
    """

    kind: Literal["cross-encoder"] = field(default="cross-encoder", init=False)
    cache: Path | None = field(default=None, metadata=WRITTEN_FILE)

    @property
    def pairs_are_costly(self) -> bool:
        """True: every pair of captions costs a run of the model."""
        return True

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        cache = self.cache
        if cache is None and building.cache is not None:
            cache = building.cache.parent / "pair_scores"
            building.say(f"cross-encoder: each pair is scored when it is asked for; scores are kept in {cache}")
        return self.cross_encoder(data, building, Counter(building, "pairs scored"), cache)


def _scale(text: str, option: str) -> Scale:
    if text in _SCALES:
        return _SCALES[text]
    try:
        low, high = map(float, text.split(","))
    except ValueError as error:
        raise UserError(f"{option} must be raw, sigmoid, softmax or LOW,HIGH such as 0,5, got {text!r}") from error
    return low, high
