import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from rungwise.core.errors import UserError
from rungwise.scenes import sampling as scene_sampling
from rungwise.scenes.collection import (
    SceneConfig,
    generate,
    held_out_combinations,
    held_out_queries,
    load_scene_file,
    sample_picture,
)
from rungwise.scenes.description import CLEAR_GAP, COLOURS, RADIUS, RELATIONS, SHAPES, SIZES, TEXTURES

CONFIG = SceneConfig(pictures=300, side=32, captions_per_picture=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes") / "made"
    generate(folder, CONFIG)
    return folder


def kind_pairs(scene):
    return {tuple(sorted(pair)) for pair in combinations([o.kind for o in scene.objects], 2)}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**40), number=st.integers(0, 10**6))
def test_relations_are_never_in_doubt(seed, number):
    scene = sample_picture(SceneConfig(seed=seed), number, held_out_combinations(seed)).scene
    assert 1 <= len(scene.objects) <= 3
    assert len({o.kind for o in scene.objects}) == len(scene.objects)
    for thing in scene.objects:
        for centre in (thing.x, thing.y):
            assert RADIUS[thing.size] <= centre <= 1 - RADIUS[thing.size]
    for a, b in combinations(scene.objects, 2):
        reach = RADIUS[a.size] + RADIUS[b.size]
        smaller = 2 * min(RADIUS[a.size], RADIUS[b.size])
        gaps = [abs(a.x - b.x) - reach, abs(a.y - b.y) - reach]
        assert max(gaps) >= CLEAR_GAP - 1e-9
        assert all(gap >= CLEAR_GAP - 1e-9 or -gap >= smaller / 2 - 1e-9 for gap in gaps)


def test_pictures_do_not_depend_on_how_many_are_asked_for():
    held_out = held_out_combinations()
    few, many = SceneConfig(pictures=5, captions_per_picture=2), SceneConfig(pictures=500, side=64)
    for number in range(40):
        a, b = (sample_picture(config, number, held_out) for config in (few, many))
        assert (a.scene, a.split, a.captions) == (b.scene, b.split, b.captions[:2])


def test_seed_changes_everything():
    a, b = (sample_picture(SceneConfig(seed=s), 0, held_out_combinations(s)) for s in (0, 1))
    assert a.scene != b.scene
    assert a.captions != b.captions


def test_combinations_are_held_out_of_train_and_val():
    held_out = held_out_combinations()
    pictures = [sample_picture(SceneConfig(), number, held_out) for number in range(2000)]
    shown = {split: [kind_pairs(p.scene) for p in pictures if p.split == split] for split in ("train", "val", "test")}
    for split in ("train", "val"):
        assert not set().union(*shown[split]) & set(held_out)
    with_held_out = [bool(pairs & set(held_out)) for pairs in shown["test"]]
    assert np.mean(with_held_out) == pytest.approx(0.5, abs=0.02)
    for picture in pictures:
        if picture.split != "test":
            for _, statement in picture.captions:
                kinds = {(m.colour, m.shape) for m in statement.mentions if m.colour and m.shape}
                assert not {tuple(sorted(pair)) for pair in combinations(kinds, 2)} & set(held_out)


def test_every_kind_and_value_occurs_in_training():
    held_out = held_out_combinations()
    train = [p for n in range(1500) if (p := sample_picture(SceneConfig(), n, held_out)).split == "train"]
    objects = [o for p in train for o in p.scene.objects]
    assert {o.kind for o in objects} == {(c, s) for c in COLOURS for s in SHAPES}
    assert {o.size for o in objects} == set(SIZES)
    assert {o.texture for o in objects} == set(TEXTURES)
    stated = {name for p in train for _, said in p.captions for name, _, _ in said.relations}
    assert stated == set(RELATIONS)


@pytest.mark.parametrize("count", [40, 400, 4000])
def test_split_shares_are_kept(count):
    config = SceneConfig(val_share=0.1, test_share=0.2)
    splits = [scene_sampling._split(config, n)[0] for n in range(count)]
    assert splits.count("test") == pytest.approx(0.2 * count, abs=2)
    assert splits.count("val") == pytest.approx(0.1 * count, abs=2)


def test_nothing_held_out_is_possible():
    config = SceneConfig(held_out_share=0)
    assert held_out_combinations(0, 0) == ()
    assert {sample_picture(config, n, ()).split for n in range(30)} == {"train", "val", "test"}


def test_folder_is_as_documented(folder):
    data = generate(folder, CONFIG)
    assert (len(data), len(data.captions)) == (300, 900)
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
    for number in (0, 7, 299):
        picture = sample_picture(CONFIG, number, held_out)
        assert file.scene_of(data.image_ids[number]) == file.scene_of(picture.name) == picture.scene
        assert [file.statement_of(f"{picture.name}#{n}") for n in range(3)] == [said for _, said in picture.captions]


def test_same_configuration_gives_the_same_bytes(folder, tmp_path):
    generate(tmp_path / "again", CONFIG)
    for name in ("captions.jsonl", "scenes.json", "pictures/scene-00000.png", "pictures/scene-00299.png"):
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
    generate(tmp_path, replace(CONFIG, pictures=120), lambda done, total: calls.append((done, total)))
    assert calls == [(50, 120), (100, 120), (120, 120)]


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pictures": 0}, "pictures must be at least 1"),
        ({"side": 16}, "side must be at least 32"),
        ({"test_share": 1.5}, "test_share must lie in"),
        ({"held_out_share": 0.9}, "held_out_share must lie in 0..0.5"),
        ({"test_share": 0.6, "val_share": 0.6}, "add up to more than 1"),
    ],
)
def test_impossible_configurations(wrong, message):
    with pytest.raises(UserError, match=message):
        SceneConfig(**wrong)


def test_held_out_queries(folder):
    file = load_scene_file(folder)
    queries = held_out_queries(folder, count=20)
    assert len({query.text for query in queries}) == 20
    assert held_out_queries(folder, count=8) == queries[:8]
    assert held_out_queries(folder, count=20, seed=1) != queries
    data = generate(folder, CONFIG)
    split_of = dict(zip(data.image_ids, data.splits, strict=True))
    for query in queries:
        assert query.combination in file.held_out
        right = {split_of[name] for name in data.image_ids if query.statement.is_true_of(file.scene_of(name))}
        assert right == {"test"}


def test_too_many_queries(folder):
    with pytest.raises(UserError, match=r"allow \d+ held-out queries, not 5000"):
        held_out_queries(folder, count=5000)
