"""All sources by name, and those that are made of others.

They stand together because the one needs the other: a part of a source may be a source of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator

from rungwise.core import UserError, from_plain, parse_yaml, require, user_path, yaml_line
from rungwise.core.disk import usable_cache
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.text import idle_beside, idle_where, idle_without
from rungwise.data import ImageCaptions
from rungwise.parts import Registry, concrete_below
from rungwise.relevance._base import Degrees
from rungwise.relevance._captions import CaptionPairSource
from rungwise.relevance.combine import Below, CascadeReport
from rungwise.relevance.combine import Kind as Regression
from rungwise.relevance.config._base import Building, CaptionPairsConfig, SourceConfig, training_images
from rungwise.relevance.config._given import HumanConfig, LabelsConfig
from rungwise.relevance.config._models import BiEncoderConfig, CrossEncoderConfig, PairModelConfig, SourceModelConfig
from rungwise.relevance.config._scene_graphs import SpiceConfig
from rungwise.relevance.config._words import CBoWConfig, CIDErConfig, CIDErDConfig, TfIdfConfig
from rungwise.relevance.embedding import NEIGHBOURS, Lending
from rungwise.relevance.precomputed import load

if TYPE_CHECKING:
    from rungwise.relevance.combine import Combined
    from rungwise.relevance.human import HumanJudgements


def _flow(value: Any) -> Any:
    """A source with options from YAML, as the command line writes it."""
    return yaml_line(dict(value)) if isinstance(value, Mapping) else value


Part = Annotated[str, BeforeValidator(_flow)]
"""A source that another one is made of, as :func:`degrees_of` takes it; YAML may give a mapping."""


@dataclass(frozen=True)
class CascadeConfig(PairModelConfig):
    """A fast source chooses the pairs for a cross-encoder.

    Attributes:
        coarse: What chooses the pairs: bi-encoder, tfidf, cbow, or one of them with options in braces, such as
            "{kind: cbow, vectors: glove.txt}".
        threshold: Coarse degree from which the model is asked.
        below: What other pairs keep: 0 (zero) or their coarse degree (coarse).
        cache: File of scores, where a second run finds them; default: pair_scores in RUNGWISE_CACHE or the system's
            cache folder.
    """

    kind: Literal["cascade"] = field(default="cascade", init=False)
    coarse: Part = "bi-encoder"
    threshold: float = 0.8
    below: Below = "zero"
    cache: Path | None = field(default=None, metadata=WRITTEN_FILE)

    IDLE = (
        idle_where(
            "model scale symmetric batch_size cache",
            lambda asked: asked.threshold > 1 and source_config(asked.coarse).kind in KINDS,  # which give cosines
            "with a {threshold} above 1, which no coarse degree reaches",
            "give a lower {threshold}",
        ),
    )

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.combine import Cascade

        coarse = source_config(self.coarse, f"cascade: {building.option('coarse')}")
        if not isinstance(coarse, CaptionPairsConfig):
            raise UserError(f"cascade: {coarse.kind} cannot choose pairs of captions; take bi-encoder, tfidf or cbow")
        if isinstance(coarse, SourceModelConfig) and coarse.device is None:
            coarse = replace(coarse, device=self.device)
        # Which captions are references matters in the cascade alone; the coarse source is known by it all the same.
        coarse = replace(coarse, reference=self.reference, leave_one_out=self.leave_one_out)
        cache = (self.cache or usable_cache() / "pair_scores").expanduser()
        building.say(f"cascade: scores of pairs are kept in {cache}")

        def progress(report: CascadeReport) -> None:
            building.progress(f"{report}; {report.pending} to go in this block")

        built = coarse.build(data, building=replace(building, option=str))
        assert isinstance(built, CaptionPairSource)
        return Cascade(
            built,
            self.cross_encoder(data, building),
            threshold=self.threshold,
            below=self.below,
            cache=cache,
            reference=self.reference,
            leave_one_out=self.leave_one_out,
            progress=progress,
        )


@dataclass(frozen=True)
class VisualConfig(SourceConfig):
    """Pictures that look alike share their captions.

    Attributes:
        vectors: File of one vector a picture, of any encoder, in the order of the pictures, or such a file with ids as
            "rungwise relevance model-scores --vectors" writes. Default: the vectors that the data have for pictures.
        model: Fingerprint of the model that made the vectors, where the file does not say it: that model is then not
            judged by these degrees.
        through: Degrees by which pictures lend captions. A source or folder; the nearest pictures lend. Default: none,
            pictures alone are compared.
        neighbours: How many pictures lend, the picture itself included (default 10); with through.
        lending: The best that one of them lends (max, the default), or the mean of all; with through.
    """

    kind: Literal["visual"] = field(default="visual", init=False)
    vectors: Path | None = None
    model: str | None = None
    through: Part | None = None
    neighbours: int | None = None
    lending: Lending | None = None

    IDLE = (
        idle_without("neighbours lending", "through"),
        idle_where(
            "lending",
            lambda asked: asked.neighbours == 1,
            "with {neighbours} 1, where each picture has its own captions alone",
        ),
    )

    @property
    def pairs_are_costly(self) -> bool:
        """Whether the source that it lends by runs a model for every pair."""
        return self.through is not None and names_source(self.through) and source_config(self.through).pairs_are_costly

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.embedding import Visual, read_picture_vectors

        if self.neighbours is not None and self.neighbours < 1:
            raise UserError(f"visual: {building.option('neighbours')} must be at least 1, got {self.neighbours}")
        model = self.model or ""
        if model and Path(model).expanduser().exists():
            raise UserError(
                f"visual: {building.option('model')} is a fingerprint, as results have it in model_hash, and {model} is"
                " a file or folder; write its vectors with 'rungwise relevance model-scores --vectors', which names it"
            )
        if self.vectors is not None:
            read = read_picture_vectors(self.vectors)
            vectors = read.of(data, building.whole or data, self.vectors)
            if read.model and not read.model.startswith(model):
                raise UserError(
                    f"visual: {self.vectors} holds vectors of model {read.model[:16]}, not of {model[:16]}; leave"
                    f" {building.option('model')} out"
                )
            model = read.model or model
        elif data.features is not None:
            vectors = data.features[:]
        else:
            raise UserError(
                f"visual needs {building.option('vectors')}: one vector a picture, which {data.name} does not hold;"
                " 'rungwise relevance model-scores DATA --model MODEL --vectors FILE.npz' makes them"
            )
        within = replace(building, option=str)
        where = f"visual: {building.option('through')}"
        through = None if self.through is None else degrees_of(self.through, data, building=within, where=where)
        whose = f"model {model[:16]}" if model else "a model that nobody named"
        building.say(f"visual: vectors of {whose}; these degrees are its opinion")
        return Visual(
            vectors,
            data.image_of_caption,
            through=through,
            neighbours=self.neighbours or NEIGHBOURS,
            lending=self.lending or "max",
            model=model,
            captions=data.captions,
        )


@dataclass(frozen=True)
class CombineConfig(SourceConfig):
    """Several sources or saved folders in one.

    Attributes:
        of: Names of sources, or folders of saved degrees. A source may have options, in braces:
            "{kind: tfidf, tokenizer: unicode}".
        how: A weighted sum, the average (mean), or the highest degree (max).
        weights: What each counts in the weighted sum; default: 1 each.
        unit_interval: Bring each to 0..1 first: the lowest degree of a sample becomes 0, the highest 1.
        fit: Learn from people's judgements how to combine them, instead: a file as "human" reads it. Degrees are then
            grades.
        regression: One curve of the weighted sum (isotonic, the default), or a curve of each (monotone); with fit.
        keep_fit: Write what was learned to this file, as JSON; with fit.
        fitted: Combine them as such a file says. They must be the same sources with the same options.
    """

    NEEDS: ClassVar[Mapping[str, str]] = {"of": "folders of saved degrees, or names of sources"}
    kind: Literal["combine"] = field(default="combine", init=False)
    of: tuple[Part, ...] = ()
    how: Literal["sum", "mean", "max"] = "sum"
    weights: tuple[float, ...] = ()
    unit_interval: bool = False
    fit: Path | None = None
    regression: Regression | None = None
    keep_fit: Path | None = field(default=None, metadata=WRITTEN_FILE)
    fitted: Path | None = None

    IDLE = (
        idle_without("regression keep_fit", "fit"),
        idle_beside("how weights unit_interval", "fit", "fitted"),
        idle_where(
            "weights", lambda asked: asked.how != "sum", "with {how} mean or max", "leave it out, or take {how} sum"
        ),
        idle_where(
            "how", lambda asked: len(asked.of) == 1, "with one source alone", "leave it out, or name more: {of}"
        ),
    )

    @property
    def pairs_are_costly(self) -> bool:
        """Whether one of the sources runs a model for every pair."""
        return any(source_config(part).pairs_are_costly for part in self.of if names_source(part))

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.combine import Combined, Maximum, WeightedSum, mean, read_fit, to_unit_interval

        if self.fit is not None and self.fitted is not None:
            ways = building.option("fit"), building.option("fitted")
            raise UserError(f"combine: {ways[0]} learns what {ways[1]} gives; give one of them")
        if self.weights and len(self.weights) != len(self.of):
            raise UserError(f"combine: {len(self.weights)} weights for {len(self.of)} sources; give one each")
        where = f"combine: {building.option('of')}"
        # Options of a part are written in braces, by their names.
        within = replace(building, option=str)
        # Read before the sources are made, which can take hours.
        if self.fit is not None:
            require("scipy", "combine: fit")  # before the sources take their time
        learned = None if self.fitted is None else read_fit(user_path(self.fitted))
        people = None if self.fit is None else self._people(user_path(self.fit), data, building)
        sources = [degrees_of(part, data, building=within, where=where) for part in self.of]
        if learned is not None:
            return self._told(Combined(sources, learned), building)
        if people is not None:
            return self._told(Combined(sources).fit(people, kind=self.regression or "isotonic"), building)
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

    def _people(self, path: Path, data: ImageCaptions, building: Building) -> HumanJudgements:
        from rungwise.relevance.human import HumanJudgements

        people = HumanJudgements.read(path, data)
        if people.issues:
            building.say(f"combine: {len(people.issues):,} judgements in {self.fit} are of no pair of {data.name}")
        return people

    def _told(self, combined: Combined, building: Building) -> Combined:
        """Report what was learned, write it where that is asked for, and return the combination."""
        from rungwise.relevance.combine import write_fit

        assert combined.fitted is not None, "it was learned or read"
        building.say(f"combine: {replace(combined.fitted, names=self.of)}")
        if self.keep_fit is not None:
            write_fit(combined.fitted, user_path(self.keep_fit))
            building.say(f"combine: written: {self.keep_fit}")
        return combined


CONFIGS: tuple[type[SourceConfig], ...] = (
    CIDErDConfig,
    CIDErConfig,
    TfIdfConfig,
    CBoWConfig,
    SpiceConfig,
    BiEncoderConfig,
    CrossEncoderConfig,
    CascadeConfig,
    LabelsConfig,
    HumanConfig,
    VisualConfig,
    CombineConfig,
)
"""Every source, in the order of their list on the command line."""

KINDS: dict[str, type[SourceConfig]] = {config.kind: config for config in CONFIGS}
"""Configurations of our own sources by name."""

SOURCES: Registry[SourceConfig] = Registry(
    "relevance",
    "source",
    lambda: (*CONFIGS, *(one for one in concrete_below(SourceConfig) if one not in CONFIGS)),
    lambda config: config.kind,
)
"""Configurations of sources by name: ours, those of imported modules, and those that installed packages offer."""


def source_config(value: str | Mapping[str, Any] | SourceConfig, where: str = "relevance") -> SourceConfig:
    """The configuration of a source from its name, or from a mapping with its ``kind`` and options.

    Args:
        value: Name or options of a source, such as ``"tfidf"``, ``{"kind": "tfidf", "tokenizer": "unicode"}``, or that
            mapping as a text in braces.
        where: Place that an error names.

    >>> source_config("bi-encoder").kind
    'bi-encoder'
    >>> source_config("{kind: tfidf, orders: 2}").orders
    2
    >>> source_config("bleu")
    Traceback (most recent call last):
    rungwise.core.UserError: relevance: there is no source 'bleu'; there are cider-d, cider, tfidf, cbow, spice, ...
    """
    if isinstance(value, SourceConfig):
        return value
    if isinstance(value, str):
        value = _in_braces(value, where) or {"kind": value}
    if not isinstance(value, Mapping):
        raise UserError(f"{where}: give the name of a source or a mapping with its kind, got {type(value).__name__}")
    options = dict(value)
    kind = options.pop("kind", None)
    if kind is None:
        raise UserError(f"{where}: the mapping has no kind; there are {', '.join(SOURCES.names())}")
    try:
        found = SOURCES.named(str(kind))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return from_plain(found, options, where)


AnySource = Annotated[SourceConfig, BeforeValidator(source_config)]
"""A field of a configuration that holds a source; YAML may give a name or a mapping."""

AnySourceOrNone = Annotated[
    SourceConfig | None, BeforeValidator(lambda value: None if value is None else source_config(value))
]
"""A field of a configuration that holds a source or None."""


def degrees_of(
    value: str | Mapping[str, Any] | SourceConfig,
    data: ImageCaptions,
    *,
    building: Building | None = None,
    where: str = "relevance",
) -> Degrees:
    """Degrees of a collection: built by a source, or saved in a folder.

    Args:
        value: What :func:`source_config` takes, or the path of a folder that
            :meth:`rungwise.relevance.Degrees.save` made; a folder that has the name of a source is ``./name``.
        data: The collection, which the degrees must belong to.
        building: Settings and callbacks for building a source.
        where: Place that an error names.

    Raises:
        UserError: For the reasons of :func:`source_config` and ``build``; or if there is no such folder, or its degrees
            are of other data.
    """
    if not isinstance(value, str) or names_source(value):
        return source_config(value, where).build(data, building=building)
    if not Path(value).expanduser().exists():
        raise UserError(
            f"{where}: {value!r} is neither a folder of saved degrees nor a source; sources are"
            f" {', '.join(SOURCES.names())}"
        )
    stored = load(Path(value).expanduser(), data=data)
    owners = stored.image_of_caption
    if stored.shape != (len(data), len(data.captions)) or (
        owners is not None and not np.array_equal(owners, data.image_of_caption)
    ):
        raise UserError(
            f"{value}: degrees of {stored.shape[0]} images and {stored.shape[1]} captions, but {data.name} has"
            f" {len(data)} and {len(data.captions)}, or in another order; save the degrees of these"
            " data and this split (--split)"
        )
    return stored


def names_source(text: str) -> bool:
    """Whether a text is the name of a source, or one with options in braces, and not a path."""
    return text.lstrip().startswith("{") or SOURCES.has(text)


def _in_braces(text: str, where: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = parse_yaml(text, where)
    except UserError as error:
        raise UserError(
            f"{where}: {text[:200]!r} is not YAML; write it as '{{kind: tfidf, tokenizer: unicode}}'"
        ) from error
    if not isinstance(found, dict):
        raise UserError(f"{where}: {text[:200]!r} is no mapping; write it as '{{kind: tfidf, tokenizer: unicode}}'")
    return found
