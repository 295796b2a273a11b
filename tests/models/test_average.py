"""Averages of models: their scores, what they leave out, and how they are named."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.cli import main
from rungwise.core import UserError
from rungwise.data import ImageCaptions, Issue
from rungwise.evaluation import evaluate
from rungwise.models import PairScorer, VSEConfig, load
from rungwise.models import _contracts as contracts
from rungwise.models._average import Average
from rungwise.models._contracts import AskedScores
from rungwise.models.joint import JointEmbedding
from tests.models.regions.small import CAPTIONS, pictures_in, sides_of_pictures


class Lengths(PairScorer):
    """Some multiple of the length of a file plus that of a text; reads no file of a name that it fears."""

    def __init__(self, factor: float, fears: str = "", longest: int | None = None, side: int | None = None) -> None:
        self.factor, self.fears = factor, fears
        self.fingerprint = f"lengths {factor} {fears}"
        self.longest, self.side = longest, side

    fingerprint = ""

    @property
    def longest_text(self) -> int | None:
        return self.longest

    @property
    def decoded_side(self) -> int | None:
        return self.side

    @property
    def known_words(self):
        return frozenset({"dog", self.fears})

    def unknown_words(self, text):
        return tuple(word for word in text.split() if word not in self.known_words)

    def too_long(self, texts):
        return np.flatnonzero([self.longest is not None and len(text.split()) > self.longest for text in texts])

    def block(self, images, captions):
        sizes = np.array([len(Path(image).name) for image in images], np.float32)
        return self.factor * (sizes[:, None] + np.array([len(text) for text in captions], np.float32))

    def on(self, data, *, cache=None, progress=None):
        kept = np.array([i for i, name in enumerate(data.image_ids) if name != self.fears], np.int64)
        issues = tuple(Issue("unreadable", name, str(self)) for name in data.image_ids if name == self.fears)
        if progress:
            for _ in data.image_ids:
                progress(1)
        read = data if len(kept) == len(data) else data.select(kept)
        return AskedScores(read, kept, issues, self)


def collection() -> ImageCaptions:
    """Captions in an order of their own, so that leaving out an image moves them."""
    names = ("a.jpg", "bb.jpg", "ccc.jpg", "dddd.jpg")
    captions = ("one", "three", "a dog", "x", "some words", "yy")
    owners = np.array([2, 0, 3, 0, 1, 2])
    ids = tuple(f"c{number}" for number in range(6))
    return ImageCaptions(names, captions, owners, ids, paths=tuple(Path(name) for name in names))


def test_scores_are_the_mean_of_the_members():
    model = Average([Lengths(1.0), Lengths(2.0), Lengths(6.0)])
    np.testing.assert_allclose(model.block([Path("ab")], ["x", "abc"]), [[9, 15]])
    scores = model.on(collection())
    assert scores.shape == (4, 6)
    expected = [[3.0 * (len(name) + len(text)) for text in collection().captions] for name in collection().image_ids]
    np.testing.assert_allclose(scores.block(np.arange(4), np.arange(6)), expected)
    np.testing.assert_allclose(scores.block([3, 1], [5, 0, 2]), np.array(expected)[[3, 1]][:, [5, 0, 2]])
    assert scores.block([0], [0]).dtype == np.float32


def test_images_that_a_member_cannot_read_are_left_out_for_all_and_listed_once():
    members = [Lengths(1.0, "bb.jpg"), Lengths(3.0, "dddd.jpg"), Lengths(5.0, "dddd.jpg"), Lengths(3.0)]
    scores = Average(members).on(collection())
    assert scores.kept.tolist() == [0, 2]
    assert scores.data.image_ids == ("a.jpg", "ccc.jpg")
    assert sorted(issue.where for issue in scores.issues) == ["bb.jpg", "dddd.jpg"]
    assert set(scores.data.captions) == {"one", "three", "x", "yy"}
    expected = [[3.0 * (len(name) + len(text)) for text in scores.data.captions] for name in scores.data.image_ids]
    np.testing.assert_allclose(scores.block(np.arange(2), np.arange(4)), expected)


def test_evaluation_asks_for_all_at_once_or_in_blocks(monkeypatch):
    scores = Average([Lengths(1.0), Lengths(2.0)]).on(collection())
    owners = scores.data.image_of_caption
    whole = scores.for_evaluation()
    assert isinstance(whole["similarity"], np.ndarray)
    monkeypatch.setattr(contracts, "MATRIX", 23)
    asked = scores.for_evaluation()
    assert asked["similarity"] is scores
    assert evaluate(**whole, image_of_caption=owners).numbers == evaluate(**asked, image_of_caption=owners).numbers


def test_progress_goes_through_the_images_once():
    steps: list[int] = []
    Average([Lengths(1.0), Lengths(2.0), Lengths(3.0)]).on(collection(), progress=steps.append)
    assert sum(steps) == 4
    assert len(steps) == 12


def test_the_fingerprint_is_that_of_the_members_in_any_order():
    one, other, third = Lengths(1.0), Lengths(2.0), Lengths(3.0)
    assert Average([one, other]).fingerprint == Average([other, one]).fingerprint
    assert Average([one, other]).fingerprint != Average([one, third]).fingerprint
    assert len(Average([one, other]).fingerprint) == len(hashlib.sha256().hexdigest())


def test_it_says_of_texts_what_one_of_the_members_would():
    model = Average([Lengths(1.0, "cat", longest=2, side=64), Lengths(2.0, "bird", longest=3, side=32)])
    texts = ["dog", "a dog", "a very old dog", "a small dog"]
    assert model.too_long(texts).tolist() == [2, 3]
    assert model.longest_text == 2
    assert model.decoded_side == 64
    assert Average([Lengths(1.0, side=8), Lengths(2.0)]).decoded_side is None
    assert Average([Lengths(1.0), Lengths(2.0)]).longest_text is None
    assert model.unknown_words("a cat dog") == ("a", "cat")
    assert model.known_words == {"dog"}


@pytest.mark.parametrize("name", ["reads_pictures", "reads_words"])
def test_it_reads_pictures_and_words_where_all_members_do(name, monkeypatch):
    one, other = Lengths(1.0), Lengths(2.0)
    assert getattr(Average([one, other]), name)
    monkeypatch.setattr(type(other), name, property(lambda model: model is one))
    assert not getattr(Average([one, other]), name)


def test_one_model_is_no_average():
    with pytest.raises(UserError, match="^an average is of two models or more, got 1; give them, or take the one"):
        Average([Lengths(1.0)])


def saved(folder: Path, seed: int) -> Path:
    torch.manual_seed(seed)
    model = JointEmbedding.create(VSEConfig(**sides_of_pictures() | {"dimension": 6}), CAPTIONS)
    model.save_pretrained(folder)
    return folder


def test_folders_are_named_with_commas_between_them(tmp_path: Path):
    one, other = saved(tmp_path / "one", 0), saved(tmp_path / "other", 1)
    model = load(f"average:{one},{other}", "cpu")
    assert isinstance(model, Average)
    paths = pictures_in(tmp_path / "pictures")
    expected = (load(one, "cpu").block(paths, CAPTIONS) + load(other, "cpu").block(paths, CAPTIONS)) / 2
    np.testing.assert_allclose(model.block(paths, CAPTIONS), expected, rtol=1e-6)


@pytest.mark.parametrize("names", ["average:", "average:one", "average:one,", "average:one,,other"])
def test_a_name_that_is_missing_is_refused(names):
    with pytest.raises(UserError, match=f"^{names}: name two models or more after average: with a comma between them"):
        load(names)


def test_a_comma_in_the_name_of_a_folder_is_refused(tmp_path: Path):
    (tmp_path / "a,b").mkdir()
    with pytest.raises(UserError, match=r"a comma stands between two models, and \S*a,b has one; rename that folder$"):
        load(f"average:{tmp_path}/a,b,{tmp_path}/c")


def test_it_is_evaluated_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    one, other = saved(tmp_path / "one", 0), saved(tmp_path / "other", 1)
    pictures_in(tmp_path / "data")
    lines = [f"{number % 4}.png,{caption}" for number, caption in enumerate(CAPTIONS)]
    (tmp_path / "data" / "captions.csv").write_text("\n".join(["image,caption", *lines]))
    out = tmp_path / "result.json"
    asked = ["evaluate", f"average:{one},{other}", str(tmp_path / "data"), "--split", "all", "--out", str(out)]
    assert main([*asked, "--device", "cpu", "--cache", str(tmp_path / "cache")]) == 0, capsys.readouterr()
    assert load(f"average:{one},{other}", "cpu").fingerprint in out.read_text()
