"""Folders that name modules: what a folder records is printed, and never imported.

Each case takes a good folder or file of one kind, writes into it that its parts came from modules and packages called
:data:`TRAP`, seals it again as whoever made it could, and puts a module of that name beside every one of its files and
into the working folder. Then a command reads it. One case of each kind names the module itself, after ``--module``: it
must be imported, or the others would show nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.hostile.choice import Choice
from tests.hostile.commands import _through_the_command_line
from tests.hostile.counting import Case, Verdict
from tests.hostile.files import _last, _remove
from tests.hostile.forked import Outcome, outcomes

FAMILY = "modules"
TRAP = "trap_beside_files"

_SPRUNG = "sprung"
_RECORD = {"modules": [TRAP, f"{TRAP}.py", f"../{TRAP}.py"], "packages": [TRAP]}
_MEMORY = 4 << 30


@dataclass(frozen=True)
class Kind:
    """A kind of folder or file.

    Attributes:
        name: For the table.
        folders: Of the world, that the commands need.
        set_up: Writes the names of modules into the copies of these folders, below the place.
        lines: Commands that read it, with ``{}`` for the place.
    """

    name: str
    folders: tuple[str, ...]
    set_up: Callable[[Path], None]
    lines: tuple[tuple[str, ...], ...]


def kinds() -> list[Kind]:
    """Everything that rungwise writes and reads again, and collections."""
    model, index, run = "{}/run/model", "{}/index/index", "{}/run/config.yaml"
    evaluated = ("--split", "all", "--cache", "{}/cache")
    return [
        Kind("run", ("run", "csv"), _in_a_run, (
            ("train", run, "{}/csv", "--out", "{}/run", "--cache", "{}/cache", "--resume", "--epochs", "3"),
            ("train", run, "{}/csv", "--out", "{}/new", "--cache", "{}/cache"),
            ("table", "vsepp:1", "--runs", "{}/run"), ("doctor", "{}/run"), ("verify", "{}/run"),
            ("evaluate", "{}/run", "{}/csv", *evaluated),
        )),
        Kind("model", ("run", "csv"), _in_a_model, (
            ("evaluate", model, "{}/csv", *evaluated), ("index", "{}/csv", "--model", model, "--out", "{}/new"),
            ("calibrate", model, "{}/csv", "--split", "all", "--out", "{}/new.json"), ("verify", model),
            ("export", model, "--out", "{}/new"), ("push", model, "someone/model"),
            ("serve-model", model, "--port", "0"),
        )),
        Kind("model, its kind", ("run", "csv"), _in_a_model_of_a_kind, (
            ("evaluate", model, "{}/csv", *evaluated), ("verify", model),
        )),
        Kind("model, exported", ("exported", "csv"), _in_an_exported_model, (
            ("index", "{}/csv", "--model", "{}/exported", "--out", "{}/new"), ("verify", "{}/exported"),
        )),
        Kind("model of pairs", ("grader", "scored"), _in_a_model_of_pairs, (
            ("relevance", "train-cross-encoder", "{}/scored", "--model", "{}/grader", "--epochs", "1", "--out",
             "{}/new"), ("verify", "{}/grader"),
        )),
        Kind("index", ("index", "run", "csv"), _in_an_index, (
            ("search", index, "a red picture", "--model", model), ("check", index), ("verify", index),
            ("serve", index, "--model", model, "--port", "0", "--no-browser"), ("index", "compact", index),
            ("index", "{}/csv", "--model", model, "--out", index),
        )),
        Kind("backup", ("index",), _in_a_backup, (
            ("index", "restore", "{}/index/backup", "--out", "{}/new"), ("verify", "{}/index/backup"),
        )),
        Kind("degrees", ("degrees", "evaluation"), _in_degrees, (
            ("evaluate", "--captions-per-image", "1", "--similarity", "{}/evaluation/similarity.npy", "--relevance",
             "{}/degrees/dense", "--measures", "nDCG@10"), ("verify", "{}/degrees/dense"),
        )),
        Kind("result", ("evaluation",), _in_a_result, (
            ("compare", "{}/evaluation/first.json", "{}/evaluation/second.json", "--draws", "20"),
            ("evaluate", "{}/evaluation/first.json"), ("verify", "{}/evaluation/first.json"),
        )),
        Kind("calibration", ("calibrations", "index", "run"), _in_a_calibration, (
            ("search", index, "a red picture", "--model", model),
            ("verify", "{}/calibrations/calibration.json"),
        )),
        Kind("collection", ("csv",), _in_a_collection, (
            ("inspect", "{}/csv"), ("inspect", "{}/csv", "--layout", TRAP), ("doctor", "{}/csv"),
            ("relevance", TRAP, "{}/csv"), ("train", "vsepp", "{}/csv", "--loss.kind", TRAP, "--out", "{}/new"),
            ("index", "{}/csv", "--store", TRAP, "--out", "{}/new"), ("inspect", "{}/csv", "--module", TRAP),
        )),
    ]  # fmt: skip


@dataclass(frozen=True)
class _Attack:
    kind: Kind
    line: tuple[str, ...]
    named: bool = False


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Every kind of folder under every command that reads it."""
    for kind in kinds():
        found = [_Attack(kind, line) for line in kind.lines if choice.takes(f"{kind.name}: {' '.join(line)}")]
        if found:
            found.append(_Attack(kind, (*kind.lines[0], "--module", f"{{}}/{TRAP}.py"), named=True))
        jobs = [partial(_carry_out, one, world, scratch / str(number)) for number, one in enumerate(found)]
        for attack, outcome in zip(found, outcomes(jobs, memory=_MEMORY), strict=True):
            verdict, detail = _judged(attack, outcome)
            yield Case(FAMILY, kind.name, " ".join(attack.line), verdict, detail)
        for left in scratch.iterdir():
            _remove(left)


def _carry_out(attack: _Attack, world: Path, place: Path) -> Any:
    try:
        place.mkdir()
        for folder in attack.kind.folders:
            shutil.copytree(world / folder, place / folder, copy_function=shutil.copyfile)
        attack.kind.set_up(place)
        trap = f"from pathlib import Path\nPath({str(place / _SPRUNG)!r}).touch()\n"
        for folder in (place, *(one for one in place.rglob("*") if one.is_dir() and attack.kind.name == "collection")):
            (folder / f"{TRAP}.py").write_text(trap)
        os.chdir(place)
        sys.path[:] = [one for one in sys.path if one]  # the installed command does not look into the working folder
        said = _through_the_command_line([one.replace("{}", str(place)) for one in attack.line], place)
        return [(place / _SPRUNG).exists(), TRAP in sys.modules, *said]
    finally:
        sys.modules.pop(TRAP, None)
        os.chdir("/")
        _remove(place)


def _judged(attack: _Attack, outcome: Outcome) -> tuple[Verdict, str]:
    if outcome.ending != "returned":
        return "traceback", "\n    ".join(_last(outcome.text)) or f"died with status {outcome.value}"
    sprung, imported, code, out, error = outcome.value
    if attack.named:
        return ("accepted", "imported, as it was named") if sprung else ("wrong", f"not imported: {error[-300:]}")
    if sprung or imported:
        return "wrong", "a module was imported that nobody named"
    if code == 70 or "Traceback" in error:
        return "traceback", error.strip()[-500:]
    return ("accepted" if code in (0, 1, 3, 130) else "clean"), (error or out).strip()[-300:]


def _in_a_run(place: Path) -> None:
    path = place / "run" / "config.yaml"
    values = yaml.safe_load(path.read_text()) | _RECORD | {"loss": {"kind": TRAP}}
    values["model"]["image"] = {"kind": TRAP}
    values["data"] |= {"layout": TRAP, "relevance": TRAP}
    path.write_text(yaml.safe_dump(values))
    _in_a_model(place)


def _in_a_model(place: Path) -> None:
    _resealed(place / "run" / "model", "config.json", lambda said: said["model"].update(image={"kind": TRAP}))


def _in_a_model_of_a_kind(place: Path) -> None:
    _resealed(place / "run" / "model", "config.json", lambda said: said.update(kind=TRAP))


def _in_an_exported_model(place: Path) -> None:
    _resealed(place / "exported", "config.json", lambda said: said.update(kind=TRAP))


def _in_a_model_of_pairs(place: Path) -> None:
    classes = {"architectures": [f"{TRAP}.Model"], "auto_map": {"AutoModel": f"{TRAP}.Model"}}
    classes |= {"sentence_transformers": {"activation_fn": f"{TRAP}.Activation"}}
    _resealed(place / "grader", "config.json", lambda said: said.update(classes))


def _in_an_index(place: Path) -> None:
    from rungwise.index.layout.manifest import read_manifest, write_manifest

    folder = place / "index" / "index"
    names = {name: tuple(value) for name, value in _RECORD.items()}
    write_manifest(folder, replace(read_manifest(folder), store=TRAP, **names))


def _in_a_backup(place: Path) -> None:
    """A checksum within the description, and the seal around it."""
    from rungwise.core.disk import write_seal
    from rungwise.index.stores import write_description

    folder = place / "index" / "backup"
    said = json.loads((folder / "backup.json").read_text())
    del said["checksum"]
    said["manifest"] |= {"store": TRAP, **_RECORD}
    write_description(folder / "backup.json", said, indent=2)
    (folder / "SHA256SUMS").unlink()
    write_seal(folder)


def _in_degrees(place: Path) -> None:
    _resealed(place / "degrees" / "dense", "relevance.json", lambda said: said.update(source=TRAP))


def _in_a_result(place: Path) -> None:
    """A measure of another name, in a file whose checksum is right."""
    from rungwise.evaluation.result._result_file import checksum

    path = place / "evaluation" / "first.json"
    content = json.loads(path.read_text().replace("i2t/MedR", f"i2t/{TRAP.replace('_', '')}"))
    lists = {name: content.pop(name) for name in ("per_query", "image_of_query")}
    content.pop("checksum")
    floats, whole = (
        {name: np.array(values, kind) for name, values in lists[key].items()}
        for key, kind in (("per_query", np.float64), ("image_of_query", np.int64))
    )
    content["checksum"] = checksum(content, floats, whole)
    path.write_text(json.dumps(content | lists))


def _in_a_calibration(place: Path) -> None:
    from rungwise.calibration._json_file import write

    path = place / "calibrations" / "calibration.json"
    said = json.loads(path.read_text()) | {"source": TRAP} | _RECORD
    del said["seal"]
    write(said, path)
    shutil.copyfile(path, place / "index" / "index" / "calibration.json")


def _in_a_collection(place: Path) -> None:
    (place / "csv" / "config.yaml").write_text(yaml.safe_dump(_RECORD))
    (place / "csv" / "conftest.py").write_text(f"import {TRAP}\n")


def _resealed(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a description and the seal of its folder."""
    from rungwise.core.disk import has_seal, write_seal

    said: Mapping[str, Any] = json.loads((folder / name).read_text())
    altered = dict(said) | _RECORD
    change(altered)
    (folder / name).write_text(json.dumps(altered, indent=2) + "\n")
    if has_seal(folder):
        (folder / "SHA256SUMS").unlink()
        write_seal(folder)
