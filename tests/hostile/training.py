"""SIGKILL at drawn moments of training runs, which then go on: the final weights are those of an undisturbed run.

python -m tests.hostile.training
python -m tests.hostile.training --kills 5 --only stages

A moment is told by what a process has done until then, not by a clock: it is killed before the n-th time that it opens,
makes, renames, lists or removes a file. What it leaves on the disk changes at these moments alone, but for the bytes of
a file that is being written, which tests.hostile.kills cuts in the middle.

Every second run that goes on is killed once more. Runs of one process are forked, those of two are started by torchrun,
and all processes of a run are killed together. A run counts as equal if the tensors of its final model, and of every
checkpoint, are equal to the bit, and its history has the same numbers. Exit code 1 says that one is not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from rungwise.training.config import merged
from tests.hostile.forked import end_with_the_parent

ROOT = Path(__file__).parents[2]
_EVENTS = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod"}
"""Of ``sys.audit``."""

_SETTINGS = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "RUNGWISE_THREADS": "1"}
_TUNED = {"learning_rates": [1e-3], "epochs": [2], "model": {"image": {"frozen": False, "crops": "RC"}}}
_HEADS = {
    "tune": "weights",
    "epochs": [2],
    "learning_rates": [1e-3],
    "loss": {"kind": "contrastive_sum", "temperature": 0.1, "reduction": "mean"},
    "model": {"image_head": {"kind": "mlp", "hidden": [8]}, "text_head": {"kind": "mlp", "hidden": [8]}},
}
_PLAIN = {
    "model": {
        "image": {"backbone": "test_resnet.r160_in1k", "weights": "random", "size": 24},
        "text": {"word_dimension": 8, "min_count": 1},
        "dimension": 16,
    },
    "epochs": [2],
    "learning_rates": [1e-2],
    "batch_size": 8,
    "checkpoint_steps": 3,
}
_STAGES = [{"name": "base"}, {"name": "fine_tune", **_TUNED}, {"name": "heads", **_HEADS}]
_MOVING = {"ema": 0.9, "snapshot": {"patience": 3}}
CASES = {
    "one run": merged(_PLAIN, {"epochs": [6], "model": {"image": {"frozen": False, "crops": "RC"}}}),
    "one run, EMA and patience": _PLAIN | _MOVING | {"epochs": [9]},
    "three stages": _PLAIN | {"stages": _STAGES},
    "three stages, EMA and patience": _PLAIN | _MOVING | {"stages": _STAGES},
    "one run, two processes": _PLAIN | {"epochs": [6], "step": "global_negatives"},
    "three stages, two processes": _PLAIN | _MOVING | {"step": "global_negatives", "stages": _STAGES},
}


@dataclass(frozen=True)
class Trial:
    """What became of one run.

    Attributes:
        places: Where it stood when it was killed, in words.
        equal: Whether it ended as the undisturbed one did.
    """

    places: tuple[str, ...]
    equal: bool


class Life:
    """A training run that works, in one process or two, until it ends or is killed.

    Args:
        case: Which run.
        folder: Of its pictures.
        out: Where it is made; what it has come to stands in a file beside it.
        at: Before which event it is killed, from 1; 0 lets it live.
    """

    def __init__(self, case: str, folder: Path, out: Path, at: int = 0) -> None:
        self._counted = out.with_name(f"{out.name}.events")
        self._counted.parent.mkdir(parents=True, exist_ok=True)
        self._counted.unlink(missing_ok=True)
        self._number = os.fork()
        if self._number:
            return
        try:
            end_with_the_parent()
            if case.endswith("two processes"):
                _start_two([case, str(folder), str(out), str(at)])
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            train(case, folder, out, at)
            os._exit(0)
        finally:
            os._exit(1)

    def end(self) -> int | None:
        """Wait for it; the exit code, or None where it was killed."""
        _, status = os.waitpid(self._number, os.WUNTRACED)
        if os.WIFSTOPPED(status):  # a launcher whose first process killed itself
            for number in sorted(_below(self._number)):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            os.kill(self._number, signal.SIGKILL)
            _, status = os.waitpid(self._number, 0)
        code = os.waitstatus_to_exitcode(status)
        return None if code == -signal.SIGKILL else code

    def events(self) -> int:
        """How many there were; it must have ended by itself."""
        return int(self._counted.read_text())


def _start_two(arguments: Sequence[str]) -> None:
    """Become the launcher of two processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += ["-m", "tests.hostile.training", "--child", *arguments]
    os.chdir(ROOT)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os.execve(sys.executable, command, os.environ | _SETTINGS)


class _Counting:
    """Counts events in this process from its making on, and kills it at one."""

    def __init__(self, at: int) -> None:
        self.at, self.seen, self.over = at, 0, False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, _: tuple[Any, ...]) -> None:
        if event not in _EVENTS or self.over:
            return
        self.seen += 1
        if self.seen == self.at:
            if "LOCAL_RANK" in os.environ:  # alive, the launcher would ask the other process politely
                os.kill(os.getppid(), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGKILL)


def _below(number: int) -> set[int]:
    """Processes that a process has started, and those that they have started."""
    try:
        words = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        return set()
    return {int(word) for word in words}.union(*(_below(int(word)) for word in words))


def trials(case: str, kills: int, seed: int, scratch: Path) -> Iterator[Trial]:
    """An undisturbed run, and runs that are killed until there were so many kills."""
    folder = scratch / "pictures"
    if not folder.exists():
        _draw(folder)
    whole, draw = scratch / case / "whole", Random(f"{seed} {case}")
    life = Life(case, folder, whole)
    assert life.end() == 0, f"{case}: the undisturbed run did not end well"
    last = life.events()
    done = number = 0
    while done < kills:
        out, places = scratch / case / str(number), []
        for _ in range(1 + number % 2):
            life = Life(case, folder, out, draw.randint(1, last))
            if life.end() is None:
                places.append(_place(out))
            elif not places:
                last = min(last, life.events())  # others find in the cache what the first one made
                break
        done += len(places)
        number += 1
        code = Life(case, folder, out).end()
        yield Trial(tuple(places), code == 0 and _state(out) == _state(whole))


def _begun(out: Path) -> bool:
    return (out / "config.yaml").exists() or (out / "stages").exists()


def _place(out: Path) -> str:
    """How far a run has come, by what it left."""
    from rungwise.training.engine import read_state

    if not _begun(out):
        return "before anything was written"
    if (out / "model").exists() and (out / "stages").exists():
        return "after the last stage"
    found = sorted((out / "stages").glob("*")) or [out]
    if not (found[-1] / "checkpoint.safetensors").exists():
        return "before the first checkpoint" if len(found) == 1 else "between stages"
    state, name = read_state(found[-1] / "checkpoint.safetensors"), found[-1].name
    return f"stage {name.replace('-', ', ', 1)}" if found[-1] != out else f"epoch {state.epoch + 1}"


def _state(out: Path) -> tuple[dict[str, bytes], list[list[object]]]:
    """Every tensor of the final model and of the checkpoints, and the history."""
    from safetensors.torch import load_file

    tensors = {}
    for path in sorted(out.glob("**/*.safetensors")):
        for name, tensor in load_file(path).items():
            tensors[f"{path.relative_to(out)}/{name}"] = tensor.numpy().tobytes()
    lines = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    return tensors, [[line.get(name) for name in ("stage", "epoch", "loss", "rsum")] for line in lines]


def _draw(folder: Path) -> None:
    """48 pictures of one colour each."""
    import numpy as np
    from PIL import Image

    folder.mkdir()
    draw = np.random.default_rng(0)
    for number in range(48):
        colour = np.array([(220, 40, 40), (40, 200, 60), (50, 60, 230), (250, 250, 250)][number % 4])
        pixels = np.clip(colour + draw.integers(-20, 21, (24, 24, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")


def train(case: str, folder: Path, out: Path, at: int) -> None:
    """Begin a run, or go on with the one that stands there, as a user would; see :class:`Life`."""
    import numpy as np

    from rungwise.core import from_plain
    from rungwise.data import ImageCaptions
    from rungwise.training import run
    from rungwise.training.config import TrainConfig

    paths = sorted(folder.iterdir())
    names = [["red", "green", "blue", "white"][number % 4] for number in range(len(paths))]
    captions = [text.format(name) for name in names for text in ("a {} picture", "something that is all {}")]
    data = ImageCaptions(
        tuple(path.name for path in paths),
        tuple(captions),
        np.repeat(np.arange(len(paths)), 2),
        paths=tuple(paths),
        splits=tuple("val" if number >= 36 else "train" for number in range(len(paths))),
    )
    found = any((out / name).exists() for name in ("checkpoint.safetensors", "stages"))
    config = from_plain(TrainConfig, CASES[case], case)
    counted = _Counting(at) if os.environ.get("LOCAL_RANK", "0") == "0" else None
    assert run(config, data, out, cache=out.parent / "cache", resume=found, device="cpu").finished
    if counted is not None:
        counted.over = True
        out.with_name(f"{out.name}.events").write_text(str(counted.seen))


def main(arguments: Sequence[str] | None = None) -> int:
    """All cases, or one."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.training", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="of each case")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", default="", help="the case of this name, or those whose name holds it")
    parser.add_argument("--child", nargs=4, metavar=("CASE", "PICTURES", "OUT", "AT"), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.child:
        train(asked.child[0], Path(asked.child[1]), Path(asked.child[2]), int(asked.child[3]))
        return 0
    os.environ |= _SETTINGS
    import rungwise.training._stages  # noqa: F401 - once, before the forks

    bad = 0
    for case in [asked.only] if asked.only in CASES else [one for one in CASES if asked.only in one]:
        with tempfile.TemporaryDirectory(prefix="rungwise-killed-") as scratch:
            found = list(trials(case, asked.kills, asked.seed, Path(scratch)))
        places = Counter(place for one in found for place in one.places)
        unequal = sum(not one.equal for one in found)
        bad += unequal
        print(f"{case}: {places.total()} kills, {len(found)} runs, {len(found) - unequal} with the same final weights")
        print("    " + ", ".join(f"{place}: {count}" for place, count in sorted(places.items())), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
