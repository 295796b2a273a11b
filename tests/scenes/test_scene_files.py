import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from rungwise.core import UserError
from rungwise.data import read
from rungwise.scenes import (
    SceneConfig,
    generate,
    held_out_combinations,
    held_out_queries,
    load_scene_file,
    sample_picture,
)
from tests.odd_files import on_posix

CONFIG = SceneConfig(pictures=100, side=32, captions_per_picture=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes") / "made"
    generate(folder, CONFIG)
    return folder


def test_folder_is_as_documented(folder):
    data = generate(folder, CONFIG)
    assert (len(data), len(data.captions)) == (100, 300)
    assert {path.name for path in folder.iterdir()} == {"pictures", "captions.jsonl", "scenes.json"}
    rows = [json.loads(line) for line in (folder / "captions.jsonl").read_text("utf-8").splitlines()]
    assert [row["caption"] for row in rows] == list(data.captions)
    assert set(rows[0]) == {"image", "caption", "split", "caption_id"}
    with Image.open(folder / rows[0]["image"]) as picture:
        assert (picture.size, picture.mode) == ((32, 32), "RGB")
    file = load_scene_file(folder)
    assert file.config == CONFIG
    held_out = held_out_combinations()
    assert file.held_out == held_out
    for number in (0, 7, 99):
        picture = sample_picture(CONFIG, number, held_out)
        assert file.scene_of(data.image_ids[number]) == file.scene_of(picture.name) == picture.scene
        assert [file.statement_of(f"{picture.name}#{n}") for n in range(3)] == [said for _, said in picture.captions]


def test_a_reader_finds_what_was_generated(folder):
    made, found = generate(folder, CONFIG), read(folder)
    assert (made.layout, found.layout) == ("scenes", "scenes")
    assert found.content_hash() == made.content_hash()
    assert (found.paths, found.splits, found.name) == (made.paths, made.splits, made.name)


def test_same_configuration_gives_the_same_bytes(folder, tmp_path):
    generate(tmp_path / "again", CONFIG)
    for name in ("captions.jsonl", "scenes.json", "pictures/scene-00000.png", "pictures/scene-00099.png"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_finished_folder_is_used_as_it_is(folder):
    before = (folder / "pictures/scene-00000.png").stat().st_mtime_ns
    generate(folder, CONFIG)
    assert (folder / "pictures/scene-00000.png").stat().st_mtime_ns == before


def test_interrupted_generation_is_not_taken_for_a_whole_one(tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path, CONFIG, interrupt)
    assert not (tmp_path / "scenes.json").exists()
    with pytest.raises(UserError, match="no finished scenes"):
        load_scene_file(tmp_path)
    smaller = replace(CONFIG, pictures=20)
    assert len(generate(tmp_path, smaller)) == 20
    assert len(list((tmp_path / "pictures").iterdir())) == 20
    assert load_scene_file(tmp_path).config == smaller


def test_progress_reaches_the_end(tmp_path):
    calls = []
    generate(tmp_path, replace(CONFIG, pictures=60), lambda done, total: calls.append((done, total)))
    assert calls == [(50, 60), (60, 60)]


def test_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "captions.jsonl").write_text("mine")
    with pytest.raises(UserError, match="holds other files"):
        generate(tmp_path, CONFIG)
    assert (tmp_path / "captions.jsonl").read_text() == "mine"


def test_other_configuration_is_refused(folder):
    with pytest.raises(UserError, match="another configuration"):
        generate(folder, replace(CONFIG, seed=9))


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1}', '{"version": 0}'])
def test_damaged_scene_file_is_one_line(tmp_path, text):
    (tmp_path / "scenes.json").write_text(text)
    with pytest.raises(UserError, match=r"scenes\.json: (damaged|version 0)") as caught:
        load_scene_file(tmp_path)
    assert "\n" not in str(caught.value)


def test_unknown_ids_are_refused(folder):
    file = load_scene_file(folder)
    with pytest.raises(UserError, match=r"dog\.png"):
        file.scene_of("dog.png")
    with pytest.raises(UserError, match="scene-00000#77"):
        file.statement_of("scene-00000#77")


def test_held_out_queries(folder):
    file = load_scene_file(folder)
    queries = held_out_queries(folder, count=10)
    assert len({query.text for query in queries}) == 10
    assert held_out_queries(folder, count=4) == queries[:4]
    assert held_out_queries(folder, count=10, seed=1) != queries
    data = generate(folder, CONFIG)
    split_of = dict(zip(data.image_ids, data.splits, strict=True))
    for query in queries:
        assert query.combination in file.held_out
        right = {split_of[name] for name in data.image_ids if query.statement.is_true_of(file.scene_of(name))}
        assert right == {"test"}


def test_too_many_queries(folder):
    with pytest.raises(UserError, match=r"allow \d+ held-out queries, not 5000"):
        held_out_queries(folder, count=5000)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("scenes", {"objects": [["star", "red", "small", "plain", 0.5, 0.5]] * 4, "background": 0}),
        ("scenes", {"objects": [], "background": 0}),
        ("scenes", {"objects": [["hexagon", "red", "small", "plain", 0.5, 0.5]], "background": 0}),
        ("scenes", {"objects": [["star", "red", "small", "plain", "x", 0.5]], "background": 0}),
        ("scenes", {"objects": [["star", "red", "small", "plain", 1e300, 0.5]], "background": 0}),
        ("scenes", {"objects": [["star", "red"]], "background": 0}),
        ("scenes", {"objects": [["star", "red", "small", "plain", 0.5, 0.5]], "background": "blue"}),
        ("scenes", 7),
        ("statements", {"mentions": [{"shape": "hexagon"}]}),
        ("statements", {"mentions": [{"smell": "sweet"}]}),
        ("statements", {"mentions": [{"shape": ["star"]}]}),
        ("statements", {"mentions": [{}] * 4}),
        ("statements", {"mentions": [{}, {}], "relations": [["left of", 0, 7]]}),
        ("statements", {"mentions": [{}, {}], "relations": [["eats", 0, 1]]}),
        ("statements", {"mentions": [{}, {}], "relations": [["left of", 1, 1]]}),
        ("statements", {"mentions": [{}], "count": 10**30}),
        ("statements", {"mentions": [{}], "count": "many"}),
    ],
)
def test_scenes_that_cannot_be_drawn_or_said_are_refused(tmp_path, part, change):
    generate(tmp_path, replace(CONFIG, pictures=2))
    values = json.loads((tmp_path / "scenes.json").read_text())
    values[part][next(iter(values[part]))] = change
    (tmp_path / "scenes.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"scenes\.json: damaged") as caught:
        load_scene_file(tmp_path)
    assert "\n" not in str(caught.value)


@on_posix
def test_a_link_in_the_place_of_a_picture_is_not_followed(tmp_path):
    """What an interrupted generation left may have been tampered with."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    made = tmp_path / "made"
    (made / "pictures").mkdir(parents=True)
    (made / ".scenes-unfinished").touch()
    (made / "pictures" / "scene-00000.png").symlink_to(precious)
    generate(made, replace(CONFIG, pictures=2))
    assert precious.read_text() == "mine"
    assert not (made / "pictures" / "scene-00000.png").is_symlink()


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        generate(tmp_path / "file", CONFIG)


def test_pictures_are_on_the_disk_before_the_lists_that_name_them(tmp_path, monkeypatch):
    order = []
    fsync = os.fsync

    def noted(handle):
        order.append(Path(f"/proc/self/fd/{handle}").resolve().name)
        fsync(handle)

    if not Path("/proc/self/fd").exists():
        pytest.skip("no way here to tell which file is synced")
    monkeypatch.setattr(os, "fsync", noted)
    generate(tmp_path / "new", replace(CONFIG, pictures=3))
    drawn = [order.index(f"scene-0000{number}.png") for number in range(3)]
    lists = [place for place, name in enumerate(order) if "scenes.json" in name]
    assert max(drawn) < order.index("pictures") < lists[0] < len(order) - 1
    assert order[-1] == "new"
