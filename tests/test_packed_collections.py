"""From pictures inside larger files to hits and their thumbnails: a test of the whole house."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from rungwise.data import read
from rungwise.data.pictures import contact_sheet
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.index import Index, Searcher
from rungwise.index.maintenance import verify_index
from rungwise.models.joint import JointEmbedding, VSEConfig
from rungwise.serving import create_app
from tests.colour_model import COLOURS, ColourModel, picture_bytes

NAMES = ("red", "green", "blue", "yellow")


def parquet_folder(root: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for shard, names in enumerate((NAMES[:3], NAMES[3:])):
        cells = [{"bytes": picture_bytes(COLOURS[name]), "path": f"{name}.png"} for name in names]
        table = pa.table({"image": cells, "caption": [[f"a {name} square"] for name in names]})
        (root / "data").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / "data" / f"train-{shard:05d}-of-00002.parquet", row_group_size=2)


def tar_folder(root: Path) -> None:
    root.mkdir()
    with tarfile.open(root / "00000.tar", "w") as archive:
        for name in NAMES:
            for member, data in (
                (f"{name}.png", picture_bytes(COLOURS[name])),
                (f"{name}.txt", f"a {name} square".encode()),
            ):
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


LAYOUTS = pytest.mark.parametrize("write", [parquet_folder, tar_folder])


@LAYOUTS
def test_index_search_and_thumbnails_after_a_restart(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "pets")
    model = ColourModel()
    built = Index.build(read(tmp_path / "pets"), model, tmp_path / "index")
    assert len(built) == 4
    (tmp_path / "elsewhere").mkdir()
    for name in ("pets", "index"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    index = Index.open(tmp_path / "elsewhere" / "index")
    hits = Searcher(index, model).search_text("blue", 1)
    assert Path(hits[0].id).stem == "blue"
    checks = list(verify_index(tmp_path / "elsewhere" / "index", lambda manifest: model))
    assert not any(check.wrong for check in checks)
    assert "4 encoded anew give the same vectors" in [check.found for check in checks]
    client = TestClient(create_app(index, model))
    whole = client.get(f"/images/{quote(hits[0].id, safe='')}")
    assert (whole.content, whole.headers["content-type"]) == (picture_bytes(COLOURS["blue"]), "image/png")
    small = client.get(f"/images/{quote(hits[0].id, safe='')}?thumb=16")
    assert Image.open(io.BytesIO(small.content)).size == (16, 12)
    small_copies = [f"/images/{quote(item.id, safe='')}?thumb=16" for item in index.items()]
    tags = {client.get(address).headers["etag"] for address in small_copies}
    assert len(tags) == 4
    again = client.get(small_copies[0], headers={"if-none-match": "x"})
    assert client.get(small_copies[0], headers={"if-none-match": again.headers["etag"]}).status_code == 304
    found = Searcher(index, model).search_image(index.item(hits[0].id).path or b"")
    assert found[0].id == hits[0].id


@LAYOUTS
def test_an_archive_that_is_gone_or_replaced_is_404(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "pets")
    model = ColourModel()
    index = Index.build(read(tmp_path / "pets"), model, tmp_path / "index")
    client = TestClient(create_app(index, model), raise_server_exceptions=False)
    address = f"/images/{quote(next(iter(index.items())).id, safe='')}"
    assert {client.get(f"{address}{query}").status_code for query in ("", "?thumb=32")} == {200}
    for path in (tmp_path / "pets").rglob("*.*"):
        path.write_bytes(b"replaced")
    assert {client.get(f"{address}{query}").status_code for query in ("", "?thumb=48")} == {404}
    for path in (tmp_path / "pets").rglob("*.*"):
        path.unlink()
    assert {client.get(f"{address}{query}").status_code for query in ("", "?thumb=64")} == {404}


@LAYOUTS
@pytest.mark.parametrize("frozen", [True, False])
def test_a_model_gives_the_vectors_that_it_gives_for_files(
    tmp_path: Path, write: Callable[[Path], None], frozen: bool
) -> None:
    write(tmp_path / "pets")
    data = read(tmp_path / "pets")
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=24, frozen=frozen)
    config = VSEConfig(image=image, text=GRUConfig(min_count=1), dimension=8)
    model = JointEmbedding.create(config, data.captions)
    packed = model.encode_image(data.paths, cache=tmp_path / "cache")
    files = []
    for image_id in data.image_ids:
        files.append(tmp_path / f"{Path(image_id).stem}.png")
        files[-1].write_bytes(picture_bytes(COLOURS[Path(image_id).stem]))
    beside = model.encode_image(files, cache=tmp_path / "cache")
    np.testing.assert_allclose(packed.vectors, beside.vectors, atol=1e-6)
    pairs = model.read(data, np.arange(4), cache=tmp_path / "cache")
    assert (len(pairs), pairs.rows.issues) == (4, ())
    alone = model.prepare_image(data.paths[1])()
    np.testing.assert_allclose(alone.vectors[0], packed.vectors[1], atol=1e-5)
    contact_sheet(data, tmp_path / "sheet.png", columns=2, rows=2)
    colours = {pixel for _, pixel in Image.open(tmp_path / "sheet.png").getcolors(1 << 20) or []}
    assert {COLOURS[name] for name in NAMES} <= colours
