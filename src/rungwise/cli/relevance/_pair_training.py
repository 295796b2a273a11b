"""``rungwise relevance train-cross-encoder``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from rungwise.cli.frame import parse
from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.output import format_duration
from rungwise.core.text import idle_where, idle_without
from rungwise.data import DEV, TEST, ScoredPairs, read_scored_pairs, sharing_texts, with_drawn_splits, within
from rungwise.jobs import ADVANCED, Device, chosen_device, program, progress_bar, say, say_issues

if TYPE_CHECKING:
    from rungwise.training.pair_models import CrossEncoderResult, DistilResult, PairTraining, TrainingObserver

_COMMAND = "rungwise relevance train-cross-encoder"
_EXAMPLES = (
    f"{_COMMAND} stsbenchmark --out grader",
    f"{_COMMAND} scored.csv --scale 0,5 --out grader",
    f"{_COMMAND} pairs.csv --out slow --distil-into fast",
)


@dataclass
class TrainCrossEncoder:
    """Train a model that reads two texts together and says how alike they are, on pairs that people scored.

    Attributes:
        data: STS-Benchmark's folder, or a table of scored pairs: two columns of texts and one of scores.
        out: Folder of the model.
        model: The encoder to begin from: a folder or a name on the hub. Default: the packaged MiniLM.
        scale: Score that becomes 0 and score that becomes 1, such as 0,5. Default: the range of the training pairs.
        epochs: Passes through the training pairs. The best one on dev is kept.
        batch_size: Pairs a step.
        learning_rate: The highest; it rises, then falls to 0.
        loss: Binary cross-entropy (bce) or squared error (mse) of the score on 0..1.
        max_length: Tokens of a pair beyond which the longer text is cut.
        seed: Of all that is drawn.
        precision: bfloat16 is faster where the device has it.
        threads: Of the processor. Default: as many as it has cores.
        distil_into: Folder of a sentence model that learns from it.
        bi_encoder: The sentence model to begin from. Default: the packaged MiniLM.
        captions: Folder or file of captions to draw its pairs from. Default: the texts of the training pairs.
        layout: Read these captions as this layout, one of ours or of your own.
        unlabelled: How many pairs are drawn; default 10000.
        distil_epochs: Passes of the sentence model; default 2.
    """

    data: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA")]
    out: Path = field(metadata=WRITTEN_FOLDER)
    model: str | None = None
    scale: str | None = None
    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 5e-5
    loss: Literal["bce", "mse"] = field(default="bce", metadata=ADVANCED)
    max_length: int = field(default=128, metadata=ADVANCED)
    seed: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    device: Device = None
    threads: int | None = field(default=None, metadata=ADVANCED)
    distil_into: Path | None = field(default=None, metadata=WRITTEN_FOLDER)
    bi_encoder: str | None = field(default=None, metadata=ADVANCED)
    captions: Path | None = None
    layout: Annotated[str | None, tyro.conf.arg(metavar="LAYOUT")] = field(default=None, metadata=ADVANCED)
    unlabelled: int | None = field(default=None, metadata=ADVANCED)
    distil_epochs: int | None = field(default=None, metadata=ADVANCED)

    IDLE = (
        idle_without("captions unlabelled bi_encoder distil_epochs", "distil_into"),
        idle_without("layout", "captions"),
        idle_where(
            "captions", lambda asked: asked.unlabelled == 0, "with {unlabelled} 0, which draws no pairs of them"
        ),
    )


def main(arguments: list[str]) -> int:
    """Train, measure and save a cross-encoder; distil it where requested."""
    asked = parse(TrainCrossEncoder, arguments, _COMMAND, examples=_EXAMPLES)
    scale = _scale(asked.scale)
    _check(asked)
    settings = _settings(asked)
    _check_places(asked)
    pairs = _read(asked.data, asked.seed, scale)
    captions = _captions(asked.captions, asked.layout)
    from rungwise.language.sentence_models import PACKAGED_MODEL
    from rungwise.training.pair_models import TrainingObserver, train_cross_encoder

    device = chosen_device(asked.device)
    watching = TrainingObserver(say, progress_bar)
    result = train_cross_encoder(
        pairs,
        asked.out,
        asked.model or PACKAGED_MODEL,
        settings,
        scale=scale,
        device=device,
        threads=asked.threads,
        watching=watching,
    )
    _say_result(result)
    if asked.distil_into is not None:
        _distil(asked, result, pairs, captions, settings, device, watching)
    next_ones = [f"cascade DATA --model {quote(str(asked.out))}"]
    if asked.distil_into is not None:
        next_ones.append(f"bi-encoder DATA --model {quote(str(asked.distil_into))}")
    say("next:")
    for one in next_ones:
        say(f"  {program()} relevance {one} --out degrees")
    return 0


def _check(asked: TrainCrossEncoder) -> None:
    """Refuse meaningless numbers."""
    for name in ("threads", "unlabelled", "distil_epochs"):
        value = getattr(asked, name)
        least = 0 if name == "unlabelled" else 1
        if value is not None and value < least:
            raise UserError(f"--{name.replace('_', '-')} must be at least {least}, got {value}")


def _check_places(asked: TrainCrossEncoder) -> None:
    """Refuse early what could not be written after an hour of work."""
    from rungwise.core.disk.folders import refuse_strangers, require_writable_folder
    from rungwise.training.pair_models import BI_ENCODER, CROSS_ENCODER

    for place, begun_from in ((asked.out, asked.model), (asked.distil_into, asked.bi_encoder)):
        if place is not None and begun_from is not None and _is_one_folder(place, Path(begun_from)):
            raise UserError(f"{place}: the model to begin from stands here, and would be replaced; name another folder")
    require_writable_folder(asked.out.expanduser())
    refuse_strangers(asked.out.expanduser(), CROSS_ENCODER, "a model of pairs")
    if asked.distil_into is not None:
        if asked.distil_into.expanduser().resolve() == asked.out.expanduser().resolve():
            raise UserError(f"{asked.out}: --out and --distil-into are one folder; name two")
        require_writable_folder(asked.distil_into.expanduser())
        refuse_strangers(asked.distil_into.expanduser(), BI_ENCODER, "a sentence model")


def _is_one_folder(one: Path, other: Path) -> bool:
    one, other = one.expanduser(), other.expanduser()
    return one.is_dir() and other.is_dir() and one.samefile(other)


def _settings(asked: TrainCrossEncoder) -> PairTraining:
    from rungwise.training.pair_models import PairTraining

    try:
        return PairTraining(**{name: getattr(asked, name) for name in _SETTINGS})
    except UserError as error:
        name, _, wrong = str(error).partition(" ")
        raise UserError(f"--{name.replace('_', '-')} {wrong}") from error


_SETTINGS = ("epochs", "batch_size", "learning_rate", "loss", "max_length", "seed", "precision")


def _read(path: Path, seed: int, scale: tuple[float, float] | None) -> ScoredPairs:
    read = read_scored_pairs(path)
    if scale is not None:
        read = within(read, *scale)
        if not len(read):
            raise UserError(f"{path}: no pair has a score of --scale {scale[0]:g},{scale[1]:g}; correct the scale")
    say_issues(read.issues)
    skipped = sum(issue.kind == "row skipped" for issue in read.issues)
    pairs = with_drawn_splits(read, seed=seed)
    count = Counter(pairs.splits)
    parts = ", ".join(f"{count[name]:,} {_SHOWN.get(name, name)}" for name in sorted(count, key=_ORDER.find))
    say(f"{pairs.name}: {len(pairs):,} scored pairs ({pairs.layout}): {parts}; {skipped:,} rows skipped")
    if pairs is not read:
        drawn = "dev and test are" if count[TEST] != Counter(read.splits)[TEST] else "dev is"
        say(f"{drawn} drawn by seed {seed}; pairs that share a text stay together")
    shared = ", ".join(
        f"{number:,} of {_SHOWN.get(name, name)}" for name in (DEV, TEST) if (number := sharing_texts(pairs, name))
    )
    if shared:  # in splits that are drawn nothing is
        say(f"the data's own splits: a text of the training pairs is also in {shared}")
    return pairs


_SHOWN = {DEV: "dev"}
_ORDER = "train val test"


def _captions(path: Path | None, layout: str | None) -> Sequence[str]:
    if path is None:
        return ()
    from rungwise.data import read

    data = read(path, layout=layout, captions_only=True)
    say_issues(data.issues)
    if not data.captions:
        raise UserError(f"{path}: holds no captions; name a collection that has some")
    return data.captions


def _scale(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError as error:
        raise UserError(f"--scale must be LOW,HIGH such as 0,5, got {text!r}") from error
    if not -math.inf < low < high < math.inf:
        raise UserError(f"--scale must be LOW,HIGH with LOW below HIGH, got {text!r}")
    return low, high


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _say_result(result: CrossEncoderResult) -> None:
    low, high = result.scale
    say(f"scale: {low:g} became 0, {high:g} became 1")
    say(f"best epoch {result.best_epoch}; trained in {format_duration(result.seconds)}")
    say(f"dev   {result.dev}")
    if result.test is not None:
        say(f"test  {result.test}")
    say(f"scores {result.pairs_per_second:.0f} pairs/s")
    say(f"model: {result.folder}")


def _distil(
    asked: TrainCrossEncoder,
    result: CrossEncoderResult,
    pairs: ScoredPairs,
    captions: Sequence[str],
    settings: PairTraining,
    device: str,
    watching: TrainingObserver,
) -> None:
    from rungwise.language.sentence_models import PACKAGED_MODEL
    from rungwise.training.pair_models import EPOCHS, UNLABELLED, distil

    assert asked.distil_into is not None
    found: DistilResult = distil(
        result.model,
        pairs,
        asked.distil_into,
        asked.bi_encoder or PACKAGED_MODEL,
        replace(settings, epochs=_or(asked.distil_epochs, EPOCHS)),
        captions=captions,
        unlabelled=_or(asked.unlabelled, UNLABELLED),
        device=device,
        threads=asked.threads,
        watching=watching,
    )
    for name, before, after in (("dev ", found.dev_before, found.dev), ("test", found.test_before, found.test)):
        if before is not None and after is not None:
            say(f"{name}  before: {before}")
            say(f"{name}  after:  {after}")
    say(f"distilled in {format_duration(found.seconds)}; model: {found.folder}")
