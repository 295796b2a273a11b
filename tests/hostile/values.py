"""Every value of every settings file, header and JSON file that is read, in turn replaced by odd ones.

Checksums are made to fit again, so that the odd value reaches whoever reads it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from safetensors.torch import load

from rungwise.core.disk import SEAL, add_to_seal
from rungwise.core.disk.sealed_lines import sealed
from rungwise.training.engine._checkpoint import header_of
from tests.hostile.choice import Choice
from tests.hostile.counting import Case
from tests.hostile.damage_texts import EVIL_VALUES, with_value
from tests.hostile.files import Attack, judged
from tests.hostile.forked import outcomes
from tests.hostile.readers import Subject, subjects

FAMILY = "values"

_ALIKE = 3
"""Elements of a list that are tried, from its beginning; the others are mostly like them."""
_MARK = "\ue000here\ue000"
_MAGIC = b"\x93NUMPY"

Document = tuple[Any, Callable[[str], bytes]]
"""Values, and what makes a whole file of their JSON text."""


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """All readers of the kit, and those of a run that goes on."""
    readers = [*subjects(), *_of_runs()]
    jobs = [partial(_read, one, world, scratch / "good") for one in readers]
    for subject, good in zip(readers, list(outcomes(jobs)), strict=True):
        assert good.ending == "returned", f"{subject.name} cannot read the good file: {good}"
        found = [one for one in _attacks(subject, world) if choice.takes(f"{subject.name}: {one[0]}: {one[1]}")]
        jobs = [partial(_read, subject, world, scratch / str(at), *one) for at, one in enumerate(found)]
        for (file, attack, _), outcome in zip(found, outcomes(jobs), strict=True):
            verdict, detail = judged(Attack(subject, file, attack), outcome, good.value)
            yield Case(FAMILY, subject.name, f"{file}: {attack}", verdict, detail)
        for left in scratch.iterdir():
            shutil.rmtree(left, ignore_errors=True)


def _of_runs() -> list[Subject]:
    checkpoint = ("checkpoint.safetensors",)
    return [
        Subject("resumed run", "run", checkpoint, _resumed),
        Subject("doctor of a run", "run", ("history.jsonl", "steps.jsonl", *checkpoint), _examined),
    ]


def _resumed(folder: Path) -> Any:
    from rungwise.data import read
    from rungwise.training.engine import train
    from tests.hostile import world

    config = world.run_config()
    train(config, read(folder.parent / "csv"), folder, cache=folder.parent / "cache", device="cpu", resume=True)
    return {"main": (folder / "history.jsonl").read_text()}


def _examined(folder: Path) -> Any:
    from rungwise.doctor import examine_run

    return {"main": repr(examine_run(folder).findings).replace(str(folder), "")}


def _attacks(subject: Subject, world: Path) -> Iterator[tuple[str, str, bytes]]:
    """File, name of the attack, and the file's new bytes."""
    for file in subject.files:
        for part, (values, written) in _documents(world / subject.folder / file):
            for place in _places(values):
                marked = json.dumps(with_value(values, place, _MARK))
                spot = "/".join(str(one) for one in (*part, *place))
                for name, value in EVIL_VALUES:
                    with suppress(_NOT_WRITTEN):
                        yield file, f"{spot} is {name}", written(marked.replace(json.dumps(_MARK), value))


_NOT_WRITTEN = (ValueError, RecursionError)
"""What the writer of a format says of a value that it cannot hold."""


def _places(values: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if above:
        yield above
    inner = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, one in list(inner)[: _ALIKE if isinstance(values, list) else None]:
        yield from _places(one, (*above, key))


def _documents(path: Path) -> Iterator[tuple[tuple[str, ...], Document]]:
    """What of a file is a value of JSON; a file may hold several."""
    if not path.is_file():
        return
    data = path.read_bytes()
    if path.suffix == ".json":
        yield (), (json.loads(data), partial(_with_checksum, json.loads(data)))
    elif path.suffix == ".jsonl" and data:
        first, rest = data.split(b"\n", 1)
        yield (), (json.loads(first), lambda text: _with_checksum(json.loads(first), text) + b"\n" + rest)
    elif path.suffix == ".yaml":
        yield (), (yaml.safe_load(data), lambda text: text.encode())
    elif data.startswith(_MAGIC):
        size = struct.unpack("<H", data[8:10])[0]
        header = ast.literal_eval(data[10 : 10 + size].decode())
        yield (), (header | {"shape": list(header["shape"])}, partial(_as_npy, data[10 + size :]))
    elif path.suffix == ".safetensors":
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + size])
        told = header.get("__metadata__", {})
        yield (), (_first(header), lambda text: _as_tensors({**header, **json.loads(text)}, data[8 + size :]))
        if "state" in told:
            tensors = load(data)
            yield (
                ("state",),
                (
                    json.loads(told["state"]),
                    lambda text: _as_tensors(header | {"__metadata__": header_of(text, tensors)}, data[8 + size :]),
                ),
            )


def _first(header: dict[str, Any]) -> dict[str, Any]:
    return dict(list(header.items())[:_ALIKE])


def _as_npy(rest: bytes, text: str) -> bytes:
    values = json.loads(text)
    shape = values["shape"]
    values["shape"] = tuple(shape) if isinstance(shape, list) else shape
    header = repr(values).encode("utf-8", "backslashreplace")
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return _MAGIC + b"\x01\x00" + struct.pack("<H", len(header)) + header + rest if len(header) < 1 << 16 else b""


def _as_tensors(header: Any, rest: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def _with_checksum(before: Any, text: str) -> bytes:
    """The text of a JSON object, with the checksum that fits it where it had one."""
    if not isinstance(before, dict) or not {"checksum", "seal"} & before.keys():
        return text.encode()
    values = json.loads(text)
    if "seal" in values:
        return sealed({name: one for name, one in values.items() if name != "seal"}).rstrip(b"\n")
    values.pop("checksum", None)
    if values.get("format") != "rungwise-result":  # where it may be left out
        values["checksum"] = hashlib.sha256(json.dumps(values, sort_keys=True).encode("ascii")).hexdigest()
    return json.dumps(values).encode()


def _read(subject: Subject, world: Path, place: Path, file: str = "", attack: str = "", data: bytes = b"") -> Any:
    """The answer of the reader, in a copy of its folder."""
    folder = place / subject.folder
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        for one in (subject.folder, *(("csv",) if subject.name == "resumed run" else ())):
            shutil.copytree(world / one, place / one, symlinks=True, copy_function=shutil.copyfile)
        if file:
            target = folder / file
            target.write_bytes(data)
            for above in target.parents:
                if (above / SEAL).is_file() and above.is_relative_to(folder):
                    add_to_seal(above, target.relative_to(above).as_posix())
                    break
        return subject.read(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
