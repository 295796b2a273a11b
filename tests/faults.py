"""``python -m tests.faults``: plant one fault after the other in a copy of the tree, and see which tests find it.

The tests of the module of the same name are asked first, then all of the room and its doctests, up to the first that
fails. A test that fails without the fault as well has found nothing. Run it after tests were taken away or marked anew.
The tree itself is not changed.

python -m tests.faults                  the usual tier, all rooms
python -m tests.faults index losses     two rooms
python -m tests.faults --mark "not long"     the whole tier
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.rooms import ROOT, files_of_the_tree

_PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
# With a fault a test may wait for ever; that it does is found by the backstop, a nearer one than that of the suite.
_PYTEST += ["-o", "faulthandler_timeout=300"]


class Fault(NamedTuple):
    """One planted fault.

    Attributes:
        file: Below ``src/rungwise``; its first folder is the room.
        right: What stands there.
        wrong: What is put in the place of its first occurrence.
    """

    file: str
    right: str
    wrong: str

    @property
    def room(self) -> str:
        """Whose tests are to find it."""
        return self.file.partition("/")[0]


FAULTS = (
    Fault(
        "core/text/_natural_order.py",
        "return not is_number, int(name) if is_number else 0, name",
        "return is_number, int(name) if is_number else 0, name",
    ),
    Fault(
        "core/text/_positions.py",
        "np.linspace(0, count - 1, min(count, most))",
        "np.linspace(0, count, min(count, most))",
    ),
    Fault("core/_untrusted_files.py", "if not stat.S_ISREG(about.st_mode):", "if stat.S_ISDIR(about.st_mode):"),
    Fault("core/disk/sealed_lines.py", "if _size(path) >= most:", "if _size(path) > 2 * most:"),
    Fault(
        "similarity/_stacked_attention.py",
        "return (attention_scores(s, over, self.normalise) * self.smoothing).softmax(dim=among)",
        "return attention_scores(s, over, self.normalise).softmax(dim=among)",
    ),
    Fault("losses/_hinge.py", "return max(batch_size, self.negative_set or 0)", "return batch_size"),
    Fault(
        "losses/_ladder.py",
        "if any(upper <= lower for upper, lower in pairwise(thresholds)):",
        "if any(upper < lower for upper, lower in pairwise(thresholds)):",
    ),
    Fault(
        "losses/_semantic_adaptive_margin.py",
        "return rows.masked_fill(~eligible, torch.inf).argmin(dim=1, keepdim=True)",
        "return rows.masked_fill(~eligible, -torch.inf).argmin(dim=1, keepdim=True)",
    ),
    Fault("losses/_batch.py", "return rows @ every.float().T > 0", "return rows @ every.float().T > 1"),
    Fault("metrics/_classic.py", "100.0 * (best <= self.k)", "100.0 * (best < self.k)"),
    Fault("metrics/_graded.py", "return 0 if self.lists else self.m or 1", "return 0 if self.lists else 1"),
    Fault("metrics/_kernels.py", "if stop - start > 1:", "if stop - start > 2:"),
    Fault(
        "calibration/_baselines.py",
        "return JudgedQueries((scores >= self.least).sum(axis=1), _best(scores))",
        "return JudgedQueries((scores > self.least).sum(axis=1), _best(scores))",
    ),
    Fault(
        "calibration/_false_discovery.py",
        "return float(min(1.0, np.min(expected_false / np.arange(1, len(expected_false) + 1))))",
        "return float(np.min(expected_false / np.arange(1, len(expected_false) + 1)))",
    ),
    Fault("data/_columns.py", "while name in RESERVED or name in taken:", "while name in RESERVED:"),
    Fault(
        "data/_collection.py",
        "if owners.size and not (owners.min() >= 0 and owners.max() < len(self.image_ids)):",
        "if owners.size and not (owners.min() >= 0 and owners.max() <= len(self.image_ids)):",
    ),
    Fault(
        "data/folders/_joined_folders.py",
        'f"{name}/{one}" for name, (_, data) in parts.items() for one in data.image',
        "one for name, (_, data) in parts.items() for one in data.image",
    ),
    Fault("data/files/_exclusions.py", "in reversed(self._patterns) if", "in self._patterns if"),
    Fault("data/layouts/_folder.py", "rule.verdict(whole.removeprefix(start))", "rule.verdict(whole)"),
    Fault("data/sidecars/_text_captions.py", "if len(found) > 1:", "if len(found) > 2:"),
    Fault("data/sidecars/_takeout.py", "path.stem}{edited}{number}{path.suffix", "path.stem}{edited}{path.suffix"),
    Fault(
        "data/layouts/_coco.py",
        "rival = rival or next((pictures[picture] for picture in named if picture in pictures), None)",
        "rival = None",
    ),
    Fault(
        "language/scene_graphs/_lexicon.py",
        'if word.endswith("ing") and len(word) > 5:',
        'if word.endswith("ing") and len(word) > 50:',
    ),
    Fault("language/_pair_models.py", "min(max_length or longest, longest)", "max_length or longest"),
    Fault("relevance/combine/_fit.py", "if len(rows) < FEWEST:", "if len(rows) < FEWEST - 5:"),
    Fault(
        "relevance/combine/_cascade.py",
        'if below not in ("zero", "coarse"):',
        'if below not in ("zero", "coarse", "fine"):',
    ),
    Fault("relevance/scene_graph/_fact_kernels.py", "if middle >= 0:", "if middle > 0:"),
    Fault("scenes/_reader.py", "if len(self._mentions) + many > MAX_OBJECTS:", "if len(self._mentions) > MAX_OBJECTS:"),
    Fault(
        "scenes/_sampling.py", "if self.val_share + self.test_share > 1:", "if self.val_share + self.test_share > 2:"
    ),
    Fault(
        "encoders/_preprocessing.py",
        "return (side, int(side * width / height)) if height <= width else",
        "return (side, int(side * width / height)) if height >= width else",
    ),
    Fault(
        "encoders/row_cache.py",
        "return any(head) and not _BEGINNING.startswith(head)",
        "return not _BEGINNING.startswith(head)",
    ),
    Fault("encoders/pretrained/_patches.py", "while high - low >= _CLOSE:", "while high - low >= 100 * _CLOSE:"),
    Fault(
        "models/io/_folder.py",
        "if (size := os.fstat(file.fileno()).st_size) > most:",
        "if (size := os.fstat(file.fileno()).st_size) > 1000 * most:",
    ),
    Fault(
        "models/joint/_initialisation.py",
        "if same_image and same_text and config.dimension == start.config.dimension:",
        "if same_image and same_text:",
    ),
    Fault("models/regions/consensus/_concepts.py", "min_count: AtLeastOne", "min_count: int"),
    Fault(
        "evaluation/analysis/_diagnostics.py",
        "any(low >= high for high, low in pairwise(thresholds))",
        "any(low > high for high, low in pairwise(thresholds))",
    ),
    Fault(
        "evaluation/inputs/_array_files.py", "if key is None and len(keys) != 1:", "if key is None and len(keys) > 2:"
    ),
    Fault(
        "training/distributed/_heartbeats.py",
        'if other != rank and board.check([f"ended/{other}"]):',
        'if other != rank and not board.check([f"ended/{other}"]):',
    ),
    Fault(
        "training/engine/_collapse.py",
        "if step - memory.flat_since >= self.steps and not memory.told:",
        "if step - memory.flat_since >= self.steps:",
    ),
    Fault(
        "training/engine/_loop.py", "if self.state.history or (self.out / HISTORY).exists():", "if self.state.history:"
    ),
    Fault("training/batches/_epochs.py", "if pool > 1:", "if pool > 2:"),
    Fault(
        "doctor/_shared_captions.py",
        "return count * surprise > -math.log(BY_CHANCE)",
        "return count * surprise < -math.log(BY_CHANCE)",
    ),
    Fault(
        "doctor/_losses.py",
        "if cut < CLIPPED_SHARE * len(norms) or np.median(norms) < CLIPPED_TIMES * limit:",
        "if cut < CLIPPED_SHARE * len(norms):",
    ),
    Fault(
        "data/sidecars/_xmp.py",
        "if clean and clean.casefold() not in seen and",
        "if clean and clean not in seen and",
    ),
    Fault(
        "index/stores/lance/_filters.py",
        "return (found < wanted) & _present(column, kind)",
        "return (found <= wanted) & _present(column, kind)",
    ),
    Fault(
        "index/search/_diversity.py",
        "np.where(alike.any(axis=1), ",
        "np.where(alike.all(axis=1), ",
    ),
    Fault("index/cutoff/_calibration.py", "if store.count() > len(names):", "if store.count() < len(names):"),
    Fault("quality/_queries.py", "if len(names) <= number:", "if len(names) < 0:"),
    Fault("quality/_check.py", "if one not in right and score >= bar", "if one not in right"),
    Fault(
        "planning/_stores.py",
        "return max(1, math.ceil(memory / (self.need.memory * _GB",
        "return max(1, math.floor(memory / (self.need.memory * _GB",
    ),
    Fault("planning/_need.py", "if not 0 <= self.captions <= 10_000:", "if not -1 <= self.captions <= 10_000:"),
    Fault("serving/access/_bodies.py", "if len(content) > LARGEST:", "if len(content) > 100 * LARGEST:"),
    Fault(
        "index/stores/_column_counts.py",
        "self._least = least if self._least is None else min(self._least, least)",
        "self._least = least if self._least is None else self._least",
    ),
    Fault(
        "serving/state/_kept_pictures.py",
        "if used < oldest or kept + size > _ROOM_AFTER_SWEEP * self._room:",
        "if used < oldest:",
    ),
    Fault(
        "serving/access/_connections.py", "return waits and self.transport.get_write_buffer_size() == 0", "return waits"
    ),
    Fault("grading/_application.py", "if not 0 <= place < len(questions):", "if not 0 <= place <= len(questions):"),
    Fault("grading/_questions.py", "if one.image not in shown:", "if one.image in shown:"),
    Fault("demo/_comparison.py", "if len(words) > LONGEST:", "if len(words) > 100 * LONGEST:"),
    Fault("demo/_pair.py", "if code < 0:", "if code < -100:"),
    Fault("cli/__init__.py", "UNFORESEEN, INTERRUPTED = 2, 70", "UNFORESEEN, INTERRUPTED = 2, 71"),
    Fault(
        "cli/__init__.py",
        "if isinstance(error, BrokenPipeError) and is_unread()",
        "if isinstance(error, BrokenPipeError)",
    ),
    Fault("cli/frame/_process.py", 'reconfigure(errors="backslashreplace")', 'reconfigure(errors="strict")'),
    Fault(
        "cli/__init__.py",
        "kept = [one for one in given[:end] if one != flag]",
        "kept = [one for one in given if one != flag][:end]",
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant them, print a line for each, and return 1 if one was found by no test."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", help="all if none is named")
    parser.add_argument("--mark", default="not slow and not long", help="which tests are asked, as pytest's -m")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.rooms) - {one.room for one in FAULTS}:
        parser.error(f"no fault is planted in {', '.join(sorted(unknown))}")
    chosen = [one for one in FAULTS if not asked.rooms or one.room in asked.rooms]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda one: _line(one, asked.mark), chosen))
    print(f"{sum(found)} of {len(found)} faults were found")
    return int(not all(found))


def _line(fault: Fault, mark: str) -> bool:
    said = found_by(fault, mark)
    print(f"{'found ' if said else 'MISSED'} {fault.file}: {fault.right} -> {fault.wrong}\n       {said}", flush=True)
    return bool(said)


def found_by(fault: Fault, mark: str) -> str:
    """The first test that fails with a fault and passes without it; empty if none does."""
    namesake = Path("tests", fault.file).with_name(f"test_{Path(fault.file).name}")
    room, doctests = Path("tests", fault.room), Path("src/rungwise", fault.room)
    with tempfile.TemporaryDirectory(prefix="rungwise-fault-") as folder:
        tree = Path(folder, "main")
        _copy_of_the_tree(tree)
        place = tree / "src/rungwise" / fault.file
        right = place.read_text(encoding="utf-8")
        assert fault.right in right, f"{fault.file} has no {fault.right!r} any more: choose another fault"
        wrong = right.replace(fault.right, fault.wrong, 1)
        failing: list[str] = []  # with and without it
        for tests in (namesake, room, doctests):
            while (tree / tests).exists():
                place.write_text(wrong, encoding="utf-8")
                failed = _failed(tree, mark, str(tests), *(f"--deselect={one}" for one in failing))
                if not failed:
                    break
                place.write_text(right, encoding="utf-8")
                test = failed.split(" - ")[0].partition(" ")[2]
                if "::" not in test or not _failed(tree, mark, test):
                    return failed
                failing.append(test)
    return ""


def _copy_of_the_tree(to: Path) -> None:
    for name in files_of_the_tree():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


def _failed(tree: Path, mark: str, *tests: str) -> str:
    """The line of the first test that failed, or the last one said if pytest itself did; empty if all passed."""
    run = subprocess.run(
        [*_PYTEST, "-m", mark, *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode in (0, 5):
        return ""
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0] if failed else (run.stdout + run.stderr).strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
