"""``rungwise relevance``."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import tyro

from rungwise.cli.terminal import console, progress_bar, say, say_issues
from rungwise.core.errors import UserError
from rungwise.core.files import explained, replacing
from rungwise.data.collection import ImageCaptions
from rungwise.data.readers import read
from rungwise.data.splits import with_splits
from rungwise.relevance import BiEncoder, CBoW, CIDEr, CIDErD, CrossEncoder, Degrees, Human, Labels, TfIdf
from rungwise.relevance import tokenisers as tok
from rungwise.relevance.base import CaptionPairSource, Direction, Reference
from rungwise.relevance.cascade import Below, Cascade, CascadeReport
from rungwise.relevance.cross_encoder import Scale
from rungwise.relevance.describe import describe, thresholds
from rungwise.relevance.rungs import render_rungs, rungs, rungs_page
from rungwise.relevance.storage import refuse_other

Source = Literal["cider-d", "cider", "tfidf", "cbow", "sentences", "cross-encoder", "cascade", "labels", "human"]
Coarse = Literal["tfidf", "cbow", "sentences"]

_TOKENISERS: dict[str, tok.Tokeniser] = {"ptb": tok.ptb, "whitespace": tok.whitespace, "unicode": tok.unicode_words}

_NAMED_SCALES: dict[str, Scale] = {"raw": "raw", "sigmoid": "sigmoid", "softmax": "softmax"}

_TEXTS = ("cider-d", "cider", "tfidf", "cbow", "sentences", "cross-encoder", "cascade")
_SAMPLED = (*_TEXTS, "labels")
_TAKEN_BY = {
    "show_rungs": _SAMPLED,
    "thresholds": _SAMPLED,
    "pairs": _SAMPLED,
    "tokenizer": ("cider-d", "cider", "tfidf", "cbow"),
    "reference": ("tfidf", "cbow", "sentences", "cross-encoder", "cascade"),
    "leave_one_out": _TEXTS,
    "vectors": ("cbow",),
    "model": ("sentences",),
    "pair_model": ("cross-encoder", "cascade"),
    "scale": ("cross-encoder", "cascade"),
    "coarse": ("cascade",),
    "coarse_threshold": ("cascade",),
    "below": ("cascade",),
    "cache": ("cascade",),
    "judgements": ("human",),
}
"""Sources that an option is for; what the coarse source of a cascade takes, the cascade takes."""

_GOES_WITH = {"top": "out", "direction": "top", "shares": "show_rungs", "examples": "show_rungs"}
"""Options that do nothing without another."""

_COARSE: Coarse = "sentences"
_SHARES = (0.001, 0.01, 0.1)
_EXAMPLES = 5
_MANY_PAIRS = 1_000_000
_FEW_PAIRS = 2000
"""Pairs that are looked at: few where each costs a run of a model."""

_QUIET_SECONDS = 5.0
"""Between two lines of progress."""


@dataclass
class RelevanceCommand:
    """How well every caption describes every picture: build degrees, look at them, choose rungs, save.

    Attributes:
        data: Folder or caption file.
        source: Where degrees come from: words in common (cider-d, cider, tfidf), word vectors (cbow), sentence
            embeddings (sentences), a model that reads pairs (cross-encoder), embeddings that choose the pairs for it
            (cascade), class labels (labels), people (human).
        split: The pictures to take; "all" takes every one.
        captions_only: Do not look for pictures at all.
        out: Folder to write the degrees to.
        top: Write only so many best candidates of each query.
        direction: Whose best candidates: captions for every picture (i2t, the default) or pictures for every caption
            (t2i).
        show_rungs: Write an HTML page with examples of each rung here, and print them.
        thresholds: Degrees that cut the rungs, falling.
        shares: Without thresholds: share of the candidates on each rung but the last; default 0.001 0.01 0.1.
        examples: Pairs to show on each rung; default 5.
        pairs: How many pairs to look at; default a million, or 2000 where every pair costs a run of a model.
        tokenizer: ptb for English (the default), unicode for any language, whitespace as the NCS program.
        reference: Which captions of a picture count, where captions are compared with captions: the most alike (max,
            the default), all (mean), or its first (paired).
        leave_one_out: A caption is no reference for itself.
        vectors: Word vectors of cbow: GloVe text, word2vec text or binary.
        model: Sentence model: a name on the hub or a folder; default the packaged one.
        pair_model: Model of cross-encoder and cascade: a name on the hub or a folder.
        scale: What its output means: raw, sigmoid, softmax, or LOW,HIGH such as 0,5.
        coarse: What chooses the pairs of cascade; default sentences.
        coarse_threshold: Coarse degree from which a pair is refined; default 0.8.
        below: What other pairs keep: 0 (zero, the default) or their coarse degree.
        cache: File of refined scores, where a second run finds them; default pair_scores in RUNGWISE_CACHE or the
            system's cache folder.
        judgements: File of human: CSV of image, caption, grade (CxC's too), Flickr8K's judgements under any name, or
            ECCV Caption's two JSON files, image-to-caption first.
    """

    data: tyro.conf.Positional[Path]
    source: Source = "cider-d"
    split: str = "all"
    captions_only: bool = False
    out: Path | None = None
    top: int | None = None
    direction: Direction | None = None
    show_rungs: Path | None = None
    thresholds: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    examples: int | None = None
    pairs: int | None = None
    tokenizer: Literal["ptb", "whitespace", "unicode"] | None = None
    reference: Reference | None = None
    leave_one_out: bool = False
    vectors: Path | None = None
    model: str | None = None
    pair_model: str | None = None
    scale: str | None = None
    coarse: Coarse | None = None
    coarse_threshold: float | None = None
    below: Below | None = None
    cache: Path | None = None
    judgements: tuple[Path, ...] = ()


def main(arguments: list[str]) -> int:
    """Build, save, describe, show."""
    asked = tyro.cli(RelevanceCommand, args=arguments, prog="rungwise relevance")
    _check_options(asked)
    _check_places(asked)
    data = read(asked.data, captions_only=asked.captions_only)
    say_issues(data.issues)
    if asked.split != "all":
        data = with_splits(data).split(asked.split)
    if not data.captions:
        raise UserError(f"{data.name}: there are no captions; relevance needs some")
    source = _built(asked, data)
    if asked.out is not None:
        source.save(asked.out, k=asked.top, direction=asked.direction or "i2t")
        say(f"written: {asked.out} ({source.shape[0]} images x {source.shape[1]} captions)")
        say(f"content hash: {source.content_hash()}")
    if isinstance(source, Human):
        _say_judgements(source)
    else:
        _look(asked, source, data)
    if isinstance(source, Cascade):
        say(str(source.report))
    return 0


def _check_options(asked: RelevanceCommand) -> None:
    """Refuse options that would do nothing, and numbers that mean nothing."""
    given = {one.name for one in fields(asked) if getattr(asked, one.name) != one.default}
    parts, named = {asked.source}, f"--source {asked.source}"
    if asked.source == "cascade":
        coarse = asked.coarse or _COARSE
        parts, named = {asked.source, coarse}, f"{named} --coarse {coarse}"
    for name, sources in _TAKEN_BY.items():
        if name in given and parts.isdisjoint(sources):
            raise UserError(f"{_flag(name)} does nothing with {named}; it goes with {', '.join(sources)}")
    for name, other in _GOES_WITH.items():
        if name in given and other not in given:
            raise UserError(f"{_flag(name)} does nothing without {_flag(other)}; give both or neither")
    if asked.shares and asked.thresholds:
        raise UserError("--shares does nothing beside --thresholds; give one of them")
    for name in ("top", "examples", "pairs"):
        if name in given and getattr(asked, name) < 1:
            raise UserError(f"{_flag(name)} must be at least 1, got {getattr(asked, name)}")
    if not all(high > low for high, low in pairwise((math.inf, *asked.thresholds, -math.inf))):
        raise UserError(f"--thresholds must be numbers that fall, got {_spaced(asked.thresholds)}")
    if not (all(share > 0 for share in asked.shares) and sum(asked.shares) < 1):
        raise UserError(f"--shares must be positive and add up to less than 1, got {_spaced(asked.shares)}")


def _check_places(asked: RelevanceCommand) -> None:
    """Refuse now what could not be written after hours of work."""
    for path in (asked.out, asked.show_rungs, asked.cache):
        if path is not None:
            with explained(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=path.parent).close()
    for path in (asked.show_rungs, asked.cache):
        if path is not None and path.is_dir():
            raise UserError(f"{path}: a folder stands here; name a file")
    if asked.out is not None:
        refuse_other(asked.out)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _spaced(numbers: tuple[float, ...]) -> str:
    return " ".join(f"{number:.4g}" for number in numbers)


def _built(asked: RelevanceCommand, data: ImageCaptions) -> Degrees:
    captions, owners = data.captions, data.image_of_caption
    match asked.source:
        case "cider-d":
            return CIDErD(captions, owners, **_of_words(asked, data))
        case "cider":
            return CIDEr(captions, owners, **_of_words(asked, data))
        case "tfidf" | "cbow" | "sentences":
            return _pairwise(asked.source, asked, data)
        case "cross-encoder":
            return _cross_encoder(asked, data)
        case "cascade":
            return _cascade(asked, data)
        case "labels":
            if not data.labels:
                raise UserError(f"{data.name}: has no class labels; give a table with a column 'label' or 'labels'")
            return Labels(data.labels, owners)
        case "human":
            return _human(asked.judgements, data)


def _of_captions(asked: RelevanceCommand, data: ImageCaptions) -> dict[str, Any]:
    """What the sources of captions have in common."""
    return _asked_for(reference=asked.reference, leave_one_out=asked.leave_one_out) | {"images": len(data)}


def _of_words(asked: RelevanceCommand, data: ImageCaptions) -> dict[str, Any]:
    """What the sources of words have in common."""
    tokenizer = None if asked.tokenizer is None else _TOKENISERS[asked.tokenizer]
    return _of_captions(asked, data) | _asked_for(tokenizer=tokenizer)


def _asked_for(**options: Any) -> dict[str, Any]:
    """Without the options that were left to the source's own defaults."""
    return {name: value for name, value in options.items() if value is not None}


def _pairwise(name: Coarse, asked: RelevanceCommand, data: ImageCaptions) -> CaptionPairSource:
    captions, owners = data.captions, data.image_of_caption
    if name == "tfidf":
        return TfIdf(captions, owners, **_of_words(asked, data))
    if name == "cbow":
        if asked.vectors is None:
            raise UserError("cbow needs word vectors; give --vectors FILE, such as glove.6B.300d.txt")
        words = CBoW(captions, owners, asked.vectors, **_of_words(asked, data))
        unknown = ", ".join(list(words.unknown_words)[:5])
        say(f"cbow: {words.unknown_share:.1%} of the words have no vector{f', such as {unknown}' if unknown else ''}")
        return words
    with progress_bar("captions", len(set(captions))) as advance:
        options = _of_captions(asked, data) | _asked_for(model=asked.model)
        sentences = BiEncoder(captions, owners, **options, progress=advance)
        encoded = sentences.vectors
    say(f"sentences: {len(encoded):,} captions, vectors of {encoded.shape[1]}")
    return sentences


def _cross_encoder(asked: RelevanceCommand, data: ImageCaptions) -> CrossEncoder:
    if asked.pair_model is None or asked.scale is None:
        raise UserError(
            f"{asked.source} needs --pair-model NAME and --scale, which says what its output means: raw, sigmoid,"
            " softmax, or LOW,HIGH such as 0,5"
        )
    progress = _pairs_progress() if asked.source == "cross-encoder" else None
    return CrossEncoder(
        data.captions, data.image_of_caption, asked.pair_model,
        scale=_scale(asked.scale), progress=progress, **_of_captions(asked, data),
    )  # fmt: skip


def _cascade(asked: RelevanceCommand, data: ImageCaptions) -> Cascade:
    fine = _cross_encoder(asked, data)
    from rungwise.core.cache_folder import default_cache  # brings torch along, which by now is there

    cache = asked.cache or default_cache() / "pair_scores"
    say(f"refined scores: {cache}")
    # The coarse source knows how many images there are.
    options = _asked_for(
        threshold=asked.coarse_threshold,
        below=asked.below,
        reference=asked.reference,
        leave_one_out=asked.leave_one_out,
    )
    coarse = _pairwise(asked.coarse or _COARSE, asked, data)
    return Cascade(coarse, fine, cache=cache, progress=_cascade_progress(), **options)


def _scale(text: str) -> Scale:
    if text in _NAMED_SCALES:
        return _NAMED_SCALES[text]
    try:
        low, high = map(float, text.split(","))
    except ValueError as error:
        raise UserError(f"--scale must be raw, sigmoid, softmax or LOW,HIGH such as 0,5, got {text!r}") from error
    return low, high


def _human(files: tuple[Path, ...], data: ImageCaptions) -> Human:
    match files:
        case (file,):
            return Human.read(file, data)
        case (by_image, by_caption):
            return Human.eccv(by_image, by_caption, data)
    raise UserError("human needs --judgements: a CSV, Flickr8K's judgements, or ECCV Caption's two JSON files")


def _cascade_progress() -> Callable[[CascadeReport], None]:
    now_and_then = _Seldom()
    return lambda report: now_and_then(f"{report}; {report.pending} to go in this block")


def _pairs_progress() -> Callable[[int], None]:
    now_and_then, began, done = _Seldom(), time.monotonic(), 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        now_and_then(f"{done:,} pairs scored, {done / (time.monotonic() - began):.1f} pairs/s")

    return count


class _Seldom:
    """Says a line if the last one is some seconds old."""

    def __init__(self) -> None:
        self._latest = time.monotonic()

    def __call__(self, line: str) -> None:
        if time.monotonic() - self._latest > _QUIET_SECONDS:
            self._latest = time.monotonic()
            say(line)


def _say_judgements(human: Human) -> None:
    """Count them: a sample of all pairs would hold hardly any that people judged."""
    say_issues(human.issues)
    own = human.own
    say(f"human: {len(own):,} pairs judged, {int(own.sum()):,} of them written for each other")
    for what, grades in (("written for each other", human.grades[own]), ("others", human.grades[~own])):
        if len(grades):
            say(f"{what}: mean {grades.mean():.3f}, from {grades.min():.3g} to {grades.max():.3g}")


def _look(asked: RelevanceCommand, source: Degrees, data: ImageCaptions) -> None:
    """Print what the degrees look like; the rungs with examples, if they are asked for."""
    if len(data) < 2:
        raise UserError(
            f"{asked.data}: all captions of its one picture were written for it, so there are no degrees to look at;"
            " give two pictures or more"
        )
    pairs = asked.pairs or (_FEW_PAIRS if isinstance(source, CrossEncoder) else _MANY_PAIRS)
    cuts, shares = asked.thresholds, asked.shares or _SHARES
    if asked.show_rungs is not None and not cuts:
        try:
            cuts = thresholds(source, shares, pairs=pairs)
        except UserError as error:
            raise UserError(f"--shares {_spaced(shares)}: {error}, or give --thresholds") from error
    say(str(describe(source, at=cuts, pairs=pairs, name=asked.source)))
    if asked.show_rungs is None:
        return
    found = rungs(source, cuts, examples=asked.examples or _EXAMPLES, pairs=pairs)
    console.print(render_rungs(found, data))
    page = rungs_page(found, data, f"Rungs of {asked.source} on {data.name}")
    with replacing(asked.show_rungs) as draft:
        draft.write_text(page, encoding="utf-8")
    say(f"thresholds: {_spaced(cuts)}")
    if not asked.thresholds:
        reached = ", ".join(f"{rung.share:.3%}" for rung in found[:-1])
        say(f"shares: {', '.join(f'{share:.3%}' for share in shares)} asked; {reached} reached")
    say(f"rungs: {asked.show_rungs}")
