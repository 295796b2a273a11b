"""Damaged files of all that rungwise makes, under ``rungwise verify``: it finds whatever a command would stumble over.

Each case copies a good folder, damages one file of it (a flipped bit, half of it cut off, something appended, the file
removed), and verifies it. Where verify is content, everything that commands read of the folder is read: the answers
must be those of the good folder. Bits are flipped at the beginning, in the middle, at the end, and where it is drawn.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from rungwise.cli import main
from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from tests.hostile import answers, world
from tests.hostile.choice import Choice
from tests.hostile.commands import _through_the_command_line
from tests.hostile.counting import Case, Verdict
from tests.hostile.files import _last, _remove
from tests.hostile.forked import Outcome, outcome_of, outcomes

FAMILY = "verify"

_MEMORY = 4 << 30
_DRAWN_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}|(?<![0-9a-f])[0-9a-f]{32,}|\d{9,}|tfevents.*")
_DRAWN = 3
"""Bits that are flipped where it is drawn, beside those at the beginning, in the middle and at the end."""


@dataclass(frozen=True)
class Kind:
    """A folder or a file that rungwise makes.

    Attributes:
        name: For the table.
        place: In the world.
        read: Everything that commands read of it, as an answer that can be compared.
        optional: Files that a person may take away: without them the folder is whole, and commands answer without.
    """

    name: str
    place: str
    read: Callable[[Path], Any]
    optional: tuple[str, ...] = ()


def kinds() -> list[Kind]:
    """Of each family of folders one, of those that differ in their files several."""
    said = ("calibration.json", "grades.jsonl", "favourites.jsonl", "queries.jsonl")
    return [
        Kind("index, exact store", "made/exact", _of_index, said),
        Kind("index, LanceDB", "made/lance", _of_index, said),
        Kind("model, joint embedding", "run/model", answers.of_model),
        Kind("model, published", "saved_clip", answers.of_model),
        Kind("model, transformer", "saved_transformer", answers.of_model),
        Kind("model, word vectors", "saved_words", answers.of_model),
        Kind("model, exported", "exported", _of_exported),
        Kind("model, fitted", "made/fit/model", _of_fitted),
        Kind("model of regions", "made/regions", _of_scorer),
        Kind("model of pairs of texts", "made/pairs", _of_pair_model),
        Kind("run", "made/run", _of_run, ("results/result.json", "steps.jsonl")),
        Kind("run, fit", "made/fit", _of_run),
        Kind("degrees, dense", "degrees/dense", answers.of_degrees),
        Kind("degrees, the k best", "degrees/best", answers.of_degrees),
        Kind("cache of rows", "caches/rows-2", lambda folder: answers.of_rows(folder.parent)),
        Kind("cache, whole", "caches", _of_caches),
        Kind("scores of pairs", "caches/pairs", lambda path: answers.of_pairs(path.parent)),
        Kind("judgements", "evaluation/people.jsonl", _of_judgements),
        Kind("result", "evaluation/first.json", lambda path: answers.of_result(path.parent)),
        Kind("calibration", "calibrations/calibration.json", answers.of_calibration),
        Kind("weights of sources", "calibrations/fit.json", answers.of_fit),
    ]


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Damage every file of every kind."""
    made = outcome_of(partial(_make, world), memory=None)
    assert made.ending == "returned", f"the good folders cannot be made: {made}"
    for kind in kinds():
        jobs = [partial(_good, kind, world, scratch / "good")]
        (good,) = outcomes(jobs, memory=_MEMORY)
        assert good.ending == "returned", f"{kind.name}: the good folder is not read: {good}"
        code, unchecked, answer = good.value
        assert code in (0, 3), f"{kind.name}: verify finds the good folder wrong: {unchecked}"
        found = [one for one in _attacks(kind, world, choice.seed) if choice.takes(f"{kind.name}: {one.name}")]
        jobs = [partial(_carry_out, kind, world, scratch / str(number), one) for number, one in enumerate(found)]
        for attack, outcome in zip(found, outcomes(jobs, memory=_MEMORY), strict=True):
            verdict, detail = _judged(outcome, unchecked, answer, attack.data is None and attack.file in kind.optional)
            yield Case(FAMILY, kind.name, attack.name, verdict, detail)
        for left in scratch.iterdir():
            _remove(left)


def _make(root: Path) -> None:
    """Indexes with everything that an index may hold, a run with results, and a fit."""
    from rungwise.data import read
    from rungwise.index import Index
    from rungwise.index.layout import Grade, SavedSearch, add_grade, add_queries, keep_favourite, save_search
    from rungwise.index.stores.lance import store as lance
    from rungwise.training.fit import fit_run
    from tests.models.regions.aligned_models import small_model
    from tests.training.fit.test_grid import labelled, of

    made = root / "made"
    if made.exists():
        return
    shutil.copytree(root / "csv", made / "pictures")
    last = made / "pictures" / world.NAMES[-1]
    last.write_bytes(last.read_bytes()[:40])  # is left out, and listed
    data, model = read(made / "pictures"), world.model_in(root / "run/model")
    for store in ("exact", "lance"):
        with mock.patch.multiple(
            lance, LISTS_PAY_FROM_BYTES=0, MAPPED_FROM_ROWS=1, SCALARS_PAY_FROM=0
        ):  # all indexes of the engine
            index = Index.build(data, model, made / store, store=store, thumbnails=True)  # type: ignore[arg-type]
        index.remove([world.NAMES[0]])
        index.keep_calibration(world.calibration())
        for at, text in enumerate(world.CAPTIONS[1:4]):
            add_grade(made / store, Grade(text, world.NAMES[at], "right", "2024-05-01T12:00:00Z"))
            keep_favourite(made / store, world.NAMES[at])
        add_queries(made / store, world.CAPTIONS[:2], days=30, most=10, day=date(2999, 5, 1))
        save_search(made / store, SavedSearch("dogs", world.CAPTIONS[1], "", "2024-05-01T12:00:00Z"))
    shutil.copytree(root / "run", made / "run")
    fit_run(of("cca", dimension=(2, 3)), labelled(), made / "fit")
    small_model("sgr").save_pretrained(made / "regions")
    arguments = ["relevance", "train-cross-encoder", str(root / "scored"), "--model", str(root / "pair_encoder")]
    assert main([*arguments, "--epochs", "1", "--out", str(made / "pairs")]) == 0


class Attack(NamedTuple):
    """One damage.

    Attributes:
        file: Relative to the folder.
        name: For the table.
        data: New bytes; None removes the file.
    """

    file: str
    name: str
    data: bytes | None


def _attacks(kind: Kind, world: Path, seed: int) -> Iterator[Attack]:
    place = world / kind.place
    files = [one for one in sorted(place.rglob("*")) if one.is_file()] if place.is_dir() else [place]
    for path, called in _called(files, place):
        file, data = path.relative_to(place).as_posix(), path.read_bytes()
        draw = Random(f"{seed} {kind.name} {called}")
        if data:
            for share in (0.0, 0.5, 1.0, *(round(draw.random(), 3) for _ in range(_DRAWN))):
                changed, bit = bytearray(data), draw.randrange(8)
                changed[int(share * (len(data) - 1))] ^= 1 << bit
                yield Attack(file, f"{called}: bit {bit} at {share:.1%}", bytes(changed))
            half = len(data) // 2
            if path.suffix == ".jsonl" and b"\n" in data[half - 1 : half + 1]:
                half -= 2  # whole lines are a shorter log, and no damage
            yield Attack(file, f"{called}: cut in half", data[:half])
        yield Attack(file, f"{called}: appended to", data + draw.randbytes(16))
        if place.is_dir():
            yield Attack(file, f"{called}: removed", None)


def _called(files: Sequence[Path], place: Path) -> Iterator[tuple[Path, str]]:
    """Files with names for the table: what an engine drew for its own is a star, and files of one name are counted."""
    seen: Counter[str] = Counter()
    for path in sorted(files, key=lambda path: (_DRAWN_NAME.sub("*", str(path)), path.stat().st_size)):
        name = _DRAWN_NAME.sub("*", path.relative_to(place).as_posix() if path != place else path.name)
        seen[name] += 1
        yield path, name if seen[name] == 1 else f"{name} ({seen[name]})"


def _copied(kind: Kind, world: Path, folder: Path) -> Path:
    """The good one, at the same place of another world, in which everything else is there by links."""
    folder.mkdir(parents=True)
    first = kind.place.split("/")[0]
    for one in world.iterdir():
        if one.name != first:
            (folder / one.name).symlink_to(one)
    place = folder / kind.place
    shutil.copytree(world / first, folder / first, symlinks=True)
    return place


def _good(kind: Kind, world: Path, folder: Path) -> Any:
    place = _copied(kind, world, folder)
    code, unchecked = _verified(place, folder)
    return [code, unchecked, kind.read(place)]


def _carry_out(kind: Kind, world: Path, folder: Path, attack: Attack) -> Any:
    """What verify says; and where it finds nothing, what commands read then, or why they do not."""
    try:
        place = _copied(kind, world, folder)
        target = place / attack.file if place.is_dir() else place
        if attack.data is None:
            target.unlink()
        else:
            target.write_bytes(attack.data)
        code, said = _verified(place, folder)
        if code not in (0, 3):
            return [code, said, None]
        try:
            return [code, said, kind.read(place)]
        except Exception as error:
            return [code, said, f"{type(error).__name__}: {error}"]
    finally:
        _remove(folder)


def _verified(place: Path, folder: Path) -> tuple[int, list[str]]:
    """Exit status, and the lines of what was not checked; of one that found something wrong, those."""
    arguments = ["verify", str(place), "--no-encode"]
    code, out, error = _through_the_command_line(arguments, folder)
    wanted = "not checked: " if code in (0, 3) else "wrong: "
    lines = [line for line in out.splitlines() if line.startswith(wanted)] or error.splitlines()[-2:]
    return code, [line.replace(str(folder), "") for line in lines]


def _judged(outcome: Outcome, unchecked: list[str], answer: Any, is_removal: bool) -> tuple[Verdict, str]:
    if outcome.ending == "died":
        return "traceback", f"the process died with status {outcome.value}: {outcome.text}"
    if outcome.ending != "returned":
        return "traceback", "\n    ".join(_last(outcome.text))
    code, said, found = outcome.value
    if code == 2 and said:
        return "clean", said[0]
    if code not in (0, 3):
        return "traceback", f"status {code}: {said}"
    if len(said) > len(unchecked):
        return "clean", said[0]
    if found == answer or _is_less(found, answer):
        return "accepted", "harmless: everything is read as before"
    if is_removal:
        return "accepted", "harmless: a file that is not there says nothing"
    return "wrong", f"verify finds nothing, and commands find {str(found)[:300]}"


def _is_less(found: Any, good: Any) -> bool:
    """Whether a cache answers less, which is computed again, and nothing wrong."""
    if not isinstance(found, dict) or not isinstance(good, dict) or "issues" not in good:
        return False
    return found.get("main") is True and good.get("main") is True


def _of_index(folder: Path) -> Any:
    """What searches of every kind find, and what they find once the index is compacted."""
    from rungwise.data.pictures import picture_bytes, thumbnail
    from rungwise.index import Index
    from rungwise.index.filters import parse_where
    from rungwise.index.layout import read_favourites
    from rungwise.index.update import SIDE

    def hash_of_bytes(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    def found() -> Any:
        index, kept = Index.open(folder), read_favourites(folder)
        draw, words = np.random.default_rng(0), [*world.WORDS, *map(str, range(8))]
        queries = draw.normal(size=(3, index.manifest.dimension)).astype(np.float32)
        return [
            answers.of_index(folder),
            [index.picture_store.find_words(word, 8).ids for word in words],
            [index.caption_store.find_words(word, 8).ids for word in words],
            [index.picture_store.search(queries, 8, parse_where(where)).ids for where in _FILTERS],
            [index.picture_store.count(parse_where(where)) for where in _FILTERS],
            [index.picture_store.search(queries, 3, exact=exact).ids for exact in (False, True)],
            # A page that finds no small copy makes it from the picture.
            [
                hash_of_bytes(index.thumbnail(one.id) or thumbnail(picture_bytes(one.path), SIDE))
                for one in index.items()
            ],
            str(index.calibration),
            [repr(one) for one in (kept.pictures, kept.searches, len(kept.issues))],
            [[repr(one) for one in index.grades()], len(index.grades().issues)],
            [str(one) for one in index.issues],
        ]

    before = found()
    index = Index.open(folder)
    index.compact()
    return _plain([before, found()], folder)


_FILTERS = ("label = 'red'", "split = 'train' and not label = 'green'", "width >= 20", "captions has 'number'")


def _of_exported(folder: Path) -> Any:
    model = world.model_in(folder)
    picture = (folder.parent / "csv" / world.NAMES[0]).read_bytes()
    return [answers.of_model(folder), answers.digest(model.encode_image([picture]).vectors), model.stands_for]


def _of_scorer(folder: Path) -> Any:
    from rungwise.models import load

    model = load(folder, "cpu")
    regions = np.random.default_rng(0).normal(size=(2, 3, 7)).astype(np.float32)
    return [model.fingerprint, answers.digest(model.block(FeatureRows(regions), ["a dog", "two dogs"]))]


def _of_pair_model(folder: Path) -> Any:
    from rungwise.relevance import CrossEncoder, PairInference

    source = CrossEncoder(world.CAPTIONS[:3], [0, 1, 2], folder, scale="sigmoid", inference=PairInference(device="cpu"))
    return [source.fingerprint, answers.digest(source.pair_block([0, 1], [1, 2]))]


def _of_fitted(folder: Path) -> Any:
    from rungwise.models import load
    from tests.training.fit.test_grid import labelled

    model = load(folder, "cpu")
    return [model.fingerprint, answers.digest(model.on(labelled()).block(range(9), range(9)))]


def _of_run(folder: Path) -> Any:
    """What goes on with a run, and what table and doctor read of it."""
    from rungwise.evaluation import Result
    from rungwise.training import CHECKPOINT, HISTORY
    from rungwise.training.config import load_run_config

    results = [Result.from_json(path).plain() for path in sorted((folder / "results").glob("*.json"))]
    return _plain(
        [
            repr(load_run_config(folder / "config.yaml")),
            [json.loads(line) for line in (folder / HISTORY).read_text().splitlines()],
            _of_steps(folder),
            answers.of_checkpoint(folder) if (folder / CHECKPOINT).exists() else None,
            (_of_fitted if folder.name == "fit" else answers.of_model)(folder / "model"),
            repr(results),
        ],
        folder,
    )


def _of_steps(folder: Path) -> Any:
    """As doctor reads them."""
    from rungwise.doctor._run_files import read_run

    found = read_run(folder)
    return [[repr(one) for one in found.steps], len(found.left_out)]


def _of_caches(folder: Path) -> Any:
    """Whatever is known of it; what is not known any more is computed again."""
    found = [answers.of_rows(folder), answers.of_pairs(folder), answers.of_facts(folder)]
    try:
        kept = answers.of_kept(folder)
    except UserError:
        kept = {"main": "made anew"}
    sound = all(one["main"] is True for one in found)
    return {"main": sound and kept["main"] in ("made anew", answers.of_kept(folder)["main"]), "issues": 0}


def _of_judgements(path: Path) -> Any:
    from rungwise.relevance.human import read_judgements

    found = read_judgements(path)
    return [[repr(one) for one in found], len(found.issues)]


def _plain(value: Any, folder: Path) -> Any:
    """As JSON gives it back, without the place of the copy."""
    if isinstance(value, str):
        return value.replace(str(folder.parent.parent), "").replace(str(folder.parent), "")
    if isinstance(value, dict):
        return {name: _plain(one, folder) for name, one in value.items()}
    return [_plain(one, folder) for one in value] if isinstance(value, (list, tuple)) else value
