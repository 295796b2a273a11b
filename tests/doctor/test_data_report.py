"""Each fault planted in clean scenes is found by its name, and nothing else is.

``pytest -s`` prints a line for each. Also tests rungwise.doctor._finding, rungwise.doctor._roles,
rungwise.doctor._split_sizes, rungwise.doctor._shared_captions, rungwise.doctor._pictures, rungwise.doctor._features,
rungwise.doctor._missing_words.
"""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.doctor import Finding, Report, Roles, examine_data
from rungwise.doctor._finding import share
from rungwise.doctor._shared_captions import captions_in_two_splits
from rungwise.scenes import SceneConfig, generate

FEATURES = 48


def in_split(data: ImageCaptions, split: str) -> list[int]:
    return [at for at, one in enumerate(data.splits) if one == split]


def names(report: Report) -> list[str]:
    return [finding.name for finding in report.findings]


def found(planted: str, data: ImageCaptions, name: str, **options: object) -> Finding:
    """The one finding; prints its line."""
    report = examine_data(data, **options)
    print(f"\n{planted} -> {', '.join(names(report)) or 'nothing'}")
    assert names(report) == [name]
    finding = report.findings[0]
    assert finding.what.endswith(".")
    assert finding.cure
    assert any(digit.isdigit() for digit in finding.what), "a finding has numbers"
    return finding


def with_captions(data: ImageCaptions, change: Callable[[int, str], str]) -> ImageCaptions:
    return replace(data, captions=tuple(change(at, text) for at, text in enumerate(data.captions)))


def with_files(data: ImageCaptions, files: dict[int, Path]) -> ImageCaptions:
    return replace(data, paths=tuple(files.get(at, path) for at, path in enumerate(data.paths)))


def saved_anew(path: Path, to: Path, quality: int = 60, scale: float = 1.5) -> Path:
    picture = Image.open(path).convert("RGB")
    size = (round(picture.width * scale), round(picture.height * scale))
    picture.resize(size, Image.Resampling.BICUBIC).save(to, "JPEG", quality=quality)
    return to


@pytest.mark.parametrize(("pictures", "side", "seed", "captions"), [(60, 64, 0, 5), (200, 48, 1, 3), (60, 160, 3, 1)])
def test_nothing_is_found_in_clean_scenes(tmp_path: Path, pictures: int, side: int, seed: int, captions: int) -> None:
    config = SceneConfig(pictures=pictures, side=side, seed=seed, captions_per_picture=captions, val_share=0.1)
    report = examine_data(generate(tmp_path / "scenes", config), min_count=1 if pictures < 200 else 4)
    print(f"\nclean scenes, {pictures} pictures, seed {seed} -> {', '.join(names(report)) or 'nothing'}")
    if captions == 1:  # so few captions that a tenth of them is a tiny split
        assert set(names(report)) <= {"tiny split"}
    else:
        assert names(report) == []


def test_nothing_is_found_in_the_scenes_that_get_the_faults(scenes: ImageCaptions) -> None:
    report = examine_data(scenes)
    assert report.findings == ()
    assert report.unreadable == ()
    assert report.examined[0].startswith("training (train): ")


def test_identical_files_across_splits(scenes: ImageCaptions) -> None:
    train, test = in_split(scenes, "train"), in_split(scenes, "test")
    data = with_files(scenes, {test[at]: scenes.paths[train[at]] for at in range(3)})
    finding = found("the same file in train and test, 3 times", data, "identical pictures across splits")
    assert finding.severity == "fault"
    assert finding.what.startswith("3 of ")
    assert f"{scenes.image_ids[train[0]]} (train) = {scenes.image_ids[test[0]]} (test)" in finding.places


def test_identical_pixels_in_different_files(scenes: ImageCaptions, tmp_path: Path) -> None:
    train, val = in_split(scenes, "train"), in_split(scenes, "val")
    Image.open(scenes.paths[train[0]]).save(tmp_path / "copy.bmp")
    finding = found(
        "equal pixels, PNG and BMP",
        with_files(scenes, {val[0]: tmp_path / "copy.bmp"}),
        "identical pictures across splits",
    )
    assert "1 of the pairs are different files with equal pixels" in finding.what


def test_pictures_saved_anew_at_another_size_and_quality(scenes: ImageCaptions, tmp_path: Path) -> None:
    train, test = in_split(scenes, "train"), in_split(scenes, "test")
    files = {test[at]: saved_anew(Path(scenes.paths[train[at]]), tmp_path / f"{at}.jpg") for at in range(4)}
    finding = found(
        "JPEG of another size and quality, 4 times", with_files(scenes, files), "near-identical pictures across splits"
    )
    assert finding.what.startswith("4 of ")


def test_brightened_and_cropped_pictures(scenes: ImageCaptions, tmp_path: Path) -> None:
    train, test = in_split(scenes, "train"), in_split(scenes, "test")
    files = {}
    for at in range(6):
        picture = Image.open(scenes.paths[train[at]]).convert("RGB")
        if at % 2:
            picture = ImageEnhance.Brightness(picture).enhance(0.8)
        else:
            picture = picture.crop((2, 1, picture.width - 2, picture.height - 2))
        picture.save(tmp_path / f"{at}.jpg", "JPEG", quality=85)
        files[test[at]] = tmp_path / f"{at}.jpg"
    finding = found("cropped or darkened, 6 times", with_files(scenes, files), "near-identical pictures across splits")
    assert int(finding.what.split()[0]) >= 5


def test_copies_within_one_split_are_no_leak(scenes: ImageCaptions) -> None:
    train = in_split(scenes, "train")
    assert examine_data(with_files(scenes, {train[1]: scenes.paths[train[0]]})).findings == ()


def test_captions_copied_into_another_split(scenes: ImageCaptions) -> None:
    train = [text for text, image in zip(scenes.captions, scenes.image_of_caption, strict=True)
             if scenes.splits[image] == "train"]  # fmt: skip
    draw = np.random.default_rng(0).permutation(len(train))

    def change(at: int, text: str) -> str:
        image = int(scenes.image_of_caption[at])
        return f" {train[draw[at % len(train)]].upper()}" if scenes.splits[image] == "test" and at % 5 < 2 else text

    finding = found("two captions of each test picture copied", with_captions(scenes, change),
                    "captions shared across splits")  # fmt: skip
    assert "chance would put" in finding.what


def test_captions_of_one_picture_in_two_splits(scenes: ImageCaptions) -> None:
    one, other = in_split(scenes, "train")[0], in_split(scenes, "val")[0]
    of_image = scenes.captions_of_image
    copied = dict(zip(of_image[other].tolist(), of_image[one].tolist(), strict=True))
    data = with_captions(scenes, lambda at, text: scenes.captions[copied.get(at, at)])
    finding = found("all captions of a train picture at a val picture", data, "one picture's captions in two splits")
    assert scenes.image_ids[one] in finding.places[0]
    assert "5 captions" in finding.places[0]


def test_short_captions_that_many_pictures_have_are_chance() -> None:
    """A caption such as "a dog runs" falls into every split, and is no copy."""
    draw = np.random.default_rng(0)
    texts = [f"a {one} runs" for one in ("dog", "cat", "horse", "child")]
    captions = tuple(texts[at] if at < 4 else f"scene number {at}" for at in draw.integers(0, 4000, 3000))
    splits = tuple(draw.choice(["train", "val", "test"], 3000, p=[0.8, 0.1, 0.1]).tolist())
    data = ImageCaptions(tuple(map(str, range(3000))), captions, np.arange(3000), splits=splits)
    assert list(captions_in_two_splits(data, Roles())) == []


def test_missing_and_tiny_splits(scenes: ImageCaptions) -> None:
    keep = [at for at, split in enumerate(scenes.splits) if split != "test"]
    found("no test pictures", scenes.select(keep), "no test split")
    test = in_split(scenes, "test")
    finding = found("2 test pictures", scenes.select(keep + test[:2]), "tiny split")
    assert "2 pictures and 10 captions" in finding.what
    assert "no training split" in names(examine_data(scenes.select(test)))


def test_data_without_splits_are_examined_in_those_that_training_draws(scenes: ImageCaptions) -> None:
    data = replace(scenes, splits=())
    finding = found("no splits", data, "no splits")
    assert finding.severity == "advice"
    copied = with_files(data, dict.fromkeys(range(0, 200, 10), scenes.paths[0]))
    assert names(examine_data(copied)) == ["identical pictures across splits", "no splits"]


def test_splits_by_other_names(scenes: ImageCaptions) -> None:
    other = {"train": "a", "val": "b", "test": "c"}
    data = replace(scenes, splits=tuple(other[one] for one in scenes.splits))
    assert examine_data(data, Roles(("a",), "b", "c")).findings == ()
    assert "no training split" in names(examine_data(data))


def test_captions_per_picture(scenes: ImageCaptions) -> None:
    train = in_split(scenes, "train")
    more = tuple(f"{scenes.captions[at]} and more of it" for at in range(100))
    data = replace(
        scenes,
        captions=scenes.captions + more,
        image_of_caption=np.append(scenes.image_of_caption, [train[0]] * 100),
        caption_ids=(),
    )
    finding = found("100 more captions of one picture", data, "captions per picture vary")
    assert finding.places[0] == f"{scenes.image_ids[train[0]]} (105)"
    kept = np.flatnonzero(~np.isin(scenes.image_of_caption, train[:7]))
    without = replace(
        scenes,
        captions=tuple(scenes.captions[at] for at in kept),
        image_of_caption=scenes.image_of_caption[kept],
        caption_ids=(),
    )
    assert found("7 pictures without captions", without, "pictures without captions").what.startswith("7 of 200")


def test_empty_captions(scenes: ImageCaptions) -> None:
    data = with_captions(scenes, lambda at, text: " \t" if at in (3, 40) else text)
    finding = found("two captions of blanks", data, "empty captions")
    assert finding.what.startswith("2 of 1000")
    assert finding.places == (scenes.caption_ids[3], scenes.caption_ids[40])


def test_words_that_training_lacks(scenes: ImageCaptions) -> None:
    def change(at: int, text: str) -> str:
        image = int(scenes.image_of_caption[at])
        return text.replace("a ", "einen ").replace("circle", "Kreis") if scenes.splits[image] == "val" else text

    finding = found("validation captions in other words", with_captions(scenes, change),
                    "words missing from the vocabulary")  # fmt: skip
    assert finding.places[0].startswith("einen (")
    assert examine_data(with_captions(scenes, change), min_count=None).findings == ()


def test_labels_that_a_split_lacks(scenes: ImageCaptions) -> None:
    label = tuple((f"class {at % 5}",) for at in range(200))
    assert examine_data(replace(scenes, labels=label)).findings == ()
    moved = tuple(
        ("class 1",) if one == ("class 0",) and split == "train" else one
        for one, split in zip(label, scenes.splits, strict=True)
    )
    finding = found("a class that train lacks", replace(scenes, labels=moved), "labels absent from a split")
    assert finding.severity == "fault"
    assert finding.places[0].startswith("class 0 (")


def test_a_rare_label_is_missing_by_chance(scenes: ImageCaptions) -> None:
    labels = tuple((f"class {at % 5}", *(("rare",) if at in (3, 4) else ())) for at in range(200))
    assert examine_data(replace(scenes, labels=labels)).findings == ()


def test_unreadable_pictures_are_counted_and_listed(scenes: ImageCaptions, tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff no picture")
    data = with_files(scenes, {4: tmp_path / "broken.jpg", 9: tmp_path / "gone.jpg"})
    finding = found("a broken and a missing file", data, "unreadable pictures")
    assert finding.severity == "advice"
    report = examine_data(data)
    assert [Path(issue.where).name for issue in report.unreadable] == ["broken.jpg", "gone.jpg"]
    assert not report.has_faults


def featured(scenes: ImageCaptions, change: Callable[[np.ndarray], None] = lambda rows: None) -> ImageCaptions:
    rows = np.random.default_rng(0).random((len(scenes), FEATURES)).astype(np.float32)
    change(rows)
    return replace(scenes, paths=(), features=FeatureRows(rows), layout="features")


def test_nothing_is_found_in_clean_features(scenes: ImageCaptions) -> None:
    assert examine_data(featured(scenes)).findings == ()
    regions = np.random.default_rng(0).random((len(scenes), 3, 8)).astype(np.float16)
    assert examine_data(replace(scenes, paths=(), features=FeatureRows(regions))).findings == ()


def test_odd_features(scenes: ImageCaptions) -> None:
    test, train = in_split(scenes, "test"), in_split(scenes, "train")

    def plant(planted: str, name: str, change: Callable[[np.ndarray], None]) -> Finding:
        return found(planted, featured(scenes, change), name)

    def not_finite(rows: np.ndarray) -> None:
        rows[3, 5], rows[7, 0] = np.nan, np.inf

    def constant(rows: np.ndarray) -> None:
        rows[[2, 6]] = 0
        rows[8] = 0.5

    def scaled(rows: np.ndarray) -> None:
        rows *= 10 ** np.random.default_rng(1).uniform(-3, 3, (len(rows), 1)).astype(np.float32)

    def dead(rows: np.ndarray) -> None:
        rows[:, :4] = 0.25

    def repeated(rows: np.ndarray) -> None:
        rows[test[:2]] = rows[train[:2]]

    assert plant("NaN and infinity in two rows", "features not finite", not_finite).what.startswith("2 of 200")
    assert plant("three rows of one number", "constant feature rows", constant).what.startswith("3 of 200")
    assert (
        "The norms of the picture features run from"
        in plant("norms over six orders of magnitude", "unnormalised features", scaled).what
    )
    finding = plant("four dimensions of one value", "dead feature dimensions", dead)
    assert finding.severity == "advice"
    assert finding.what.startswith("4 of 48")
    finding = plant("two rows in train and test", "features repeat across splits", repeated)
    assert finding.places[0] == f"{scenes.image_ids[train[0]]} (train) = {scenes.image_ids[test[0]]} (test)"


def test_rows_in_place_of_captions_are_looked_at(scenes: ImageCaptions) -> None:
    rows = np.random.default_rng(0).random((len(scenes.captions), 8)).astype(np.float32)
    rows[11] = np.nan
    data = featured(scenes)
    found("NaN in a caption's row", replace(data, text_features=FeatureRows(rows)), "features not finite")


def test_progress_covers_every_picture(scenes: ImageCaptions) -> None:
    done: dict[str, int] = {}

    def progress(title: str, more: int, total: int) -> None:
        done[title] = done.get(title, 0) + more
        assert total == len(scenes)

    examine_data(scenes, progress=progress)
    assert done == {"reading pictures": 200, "comparing pictures": 200}


def test_a_report_as_plain_values(scenes: ImageCaptions) -> None:
    plain = examine_data(with_captions(scenes, lambda at, text: "" if at == 3 else text)).to_plain()
    assert plain["faults"] == 1
    assert plain["findings"][0]["name"] == "empty captions"


def test_shares_are_short() -> None:
    assert [share(1, 3), share(1, 100_000), share(5, 5)] == ["33.3 %", "0.001 %", "100 %"]


def test_a_thumbnail_of_bytes_is_no_upload_in_messages(scenes: ImageCaptions, tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "PNG")
    (tmp_path / "cut.png").write_bytes(file.getvalue()[:40])
    report = examine_data(with_files(scenes, {0: tmp_path / "cut.png"}))
    assert report.unreadable[0].where == str(tmp_path / "cut.png")
    assert "uploaded" not in report.unreadable[0].detail


def test_captions_without_blanks_between_words() -> None:
    count = 40
    texts = tuple(f"一只棕色的狗在草地上奔跑{chr(0x4E00 + at)}" for at in range(count))
    splits = ("train",) * 20 + ("val",) * 10 + ("test",) * 10
    ids = tuple(map(str, range(count)))
    report = examine_data(ImageCaptions(ids, texts, np.arange(count), splits=splits), min_count=None)
    (finding,) = (one for one in report.findings if one.name == "no blanks between words")
    assert finding.severity == "advice"
    assert "--tokenizer icu" in finding.cure
    assert finding.places == texts[:1]
