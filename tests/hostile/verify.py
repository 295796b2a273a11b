"""Damaged files of all that rungwise makes, under ``rungwise verify``: it finds whatever a command would stumble over.

Each case copies a good folder, damages one file of it (a flipped bit, half of it cut off, something appended, the file
removed), and verifies it. Where verify is content, everything that commands read of the folder is read: the answers
must be those of the good folder. Bits are flipped at the beginning, in the middle, at the end, and where it is drawn.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np

from rungwise.core.errors import UserError
from tests.hostile import answers, world
from tests.hostile.choice import Choice
from tests.hostile.commands import _through_the_command_line
from tests.hostile.counting import Case, Verdict
from tests.hostile.files import _last, _remove
from tests.hostile.forked import Outcome, outcome_of, outcomes

FAMILY = "verify"

_MEMORY = 4 << 30
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
    said = ("calibration.json", "grades.jsonl")
    return [
        Kind("index, exact store", "made/exact", _of_index, said),
        Kind("index, LanceDB", "made/lance", _of_index, said),
        Kind("model, joint embedding", "run/model", answers.of_model),
        Kind("model, published", "saved_clip", answers.of_model),
        Kind("model, transformer", "saved_transformer", answers.of_model),
        Kind("model, word vectors", "saved_words", answers.of_model),
        Kind("model, exported", "exported", _of_exported),
        Kind("model, fitted", "made/fit/model", _of_fitted),
        Kind("run", "made/run", _of_run),
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
        found = [one for one in _attacks(kind, world, choice.seed) if choice.takes(f"{kind.name}: {one[0]}: {one[1]}")]
        jobs = [partial(_carry_out, kind, world, scratch / str(number), *attack) for number, attack in enumerate(found)]
        for (file, name, _), outcome in zip(found, outcomes(jobs, memory=_MEMORY), strict=True):
            verdict, detail = _judged(outcome, unchecked, answer, file in kind.optional and name == "removed")
            yield Case(FAMILY, kind.name, f"{file}: {name}", verdict, detail)
        for left in scratch.iterdir():
            _remove(left)


def _make(root: Path) -> None:
    """Indexes with everything that an index may hold, a run with results, and a fit."""
    from rungwise.data.readers import read
    from rungwise.index import Index, lance
    from rungwise.index.grades import Grade, add_grade
    from rungwise.training.fit_run import fit_run
    from tests.training.test_fit_run import labelled, of

    made = root / "made"
    if made.exists():
        return
    shutil.copytree(root / "csv", made / "pictures")
    last = made / "pictures" / world.NAMES[-1]
    last.write_bytes(last.read_bytes()[:40])  # is left out, and listed
    data, model = read(made / "pictures"), world.model_in(root / "run/model")
    for store in ("exact", "lance"):
        with mock.patch.multiple(lance, PAYS_FROM_BYTES=0, SCALARS_PAY_FROM=0):  # all indexes of the engine
            index = Index.build(data, model, made / store, store=store, thumbnails=True)  # type: ignore[arg-type]
        index.remove([world.NAMES[0]])
        index.keep_calibration(world._calibration())
        for at, text in enumerate(world.CAPTIONS[1:4]):
            add_grade(made / store, Grade(text, world.NAMES[at], "right", "2024-05-01T12:00:00Z"))
    shutil.copytree(root / "run", made / "run")
    fit_run(of("cca", dimension=(2, 3)), labelled(), made / "fit")


def _attacks(kind: Kind, world: Path, seed: int) -> Iterator[tuple[str, str, bytes | None]]:
    """File, name of the attack, and its new bytes; None removes it."""
    place = world / kind.place
    files = [one for one in sorted(place.rglob("*")) if one.is_file()] if place.is_dir() else [place]
    for path in files:
        file, data = path.relative_to(place).as_posix(), path.read_bytes()
        draw = Random(f"{seed} {kind.name} {file}")
        if data:
            drawn = [draw.randrange(len(data)) for _ in range(_DRAWN)]
            for at in sorted({0, len(data) // 2, len(data) - 1, *drawn}):
                bit = draw.randrange(8)
                changed = bytearray(data)
                changed[at] ^= 1 << bit
                yield file, f"bit {bit} of byte {at}", bytes(changed)
            yield file, "cut in half", data[: len(data) // 2]
        yield file, "appended to", data + draw.randbytes(16)
        if place.is_dir():
            yield file, "removed", None


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


def _carry_out(kind: Kind, world: Path, folder: Path, file: str, _: str, data: bytes | None) -> Any:
    """What verify says; and where it finds nothing, what commands read then, or why they do not."""
    try:
        place = _copied(kind, world, folder)
        target = place / file if place.is_dir() else place
        if data is None:
            target.unlink()
        else:
            target.write_bytes(data)
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
    from rungwise.index import Index
    from rungwise.index.where_text import parse_where

    def found() -> Any:
        index = Index.open(folder)
        draw, words = np.random.default_rng(0), [*world.WORDS, *map(str, range(8))]
        queries = draw.normal(size=(3, index.manifest.dimension)).astype(np.float32)
        return [
            answers.of_index(folder),
            [index.picture_store.find_words(word, 8).ids for word in words],
            [index.caption_store.find_words(word, 8).ids for word in words],
            [index.picture_store.search(queries, 8, parse_where(where)).ids for where in _FILTERS],
            [index.picture_store.count(parse_where(where)) for where in _FILTERS],
            [index.picture_store.search(queries, 3, exact=exact).ids for exact in (False, True)],
            [answers.digest(np.frombuffer(index.thumbnail(one.id) or b"", np.uint8)) for one in index.items()],
            str(index.calibration),
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


def _of_fitted(folder: Path) -> Any:
    from rungwise.models import load
    from tests.training.test_fit_run import labelled

    model = load(folder, "cpu")
    return [model.fingerprint, answers.digest(model.on(labelled()).block(range(9), range(9)))]


def _of_run(folder: Path) -> Any:
    """What goes on with a run, and what table and doctor read of it."""
    from rungwise.evaluation import Result
    from rungwise.training.fit_config import load_run_config
    from rungwise.training.run_folder import CHECKPOINT, HISTORY

    results = [Result.from_json(path).plain() for path in sorted((folder / "results").glob("*.json"))]
    return _plain(
        [
            repr(load_run_config(folder / "config.yaml")),
            (folder / HISTORY).read_text(),
            answers.of_checkpoint(folder) if (folder / CHECKPOINT).exists() else None,
            (_of_fitted if folder.name == "fit" else answers.of_model)(folder / "model"),
            repr(results),
        ],
        folder,
    )


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
    from rungwise.relevance.judgements import read_judgements

    found = read_judgements(path)
    return [[repr(one) for one in found], len(found.issues)]


def _plain(value: Any, folder: Path) -> Any:
    """As JSON gives it back, without the place of the copy."""
    if isinstance(value, str):
        return value.replace(str(folder.parent.parent), "").replace(str(folder.parent), "")
    if isinstance(value, dict):
        return {name: _plain(one, folder) for name, one in value.items()}
    return [_plain(one, folder) for one in value] if isinstance(value, (list, tuple)) else value
