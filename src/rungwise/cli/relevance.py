"""``rungwise relevance``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from rungwise.cli.terminal import console, progress_bar, say, say_issues
from rungwise.data.collection import ImageCaptions
from rungwise.data.readers import read
from rungwise.data.splits import with_splits
from rungwise.errors import UserError
from rungwise.files import replacing
from rungwise.relevance import BiEncoder, CBoW, CIDEr, CIDErD, CrossEncoder, Degrees, Human, Labels, TfIdf
from rungwise.relevance import tokenisers as tok
from rungwise.relevance.base import CaptionPairSource, Direction, Reference
from rungwise.relevance.cascade import Below, Cascade, CascadeReport
from rungwise.relevance.cross_encoder import Scale
from rungwise.relevance.describe import describe, thresholds
from rungwise.relevance.rungs import render_rungs, rungs, rungs_page
from rungwise.relevance.sentences import PACKAGED_MODEL

Source = Literal["cider-d", "cider", "tfidf", "cbow", "sentences", "cross-encoder", "cascade", "labels", "human"]

_TOKENISERS: dict[str, tok.Tokeniser] = {"ptb": tok.ptb, "whitespace": tok.whitespace, "unicode": tok.unicode_words}

_NAMED_SCALES: dict[str, Scale] = {"raw": "raw", "sigmoid": "sigmoid", "softmax": "softmax"}

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
        direction: Whose best candidates: captions for every picture (i2t) or pictures for every caption (t2i).
        show_rungs: Write an HTML page with examples of each rung here, and print them.
        thresholds: Degrees that cut the rungs, falling.
        shares: Without thresholds: share of the candidates on each rung but the last.
        examples: Pairs to show on each rung.
        pairs: How many pairs to look at; default a million, or 2000 where every pair costs a run of a model.
        tokenizer: ptb for English, unicode for any language, whitespace as the NCS program.
        reference: Which captions of a picture count, where captions are compared with captions.
        leave_one_out: A caption is no reference for itself.
        vectors: Word vectors of cbow: GloVe text, word2vec text or binary.
        model: Sentence model: a name on the hub, a folder, or the packaged one.
        pair_model: Model of cross-encoder and cascade: a name on the hub or a folder.
        scale: What its output means: raw, sigmoid, softmax, or LOW,HIGH such as 0,5.
        coarse: What chooses the pairs of cascade.
        coarse_threshold: Coarse degree from which a pair is refined.
        below: What other pairs keep: 0 or their coarse degree.
        cache: File of refined scores; a second run reads them there.
        judgements: File of human: CSV of image, caption, grade (CxC's too), Flickr8K's judgements, or ECCV Caption's
            two JSON files, image-to-caption first.
    """

    data: tyro.conf.Positional[Path]
    source: Source = "cider-d"
    split: str = "all"
    captions_only: bool = False
    out: Path | None = None
    top: int | None = None
    direction: Direction = "i2t"
    show_rungs: Path | None = None
    thresholds: tuple[float, ...] = ()
    shares: tuple[float, ...] = (0.001, 0.01, 0.1)
    examples: int = 5
    pairs: int | None = None
    tokenizer: Literal["ptb", "whitespace", "unicode"] = "ptb"
    reference: Reference = "max"
    leave_one_out: bool = False
    vectors: Path | None = None
    model: str = PACKAGED_MODEL
    pair_model: str | None = None
    scale: str | None = None
    coarse: Literal["tfidf", "cbow", "sentences"] = "sentences"
    coarse_threshold: float = 0.8
    below: Below = "zero"
    cache: Path | None = None
    judgements: tuple[Path, ...] = ()


def main(arguments: list[str]) -> int:
    """Build, describe, show, save."""
    asked = tyro.cli(RelevanceCommand, args=arguments, prog="rungwise relevance")
    data = read(asked.data, captions_only=asked.captions_only)
    say_issues(data.issues)
    if asked.split != "all":
        data = with_splits(data).split(asked.split)
    if not data.captions:
        raise UserError(f"{data.name}: there are no captions; relevance needs some")
    source = _built(asked, data)
    if isinstance(source, Human):
        _say_judgements(source)
    else:
        _look(asked, source, data)
    if asked.out is not None:
        source.save(asked.out, k=asked.top, direction=asked.direction)
        say(f"written: {asked.out} ({source.shape[0]} images x {source.shape[1]} captions)")
        say(f"content hash: {source.content_hash()}")
    if isinstance(source, Cascade):
        say(str(source.report))
    return 0


def _built(asked: RelevanceCommand, data: ImageCaptions) -> Degrees:
    captions, owners, images = data.captions, data.image_of_caption, len(data)
    tokenizer, apart = _TOKENISERS[asked.tokenizer], asked.leave_one_out
    match asked.source:
        case "cider-d":
            return CIDErD(captions, owners, tokenizer=tokenizer, leave_one_out=apart, images=images)
        case "cider":
            return CIDEr(captions, owners, tokenizer=tokenizer, leave_one_out=apart, images=images)
        case "tfidf" | "cbow" | "sentences":
            return _pairwise(asked.source, asked, data)
        case "cross-encoder":
            return _cross_encoder(asked, data)
        case "cascade":
            fine = _cross_encoder(asked, data)
            return Cascade(
                _pairwise(asked.coarse, asked, data),
                fine,
                threshold=asked.coarse_threshold,
                below=asked.below,
                cache=asked.cache,
                reference=asked.reference,
                leave_one_out=apart,
                progress=_cascade_progress(),
            )
        case "labels":
            if not data.labels:
                raise UserError(f"{data.name}: has no class labels; give a table with a column 'label' or 'labels'")
            return Labels(data.labels, owners)
        case "human":
            if asked.show_rungs is not None:
                raise UserError("human: people judged too few pairs to draw from, so there are no rungs to show")
            return _human(asked.judgements, data)


def _pairwise(
    name: Literal["tfidf", "cbow", "sentences"], asked: RelevanceCommand, data: ImageCaptions
) -> CaptionPairSource:
    captions, owners, images = data.captions, data.image_of_caption, len(data)
    reference, apart, tokenizer = asked.reference, asked.leave_one_out, _TOKENISERS[asked.tokenizer]
    if name == "tfidf":
        return TfIdf(captions, owners, tokenizer=tokenizer, reference=reference, leave_one_out=apart, images=images)
    if name == "cbow":
        if asked.vectors is None:
            raise UserError("cbow needs word vectors; give --vectors FILE, such as glove.6B.300d.txt")
        words = CBoW(
            captions, owners, asked.vectors,
            tokenizer=tokenizer, reference=reference, leave_one_out=apart, images=images,
        )  # fmt: skip
        unknown = ", ".join(list(words.unknown_words)[:5])
        say(f"cbow: {words.unknown_share:.1%} of the words have no vector{f', such as {unknown}' if unknown else ''}")
        return words
    with progress_bar("captions", len(set(captions))) as advance:
        sentences = BiEncoder(
            captions, owners, asked.model,
            reference=reference, leave_one_out=apart, images=images, progress=advance,
        )  # fmt: skip
        encoded = sentences.vectors
    say(f"sentences: {len(encoded):,} captions, vectors of {encoded.shape[1]}")
    return sentences


def _cross_encoder(asked: RelevanceCommand, data: ImageCaptions) -> CrossEncoder:
    if asked.pair_model is None or asked.scale is None:
        raise UserError(
            f"{asked.source} needs --pair-model NAME and --scale, which says what its output means: raw, sigmoid,"
            " softmax, or LOW,HIGH such as 0,5"
        )
    return CrossEncoder(
        data.captions, data.image_of_caption, asked.pair_model,
        scale=_scale(asked.scale), reference=asked.reference, leave_one_out=asked.leave_one_out, images=len(data),
        progress=_pairs_progress() if asked.source == "cross-encoder" else None,
    )  # fmt: skip


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
        case (file,) if file.name.lower().startswith("crowdflower"):
            return Human.flickr8k_crowd(file, data)
        case (file,) if file.name.lower().startswith("expert"):
            return Human.flickr8k_expert(file, data)
        case (file,):
            return Human.from_csv(file, data)
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
    pairs = asked.pairs or (_FEW_PAIRS if isinstance(source, CrossEncoder) else _MANY_PAIRS)
    cuts = asked.thresholds
    if asked.show_rungs is not None and not cuts:
        cuts = thresholds(source, asked.shares, pairs=pairs)
    say(str(describe(source, at=cuts, pairs=pairs, name=asked.source)))
    if asked.show_rungs is None:
        return
    found = rungs(source, cuts, examples=asked.examples, pairs=pairs)
    console.print(render_rungs(found, data))
    page = rungs_page(found, data, f"Rungs of {asked.source} on {data.name}")
    with replacing(asked.show_rungs) as draft:
        draft.write_text(page, encoding="utf-8")
    say(f"thresholds: {' '.join(f'{cut:.4g}' for cut in cuts)}")
    say(f"rungs: {asked.show_rungs}")
