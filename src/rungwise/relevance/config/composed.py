"""Configurations of the sources that are made of other sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import BeforeValidator

from rungwise.core.cache_folder import default_cache
from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.relevance import config as configurations  # a circle: sources of any kind may be parts
from rungwise.relevance.base import CaptionPairSource, Degrees
from rungwise.relevance.cascade import Below, CascadeReport
from rungwise.relevance.config.base import Building, CaptionPairsConfig, SourceConfig, training_images
from rungwise.relevance.config.models import ModelConfig, PairModelConfig


def _flow(value: Any) -> Any:
    """A source with options from YAML, as the command line writes it."""
    if not isinstance(value, Mapping):
        return value
    return yaml.safe_dump(dict(value), default_flow_style=True, sort_keys=False, width=10**6).strip()


Part = Annotated[str, BeforeValidator(_flow)]
"""A source that another one is made of, as :func:`degrees_of` takes it; YAML may give a mapping."""


@dataclass(frozen=True)
class CascadeConfig(PairModelConfig):
    """A cheap source chooses the pairs for a cross-encoder.

    Attributes:
        coarse: What chooses the pairs: bi-encoder, tfidf, cbow, or one of them with options in braces, such as
            "{kind: cbow, vectors: glove.txt}".
        threshold: Coarse degree from which a pair is scored by the model.
        below: What other pairs keep: 0 (zero) or their coarse degree (coarse).
        cache: File of scores, where a second run finds them; default: pair_scores in RUNGWISE_CACHE or the system's
            cache folder.
    """

    kind: Literal["cascade"] = field(default="cascade", init=False)
    coarse: Part = "bi-encoder"
    threshold: float = 0.8
    below: Below = "zero"
    cache: Path | None = None

    def _built(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.cascade import Cascade

        coarse = configurations.source_config(self.coarse, "cascade: coarse")
        if not isinstance(coarse, CaptionPairsConfig):
            raise UserError(f"cascade: {coarse.kind} cannot choose pairs of captions; take bi-encoder, tfidf or cbow")
        if isinstance(coarse, ModelConfig) and coarse.device is None:
            coarse = replace(coarse, device=self.device)
        # Which captions are references matters in the cascade alone; the coarse source is known by it all the same.
        coarse = replace(coarse, reference=self.reference, leave_one_out=self.leave_one_out)
        cache = (self.cache or default_cache() / "pair_scores").expanduser()
        building.say(f"cascade: scores of pairs are kept in {cache}")

        def progress(report: CascadeReport) -> None:
            building.progress(f"{report}; {report.pending} to go in this block")

        built = coarse.build(data, building=building)
        assert isinstance(built, CaptionPairSource)
        return Cascade(
            built,
            self.cross_encoder(data, building, None),
            threshold=self.threshold,
            below=self.below,
            cache=cache,
            reference=self.reference,
            leave_one_out=self.leave_one_out,
            progress=progress,
        )


@dataclass(frozen=True)
class CombineConfig(SourceConfig):
    """Several sources or saved folders in one.

    Attributes:
        of: What is combined: folders of saved degrees, names of sources, or sources with options in braces, such as
            "{kind: tfidf, tokenizer: unicode}".
        how: Weighted sum (sum), average (mean), or the highest degree (max).
        weights: With sum: one for each; default: 1 each.
        unit_interval: Bring each to 0..1 first: the lowest degree of a sample becomes 0, the highest 1.
    """

    NEEDS: ClassVar[Mapping[str, str]] = {"of": "folders of saved degrees, or names of sources"}
    kind: Literal["combine"] = field(default="combine", init=False)
    of: tuple[Part, ...] = ()
    how: Literal["sum", "mean", "max"] = "sum"
    weights: tuple[float, ...] = ()
    unit_interval: bool = False

    @property
    def pairs_are_costly(self) -> bool:
        """One of the sources runs a model for every pair."""
        return any(
            configurations.source_config(part).pairs_are_costly for part in self.of if configurations.names_source(part)
        )

    def _built(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.combine import Maximum, WeightedSum, mean, to_unit_interval

        if self.weights and self.how != "sum":
            raise UserError(f"combine: weights do nothing with how={self.how}; leave them out, or take sum")
        if self.weights and len(self.weights) != len(self.of):
            raise UserError(f"combine: {len(self.weights)} weights for {len(self.of)} sources; give one each")
        sources = [configurations.degrees_of(part, data, building=building) for part in self.of]
        if self.unit_interval:
            training = training_images(data, building.train)
            lines = [to_unit_interval(source, images=training if len(training) else None) for source in sources]
            for part, line in zip(self.of, lines, strict=True):
                low, high = line.knots
                building.say(f"combine: {part}: {low:.4g} becomes 0, {high:.4g} becomes 1")
            sources = list(lines)
        match self.how:
            case "sum":
                return WeightedSum(sources, self.weights or [1.0] * len(sources))
            case "mean":
                return mean(sources)
            case "max":
                return Maximum(sources)
