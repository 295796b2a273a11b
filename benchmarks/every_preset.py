"""Every preset that is trained in steps, from end to end: two epochs on a tenth of Flickr8K or of its own data.

python benchmarks/every_preset.py --out runs/presets
python benchmarks/every_preset.py --out runs/presets --only vsepp sam/own
python benchmarks/every_preset.py --out runs/presets --part 1/2        # and 2/2 in another process

A preset is trained by ``rungwise train``, its run folder is checked, and the model is evaluated by ``rungwise
evaluate`` on the test split. The validation measure is to rise: after the last epoch it is above that of the epoch
before, and above that of the untrained model by more than pictures drawn by chance explain (the 95 % interval over the
200 pictures). A preset that does not rise is listed as flat; one that falls by more than chance explains has failed.
What is done already in ``--out`` is not done again.

What differs from the preset, for all: a tenth of the training pictures (``data.share``), 200 pictures each to validate
and to test, and a MobileNetV2 as backbone, whose file of weights has its batch statistics folded in, so that they stay
frozen where it is trained. A run has two epochs, and a stage before the last has one, at twice its first rate but at
most 1e-3 where that is higher; new heads, which the papers train for 30 epochs, at 2e-4. With so few pairs, batches of
128 would be two dozen steps: batches have 32 pairs, unless a negative set is beyond the batch. The hardest negative
collapses from a cold start: where a preset pushes it, an epoch with the sum of hinges comes before the two, or is that
of the first stage. Where the backbone runs on each visit, or is trained, it sees pictures of 64 x 64. Encoders compute
in bfloat16. The list says what else was replaced.

Systems of regions, whose detector's files Flickr8K does not come with, take the places of the last map of the same
backbone, and vectors of 256 numbers. Presets at a rate of 0, which are there to show what chance reaches, are left out.

Presets of models that are fitted (CCA and its kin) have no epochs that could rise: ``benchmarks/labels.py`` runs them.

Presets that are the same run after all this, such as those of two backbones, are run once: the list names the other
one. Each is read, shortened and checked against its data all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import yaml

from rungwise.cli import main as rungwise
from rungwise.core import from_plain, to_plain
from rungwise.data import ImageCaptions, read
from rungwise.evaluation import Result
from rungwise.models import VSEConfig
from rungwise.scenes import SceneConfig, generate
from rungwise.training.config import AnyRunConfig, TrainConfig, load_preset, merged, preset_names
from rungwise.training.engine import model_of
from rungwise.training.fit import check_fits

WEIGHTS = "weights/mobilenetv2_100_imagenet.safetensors"
BACKBONE = {
    "backbone": "mobilenetv2_100", "options": {"pad_type": "same"}, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
    "batch_norm": "frozen",
}  # fmt: skip
NARROW = 256
SMALL, HELD_OUT, SHARE, EPOCHS, BATCH = 64, 200, 0.1, 2, 32
SCENES = 12_000
FASTER, FASTEST, HEADS = 2.0, 1e-3, 2e-4
PARTS = ("config.yaml", "history.jsonl", "checkpoint.safetensors", "model/config.json", "model/model.safetensors")
STARTS = {"from-vsepp": ("vsepp/own", SHARE), "improve": ("quick/own", 0.02)}
"""Models to begin from: the preset, and the share of the training pictures."""


@dataclass(frozen=True)
class Outcome:
    """What became of a preset.

    Attributes:
        name: Of the preset.
        failure: Empty where all is well.
        seconds: Of training, without the evaluation.
        measure: Which was looked at.
        values: Of the untrained model, then after each epoch of each stage.
        test: The same on the test split.
        noise: Half of the 95 % interval of the best epoch, by the validation pictures.
        note: What was replaced.
    """

    name: str
    failure: str = ""
    seconds: float = 0.0
    measure: str = "rsum"
    values: tuple[float, ...] = ()
    test: float = float("nan")
    noise: float = float("nan")
    note: str = ""

    @property
    def flat(self) -> str:
        """What the last epoch is not above, if anything."""
        if self.values and not self.values[-1] > self.values[-EPOCHS]:
            return "the epoch before"
        least = 0.0 if math.isnan(self.noise) else self.noise
        return "" if not self.values or self.values[-1] > self.values[0] + least else "the untrained model"


class Bench:
    """Data, models to begin from, and results, in one folder.

    Args:
        shared: Holds flickr8k, wikipedia and weights.
        out: For everything that is made.
    """

    def __init__(self, shared: Path, out: Path) -> None:
        self.shared, self.out = shared, out
        self.read: dict[Path, ImageCaptions] = {}
        self.first: dict[str, str] = {}
        for name in ("results", "logs", "starts"):
            (out / name).mkdir(parents=True, exist_ok=True)

    def place(self, name: str) -> Path:
        """Where the data for a preset lie; made if missing."""
        system, _, dataset = name.partition(":")[0].partition("/")
        if system == "cmal2r":
            return self.shared / "wikipedia"
        if dataset == "scenes":
            folder = self.out / "scenes"
            held_out = HELD_OUT / SCENES
            generate(folder, SceneConfig(pictures=SCENES, side=64, val_share=held_out, test_share=held_out))
            return folder
        folder = self.out / "flickr8k"
        if not folder.exists():
            draft = self.out / f"flickr8k.{time.time_ns()}"
            (draft / "pictures").mkdir(parents=True)
            texts = self.shared / "flickr8k" / "Flickr8k_text"
            shutil.copyfile(texts / "Flickr8k.token.txt", draft / "Flickr8k.token.txt")
            used: list[str] = []
            for split, most in (("train", None), ("dev", HELD_OUT), ("test", HELD_OUT)):
                kept = (texts / f"Flickr_8k.{split}Images.txt").read_text().split()[:most]
                (draft / f"Flickr_8k.{split}Images.txt").write_text("\n".join(kept) + "\n")
                used += kept
            for picture in used:
                (draft / "pictures" / picture).symlink_to(self.shared / "flickr8k" / "Flicker8k_Dataset" / picture)
            with contextlib.suppress(OSError):  # the other process was quicker
                draft.rename(folder)
        return folder

    def data(self, name: str) -> ImageCaptions:
        """The collection of a preset."""
        place = self.place(name)
        if place not in self.read:
            self.read[place] = read(place)
        return self.read[place]

    def start(self, name: str) -> str:
        """A model to begin from, for presets that ask for one; trained if missing."""
        key = name.partition(":")[2] or name.partition("/")[0]
        if key not in STARTS:
            return ""
        run = self.out / "starts" / key
        if not (run / "model").is_dir():
            first, share = STARTS[key]
            config = merged(self.shortened(first, starts=False)[0], {"data": {"share": share}})
            self.command("train", self.written(run, config), self.place(first), "--out", run)
        return str(run / "model")

    def shortened(self, name: str, starts: bool = True) -> tuple[dict[str, Any], str]:
        """The settings of a preset as they are run here, and what was replaced.

        Args:
            name: Of the preset.
            starts: Whether the model that it asks for is looked for, and trained if missing.
        """
        preset = load_preset(name)
        config = preset.config
        assert isinstance(config, TrainConfig)
        notes = []
        changes: dict[str, Any] = {"data": {"share": SHARE}, "precision": "bfloat16"}
        changes |= _shorter(config, begins=not config.stages)
        if isinstance(config.model, VSEConfig) and config.model.image.kind == "pictures":
            each_visit = config.model.image.crops == "RC" or any(
                not one.model.image.frozen for _, one in config.stage_configs() if isinstance(one.model, VSEConfig)
            )
            crop = 0.875 if config.model.image.crops in ("RC", "10C") else 1.0
            image = {**BACKBONE, "weights": str(self.shared / WEIGHTS), "crop": crop}
            if each_visit or config.model.image.crops == "10C":
                image["size"] = SMALL
                notes.append(f"pictures of {SMALL} x {SMALL}")
            changes["model"] = {"image": image}
        elif _reads_regions(config):
            image = {"kind": "pictures", **BACKBONE, "weights": str(self.shared / WEIGHTS), "pool": "regions"}
            image |= {"size": SMALL, "crop": 1.0, "l2_normalise": False}
            changes["model"] = {"image": image, "dimension": NARROW}
            notes.append(f"places of pictures of {SMALL} x {SMALL} as regions, vectors of {NARROW}")
        if "cross-encoder" in config.data.relevance:
            changes["data"]["relevance"] = "bi-encoder"
            notes.append("bi-encoder in place of the cross-encoder")
        if start := self.start(name) if starts else "":
            changes["start"] = start
            first, share = STARTS[name.partition(":")[2] or preset.system]
            notes.append(f"begins from {first}, {share:.0%} of the pictures")
        settings = merged(to_plain(config), changes)
        stages = [{"name": one.name, **one.settings} for one in config.stages]
        settings["stages"] = [
            merged(stage, _shorter(whole, 1 if one < len(stages) else EPOCHS, begins=one == 1))
            for one, (stage, (_, whole)) in enumerate(zip(stages, config.stage_configs(), strict=True), 1)
        ]
        if len(stages) > 1:
            notes.append(f"{len(stages)} stages")
        return settings, ", ".join(notes)

    def twin(self, name: str, settings: Mapping[str, Any]) -> str:
        """The first preset that is the same run here; its own name where there is none before it."""
        first = self.first.setdefault(f"{self.place(name)} {_without_names(settings)}", name)
        if first != name:
            check_fits(from_plain(TrainConfig, dict(settings), name), self.data(name))
        return first

    def written(self, run: Path, settings: Mapping[str, Any]) -> Path:
        """The settings as a file."""
        file = run.with_suffix(".yaml")
        file.write_text(yaml.safe_dump(dict(settings), sort_keys=False))
        return file

    def command(self, *words: object) -> str:
        """Run a command of rungwise in this process.

        Raises:
            RuntimeError: It refused, with what it said.
        """
        said, refused = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(refused):
            code = rungwise([str(word) for word in words])
        if code:
            raise RuntimeError(f"rungwise {words[0]} ended with {code}: {refused.getvalue().strip()}")
        return said.getvalue()

    def untrained(self, name: str, settings: Mapping[str, Any], folder: Path) -> float:
        """The validation measure of the model before its first step."""
        config = from_plain(TrainConfig, dict(settings), name)
        first = next((one for _, one in config.stage_configs()), config)
        data = self.data(name)
        train = data.split(*first.data.train)
        model, _ = model_of(first, train.texts, data.features, lambda _: None)
        model.save_pretrained(folder)
        return first.snapshot.chosen.number(self.evaluated(folder, name, _validation(data), first).numbers)

    def evaluated(self, model: Path, name: str, split: str, config: TrainConfig) -> Result:
        """What ``rungwise evaluate`` finds, by the protocol and the measure that choose."""
        found, chooses = model.parent / "evaluated.json", config.snapshot
        how = ["--protocol", chooses.protocol, "--measures", chooses.chosen.measure]
        self.command("evaluate", model, self.place(name), "--split", split, "--out", found, *how)
        return Result.from_json(found)

    def tried(self, name: str) -> Outcome:
        """Train, check and evaluate one preset."""
        run = self.out / "running" / _file_name(name)
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(parents=True)
        settings, note = self.shortened(name)
        begun = time.perf_counter()
        try:
            config = from_plain(TrainConfig, settings, name)
            before = self.untrained(name, settings, run / "untrained")
            begun = time.perf_counter()
            said = self.command("train", self.written(run / "recipe", settings), self.place(name), "--out", run / "run")
            seconds = time.perf_counter() - begun
            (self.out / "logs" / f"{_file_name(name)}.txt").write_text(said)
            rows = [json.loads(line) for line in (run / "run" / "history.jsonl").read_text().splitlines()]
            values = (before, *(float(row[config.snapshot.name]) for row in rows))
            model, split = run / "run" / "model", _validation(self.data(name))
            chosen = config.snapshot.chosen
            test = chosen.number(self.evaluated(model, name, "test", config).numbers)
            intervals = self.evaluated(model, name, split, config).intervals()
            noise = chosen.number({key: one.high - one.low for key, one in intervals.items()}) / 2
            failure = "; ".join([*_lacking(run / "run", config), *_falling(values, noise)])
            return Outcome(name, failure, seconds, config.snapshot.name, values, test, noise, note)
        except Exception as error:
            (self.out / "logs" / f"{_file_name(name)}.txt").write_text(traceback.format_exc())
            return Outcome(name, f"{type(error).__name__}: {error}", time.perf_counter() - begun, note=note)
        finally:
            shutil.rmtree(run, ignore_errors=True)


def _shorter(config: TrainConfig, epochs: int = EPOCHS, *, begins: bool) -> dict[str, Any]:
    """What shortens a run, or a stage of one; a run that begins from nothing warms up where it would collapse."""
    rate, least = config.learning_rates[0], HEADS if config.tune.kind == "weights" else 0.0
    loss: Any = config.loss
    hard = loss.kind in ("max_of_hinges", "ladder") or (
        loss.kind == "semantic_adaptive_margin" and (loss.with_triplet or loss.negatives == "hardest")
    )
    warm_up = int(begins and hard and not config.start)
    return {
        "epochs": [epochs if epochs < EPOCHS else epochs + warm_up],
        "learning_rates": [max(rate, least, min(rate * FASTER, FASTEST))],
        "warm_up_epochs": warm_up,
        "batch_size": _batch(config),
    }


def _batch(config: TrainConfig) -> int:
    """Pairs a step; data of their own and negative sets beyond the batch keep what the preset says."""
    if not _reads_regions(config) and not (
        isinstance(config.model, VSEConfig) and config.model.image.kind == "pictures"
    ):
        return config.batch_size
    drawn = getattr(config.loss, "negative_set", None) or 0
    return config.batch_size if drawn > BATCH else min(BATCH, config.batch_size)


def _reads_regions(config: TrainConfig) -> bool:
    """Whether a preset reads the regions of a detector, which Flickr8K does not come with."""
    return not isinstance(config.model, VSEConfig) and getattr(config.model.image, "kind", "") == "features"


def _validation(data: ImageCaptions) -> str:
    """The split that validates; data with none have some of their training pictures held out."""
    return "val" if "val" in data.splits else "test"


def _lacking(run: Path, config: TrainConfig) -> Iterator[str]:
    """What a finished run folder should hold and does not."""
    wanted = list(PARTS)
    if config.stages:
        wanted = ["config.yaml", "history.jsonl", "model/config.json"]
        wanted += [
            f"stages/{number}-{stage.name}/{part}" for number, stage in enumerate(config.stages, 1) for part in PARTS
        ]
    if missing := [part for part in wanted if not (run / part).exists()]:
        yield f"the run folder lacks {', '.join(missing)}"


def _falling(values: tuple[float, ...], noise: float) -> Iterator[str]:
    if not values[-1] > values[-EPOCHS] - math.sqrt(2) * noise:
        yield f"the last epoch is below the one before: {values[-EPOCHS]:.1f}, {values[-1]:.1f} ±{noise:.1f}"
    if not values[-1] > values[0] - noise:
        yield f"the last epoch is below the untrained model: {values[0]:.1f}, {values[-1]:.1f} ±{noise:.1f}"


def _without_names(settings: Mapping[str, Any]) -> str:
    """Settings as text, without what changes nothing here: the preset's name, and restval, which Flickr8K lacks."""
    data = {key: value for key, value in settings["data"].items() if key != "join_restval"}
    return json.dumps({**settings, "data": data, "preset": ""}, sort_keys=True)


def _file_name(name: str) -> str:
    return name.replace("/", "-").replace(":", "-")


def _chosen(only: list[str]) -> list[str]:
    names = [name for name in preset_names() if not only or any(name.startswith(one) for one in only)]
    names = [name for name in names if _learns(load_preset(name).config)]
    return sorted(names, key=lambda name: ":" in name)  # so that what is done at any time spans all systems


def _learns(config: AnyRunConfig) -> bool:
    """Whether a preset trains in steps at a rate above 0: chance alone has none, and nothing of it could rise."""
    return isinstance(config, TrainConfig) and any(config.learning_rates)


def _each(names: list[str], outcome: Outcome) -> Iterator[Outcome]:
    """An outcome under the name of every preset that it is of."""
    yield outcome
    yield from (replace(outcome, name=one, seconds=0.0, note=f"as {outcome.name}") for one in names[1:])


def _listed(outcomes: list[Outcome]) -> Iterator[str]:
    """A line for each preset, failures first."""
    yield f"{'preset':<40} {'seconds':>7}  {'validation: untrained, then each epoch':<40} {'test':>6}  replaced"
    for one in sorted(outcomes, key=lambda one: (not one.failure, one.name)):
        values = " ".join(f"{value:.1f}" for value in one.values)
        yield f"{one.name:<40} {one.seconds:>7.1f}  {f'{one.measure} {values}':<40} {one.test:>6.1f}  {one.note}"
        if one.failure:
            yield f"    FAILED: {one.failure[:600]}"
        elif one.flat:
            yield f"    FLAT: neither above {one.flat} nor below it, within ±{one.noise:.1f}"
    failed = sum(bool(one.failure) for one in outcomes)
    flat = sum(bool(one.flat) and not one.failure for one in outcomes)
    total = sum(one.seconds for one in outcomes)
    yield f"{len(outcomes)} presets, {failed} failed, {flat} flat, {total / 60:.1f} minutes of training"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=None, help="folder of the data; default RUNGWISE_DATA")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of names")
    parser.add_argument("--part", default="1/1", help="such as 1/2: every second preset")
    parser.add_argument("--again", action="store_true", help="also what is done already")
    parser.add_argument("--failed", action="store_true", help="also what failed before")
    parser.add_argument("--list", action="store_true", help="print the list of what is done, and run nothing")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    bench = Bench(asked.shared or Path(os.environ["RUNGWISE_DATA"]), asked.out)
    outcomes: list[Outcome] = []
    number, of = map(int, asked.part.split("/"))
    twins: dict[str, list[str]] = {}
    for name in _chosen(asked.only):
        twins.setdefault(bench.twin(name, bench.shortened(name)[0]), []).append(name)
    for name in list(twins)[number - 1 :: of]:
        file = asked.out / "results" / f"{_file_name(name)}.json"
        known = Outcome(**json.loads(file.read_text())) if file.exists() else None
        if asked.list or (known and not asked.again and not (asked.failed and known.failure)):
            outcomes += _each(twins[name], known) if known else []
            continue
        outcome = bench.tried(name)
        file.write_text(json.dumps(asdict(outcome)))
        outcomes += _each(twins[name], outcome)
        print(f"{name}: {outcome.failure or 'ok'} ({outcome.seconds:.0f} s) {outcome.values}", flush=True)
    print("\n".join(_listed(outcomes)))


if __name__ == "__main__":
    main()
