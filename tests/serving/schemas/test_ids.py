"""Every id that an index takes leads back to its picture, in Python, over HTTP, and from the client."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rungwise.core import UserError, limits
from rungwise.data import ImageCaptions, read
from rungwise.index import Index
from rungwise.serving import Client, ServerSettings, create_app, possible, sendable
from rungwise.serving.schemas import as_sent
from tests.colour_model import ColourModel
from tests.serving.conftest import PATIENT, TOKEN
from tests.serving.wire import reached

ODD = (
    *("two\nlines.png", "cr\r\nlf", "\n", "a/b", "/lead", "trail/", "a//b", "../up", ".", "..", "...", "%", "%2F"),
    *("%00", "q?x=1", "h#ash", "a&b=c", "a+b", " lead", "trail ", " ", "\t", "nul\0x", "\0", "\x1b[31m", "\x85"),
    *("bidi\u202etxt", "\u200b", "l\u2028s", "p\u2029s", "caf\u00e9", "cafe\u0301", "\ud800", "bytes\udcff.jpg"),
    *("back\\slash", "C:\\x", "bytes:", "bytes:zz", "\ufeffbom", "q'uo\"te", "{id}", "<b>", "None", "0", "-1"),
    *("items/x", "a#0", "\u00e9" * 2048),
)
PLAIN = ("dogs/7.jpg", "日本", "a b?c#d%2F", "\udcff.jpg", "x\ud800y", "bytes:plain", "", "bytes:Li4=")


@pytest.mark.parametrize("item_id", [*PLAIN, *ODD])
def test_every_id_leads_back_from_what_is_sent(item_id: str) -> None:
    sent = sendable(item_id)
    sent.encode("utf-8")  # or it could not be sent
    assert sent not in (".", "..")  # which browsers take for folders
    assert possible(sent)[0] == item_id
    assert as_sent(sent) == sent


def test_no_two_ids_are_sent_alike() -> None:
    ids = {"..", sendable(".."), sendable(sendable("..")), *ODD}
    assert len({sendable(one) for one in ids}) == len(ids)


@pytest.mark.parametrize("sent", ["bytes:", "bytes:!", "bytes:é", "bytes:aGVsbG8"])
def test_whatever_is_sent_is_looked_for(sent: str) -> None:
    assert possible(sent)[0] == sent


def pictures(folder: Path, count: int) -> tuple[Path, ...]:
    """Of as many colours."""
    folder.mkdir()
    paths = tuple(folder / f"{number}.png" for number in range(count))
    for number, path in enumerate(paths):
        Image.new("RGB", (48, 32), (number * 37 % 256, number * 91 % 256, number * 13 % 256)).save(path)
    return paths


@pytest.mark.parametrize("asked", range(4))
def test_every_id_that_is_taken_is_found_graded_and_deleted(tmp_path: Path, asked: int) -> None:
    ids = ODD[asked::4]
    paths = pictures(tmp_path / "photos", len(ids))
    data = ImageCaptions(ids, tuple(f"text {n}" for n in range(len(ids))), np.arange(len(ids)), paths=paths)
    Index.build(data, ColourModel(), tmp_path / "index")
    index = Index.open(tmp_path / "index")
    with reached(
        create_app(index, ColourModel(), kept=tmp_path / "kept", settings=ServerSettings(token=TOKEN, limits=PATIENT))
    ) as address:
        client = Client(address, TOKEN)
        for number, one in enumerate(ids):
            assert index.item(one).captions == (f"text {number}",)
            found = client.item(one)
            assert found["captions"] == [f"text {number}"]
            assert client.item(found["id"]) == found
            assert client.picture(one) == paths[number].read_bytes()
            assert client.picture(one, side=64).startswith(b"\xff\xd8")
            assert client.similar(one, k=1)["of"]["id"] == found["id"]
            assert client.grade("red", one, "right")["grades"][0]["id"] == found["id"]
            assert client.delete(one)["id"] == found["id"]
            assert client.add(one, paths[number], ["anew"])["id"] == found["id"]
            assert client.item(one)["captions"] == ["anew"]
        assert {item.id for item in Index.open(tmp_path / "index").items()} == set(ids)


def test_a_file_whose_name_has_a_line_break_is_found_and_deleted(tmp_path: Path) -> None:
    (path,) = pictures(tmp_path / "photos", 1)
    path.rename(path.with_name("two\nlines.png"))
    index = Index.build(read(tmp_path / "photos"), ColourModel(), tmp_path / "index")
    with reached(
        create_app(index, ColourModel(), kept=tmp_path / "kept", settings=ServerSettings(token=TOKEN, limits=PATIENT))
    ) as address:
        client = Client(address, TOKEN)
        assert client.item("two\nlines.png")["file_name"] == "two\nlines.png"
        assert client.picture("two\nlines.png", side=64)
        client.delete("two\nlines.png")
        assert client.about()["pictures"] == 0


@pytest.mark.parametrize(
    ("odd", "message"), [("", "is empty; give it one"), ("x" * 4097, "RUNGWISE_MAX_ID_BYTES=4097")]
)
def test_an_id_by_which_nothing_could_be_asked_is_refused_when_it_is_taken(
    tmp_path: Path, odd: str, message: str
) -> None:
    assert limits().id_bytes * 3 < PATIENT.header_bytes
    paths = pictures(tmp_path / "photos", 2)
    good = ImageCaptions(("a", "b"), (), np.empty(0, np.int64), paths=paths)
    bad = ImageCaptions(("a", odd), (), np.empty(0, np.int64), paths=paths)
    index = Index.build(good, ColourModel(), tmp_path / "index")
    for taking in (
        lambda: Index.build(bad, ColourModel(), tmp_path / "other"),
        lambda: index.upsert(bad, ColourModel()),
        lambda: index.update(bad, ColourModel()),
    ):
        with pytest.raises(UserError, match=message) as refused:
            taking()
        assert len(str(refused.value)) < 300
    assert [item.id for item in index.items()] == ["a", "b"]
