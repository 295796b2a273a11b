"""Pictures that take long, at every door for pictures: refused in one line by name, or read within a bound.

Each case has a process of its own, which may take some seconds of processor and so many more for each megabyte of the
file; the system ends one that takes more.
"""

from __future__ import annotations

import io
import resource
import shutil
import signal
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile import bombs
from tests.hostile.choice import Choice
from tests.hostile.counting import Case, Verdict
from tests.hostile.forked import Outcome, outcome_of

FAMILY = "pictures"
SECONDS, SECONDS_OF_MB = 12, 3
"""Of processor that a case may take, and for each megabyte besides."""
NAME = "bomb.img"

Door = Callable[[Path], Any]
"""From a folder with the picture and nothing else to what became of it: None where it was read, or why it was not."""


def doors() -> dict[str, Door]:
    """Every way in which a picture comes to a decoder."""
    return {
        "a file": _file, "a file that is made smaller": _smaller, "a file, without torch": _array, "bytes": _bytes,
        "a header": _header, "a thumbnail": _thumbnail, "what a file says": _facts, "a contact sheet": _sheet,
        "likeness": _likeness, "a tar archive": _tar, "a Parquet file": _parquet, "a query": _query,
        "index": _index, "inspect": _inspect, "doctor": _doctor, "grading": _grading,
        "rows for training": _rows, "an upload": _upload, "a picture that is added": _added,
        "a small copy of the server": _served,
    }  # fmt: skip


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Try every picture at every door."""
    del world
    for name, make in bombs.all_bombs().items():
        chosen = [door for door in doors() if choice.takes(f"{door}: {name}")]
        data = make() if chosen else b""
        for door in chosen:
            folder = scratch / "pictures"
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "in").mkdir(parents=True)
            (folder / "in" / NAME).write_bytes(data)
            outcome = outcome_of(partial(_bounded, doors()[door], folder, len(data)))
            yield Case(FAMILY, door, name, *judged(outcome, must_refuse=name in bombs.REFUSED and door not in _UNASKED))


_UNASKED = frozenset({"what a file says"})
"""Doors that pass over what they cannot read, without a word."""


def judged(outcome: Outcome, *, must_refuse: bool) -> tuple[Verdict, str]:
    """What an outcome means."""
    if outcome.ending == "died":
        ended = f"the process died with status {outcome.value}: {outcome.text}"
        return ("hang" if outcome.value in (-signal.SIGXCPU, -signal.SIGKILL) else "traceback"), ended
    if outcome.ending == "raised":
        return "traceback", outcome.text[-600:]
    said = outcome.text if outcome.ending == "refused" else outcome.value
    if said is None:
        return ("wrong", "read without a word") if must_refuse else ("accepted", "read within the bound")
    if outcome.ending == "refused" and NAME not in said and "<uploaded picture>" not in said:
        return "wrong", f"something else was refused: {said}"
    if "\n" in said.strip() or not said.strip():
        return "wrong", f"not one line: {said!r}"
    return "clean", said


def _bounded(door: Door, folder: Path, size: int) -> Any:
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + SECONDS + SECONDS_OF_MB * (size >> 20)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    return door(folder)


def _named(path: Path, read: Callable[[Path], object]) -> str | None:
    """Why a picture was refused, which must name it."""
    from rungwise.core import UserError

    try:
        read(path)
    except UserError as error:
        return str(error) if str(path) in str(error) else f"does not name the picture:\n{error}"
    return None


def _file(folder: Path) -> str | None:
    from rungwise.data.pictures import load_picture

    return _named(folder / "in" / NAME, load_picture)


def _smaller(folder: Path) -> str | None:
    from rungwise.data.pictures import load_picture

    return _named(folder / "in" / NAME, partial(load_picture, shorter_side=64))


def _array(folder: Path) -> str | None:
    from rungwise.data.pictures import load_array

    return _named(folder / "in" / NAME, load_array)


def _bytes(folder: Path) -> None:
    from rungwise.data.pictures import load_picture

    load_picture((folder / "in" / NAME).read_bytes())


def _header(folder: Path) -> str | None:
    from rungwise.data.pictures import read_header

    return _named(folder / "in" / NAME, read_header)


def _thumbnail(folder: Path) -> str | None:
    from rungwise.data.pictures import thumbnail

    return _named(folder / "in" / NAME, partial(thumbnail, side=64))


def _facts(folder: Path) -> None:
    from rungwise.index.update._image_metadata import facts_of_picture

    facts_of_picture((folder / "in" / NAME).read_bytes())


def _collection(folder: Path) -> Any:
    """The picture and a good one."""
    from rungwise.data import ImageCaptions
    from tests.colour_model import COLOURS, picture_bytes

    good = folder / "in" / "good.png"
    good.write_bytes(picture_bytes(COLOURS["red"]))
    return ImageCaptions(
        ("good", "bomb"),
        ("a red square", "a bomb"),
        np.arange(2),
        splits=("train", "test"),
        paths=(good, folder / "in" / NAME),
    )


def _told(issues: Any) -> str | None:
    """The line about the picture, among those of a collection."""
    lines = [f"{one.where}: {one.detail}" for one in issues]
    assert not [line for line in lines if "good" in line], lines
    return next((line for line in lines if "bomb" in line), None)


def _sheet(folder: Path) -> str | None:
    from rungwise.data.pictures import contact_sheet

    data = _collection(folder)
    contact_sheet(data, folder / "sheet.png", columns=2, rows=1)
    return "unreadable" if _drawn_grey(folder / "sheet.png") else None


def _drawn_grey(sheet: Path) -> bool:
    from PIL import Image

    with Image.open(sheet) as image:
        return image.getpixel((10 + 210 + 5, 15)) == (211, 211, 211)


def _likeness(folder: Path) -> str | None:
    from rungwise.data.pictures import thumbnail_pixels

    return _named(folder / "in" / NAME, thumbnail_pixels)


def _tar(folder: Path) -> str | None:
    from rungwise.data.files import TarMember
    from rungwise.data.pictures import load_picture

    data, archive = (folder / "in" / NAME).read_bytes(), folder / "in.tar"
    with tarfile.open(archive, "w") as tar:
        about = tarfile.TarInfo(NAME)
        about.size = len(data)
        tar.addfile(about, io.BytesIO(data))
        offset = tar.getmembers()[0].offset_data or 512
    return _named(archive, lambda _: load_picture(TarMember(archive, offset, len(data), NAME)))


def _parquet(folder: Path) -> str | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rungwise.data.files import ParquetCell
    from rungwise.data.pictures import load_picture

    path = folder / "in.parquet"
    pq.write_table(pa.table({"image": [{"bytes": (folder / "in" / NAME).read_bytes(), "path": NAME}]}), path)
    return _named(path, lambda _: load_picture(ParquetCell(path, 0, 0, "image")))


def _query(folder: Path) -> str | None:
    from rungwise.index import Index, Searcher
    from rungwise.index.query import GivenPicture, Query, Term
    from tests.colour_model import ColourModel, colour_pictures

    index = Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")
    picture = folder / "in" / NAME
    query = Query((Term(GivenPicture(picture, str(picture))),))
    return _named(picture, lambda _: Searcher(index, ColourModel()).search(query, 1))


def _index(folder: Path) -> str | None:
    from rungwise.index import Index
    from tests.colour_model import ColourModel

    index = Index.build(_collection(folder), ColourModel(), folder / "index", thumbnails=True)
    assert [item.id for item in Index.open(folder / "index").items()][:1] == ["good"]
    return _told(index.issues)


def _inspect(folder: Path) -> str | None:
    from rungwise.data import inspect

    return _told(inspect(_collection(folder)).odd)


def _doctor(folder: Path) -> str | None:
    from rungwise.doctor import Roles
    from rungwise.doctor._pictures import look_at

    data = _collection(folder)
    return _told(look_at(data, Roles(), lambda *_: None).unreadable)


def _grading(folder: Path) -> str | None:
    from rungwise.grading._questions import _why_not

    issue = _why_not(_collection(folder), 1)
    return None if issue is None else _told([issue])


def _rows(folder: Path) -> str | None:
    from rungwise.encoders import Preprocessing
    from rungwise.encoders.images import pixel_rows

    rows = pixel_rows(Preprocessing(size=32), _collection(folder).paths, folder / "cache")
    assert rows.kept.tolist()[:1] == [0]
    return _told(rows.issues)


def _client(folder: Path, data: Any = None) -> Any:
    from fastapi.testclient import TestClient

    from rungwise.index import Index
    from rungwise.serving import ServerSettings, ServingLimits, create_app
    from tests.colour_model import ColourModel, colour_pictures

    index = Index.build(data or colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")
    limits = ServingLimits(header_seconds=1e6, body_seconds=1e6, waiting_seconds=1e6)
    app = create_app(index, ColourModel(), settings=ServerSettings(limits=limits, token="a-token-of-a-test"))
    return TestClient(app, headers={"authorization": "Bearer a-token-of-a-test"}, raise_server_exceptions=False)


def _answered(response: Any) -> str | None:
    assert response.status_code < 500, f"{response.status_code}: {response.text[:300]}"
    return None if response.status_code < 300 else f"{response.status_code}: {response.json()['error']}"


def _upload(folder: Path) -> str | None:
    with _client(folder) as client:
        return _answered(client.post("/pictures", content=(folder / "in" / NAME).read_bytes()))


def _added(folder: Path) -> str | None:
    with _client(folder) as client:
        return _answered(client.post("/items", params={"id": "bomb"}, content=(folder / "in" / NAME).read_bytes()))


def _served(folder: Path) -> str | None:
    """A file of the index in whose place another one was put."""
    from tests.colour_model import colour_pictures

    data = colour_pictures(folder / "photos", ["red", "blue"])
    with _client(folder, data) as client:
        data.paths[0].write_bytes((folder / "in" / NAME).read_bytes())
        return _answered(client.get("/images/0-red", params={"thumb": 64}))
