"""``rungwise relevance model-scores`` and ``visual``: a model's opinion, by which it is never judged."""

import shutil

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.data import read
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.evaluation import Result
from rungwise.models import JointEmbedding, VSEConfig, load
from rungwise.relevance import Visual
from rungwise.relevance import load as load_degrees
from rungwise.relevance.embedding import read_picture_vectors

IMAGES = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Vectors of pictures with captions, and two models without training."""
    folder = tmp_path_factory.mktemp("made")
    draw = np.random.default_rng(0)
    (folder / "photos").mkdir()
    np.save(folder / "photos/features.npy", draw.normal(size=(IMAGES, 3)).astype(np.float32))
    lines = [f"{n}.jpg,{size} {animal} here" for n, animal in enumerate("abcdefghijkl") for size in ("big", "small")]
    (folder / "photos/captions.csv").write_text("image,caption\n" + "\n".join(lines) + "\n")
    data = read(folder / "photos")
    config = VSEConfig(image=FeatureConfig(width=3), text=GRUConfig(4, 1), dimension=4)
    for name in ("first", "second"):
        JointEmbedding.create(config, data.captions).save_pretrained(folder / name)
    return folder, data


def run(made, *words):
    folder, _ = made
    return main([str(one).replace("DIR", str(folder)) for one in words])


SCORES = ("relevance", "model-scores", "DIR/photos", "--model", "DIR/first")


def test_a_model_s_own_similarity_is_written(made, tmp_path, capsys):
    folder, data = made
    assert run(made, *SCORES, "--out", tmp_path / "all", "--vectors", tmp_path / "seen.npz") == 0
    model = load(folder / "first")
    scores = model.on(data)
    found = load_degrees(tmp_path / "all", data=data)
    np.testing.assert_allclose(found.dense(), scores.matrix(), atol=1e-6)
    assert found.models == {model.fingerprint}
    seen = read_picture_vectors(tmp_path / "seen.npz")
    np.testing.assert_allclose(seen.vectors, scores.image_vectors, atol=1e-6)
    assert (seen.model, seen.ids) == (model.fingerprint, data.image_ids)
    assert f"this is the opinion of model {model.fingerprint[:16]}" in capsys.readouterr().out
    assert run(made, *SCORES, "--out", tmp_path / "best", "--top", 3, "--direction", "t2i") == 0
    np.testing.assert_array_equal(load_degrees(tmp_path / "best").topk(3, "t2i")[0], found.topk(3, "t2i")[0])


def test_pictures_that_look_alike_share_their_captions(made, tmp_path, capsys):
    folder, data = made
    assert run(made, *SCORES, "--vectors", tmp_path / "seen.npz") == 0
    visual = ("relevance", "visual", "DIR/photos", "--vectors", tmp_path / "seen.npz")
    lends = ("--through", "{kind: tfidf, orders: 2}", "--neighbours", 3, "--lending", "mean")
    assert run(made, *visual, *lends, "--out", tmp_path / "degrees") == 0
    assert "these degrees are its opinion" in capsys.readouterr().out
    from rungwise.relevance import TfIdf

    wanted = Visual(
        load(folder / "first").on(data).image_vectors,
        data.image_of_caption,
        through=TfIdf(data.captions, data.image_of_caption, orders=2),
        neighbours=3,
        lending="mean",
        model=load(folder / "first").fingerprint,
        captions=data.captions,
    )
    np.testing.assert_allclose(load_degrees(tmp_path / "degrees").dense(), wanted.dense(), atol=1e-6)
    assert load_degrees(tmp_path / "degrees").models == wanted.models
    assert run(made, "relevance", "visual", "DIR/photos", "--out", tmp_path / "own") == 0
    own = Visual(np.load(folder / "photos/features.npy"), data.image_of_caption)
    np.testing.assert_allclose(load_degrees(tmp_path / "own").dense(), own.dense(), atol=1e-6)


def test_a_model_is_not_judged_by_its_own_opinion(made, tmp_path, capsys):
    assert run(made, *SCORES, "--out", tmp_path / "opinion", "--vectors", tmp_path / "seen.npz") == 0
    photos = ("DIR/photos",)
    for number, arguments in enumerate(
        (
            ("visual", *photos, "--vectors", tmp_path / "seen.npz"),
            ("visual", *photos, "--through", tmp_path / "opinion"),
            ("combine", *photos, "--of", "cider-d", tmp_path / "opinion", "--how", "max", "--top", 5),
            ("combine", *photos, "--of", tmp_path / "2", "tfidf"),
        )
    ):
        assert run(made, "relevance", *arguments, "--out", tmp_path / f"{number}") == 0, capsys.readouterr().err
    for name in ("opinion", "0", "1", "2", "3"):
        judged = ("--split", "all", "--measures", "CS@5", "--relevance", tmp_path / name)
        capsys.readouterr()
        assert run(made, "evaluate", "DIR/first", *photos, *judged) == 2
        error = capsys.readouterr().err
        assert "the degrees of relevance are the opinion of the model that is judged" in error
        assert error.count("\n") == 1
        assert run(made, "evaluate", "DIR/second", *photos, *judged, "--out", tmp_path / "r.json") == 0
    assert Result.from_json(tmp_path / "r.json").relevance


def test_an_average_is_not_judged_by_a_member(made, tmp_path, capsys):
    folder, _ = made
    assert run(made, *SCORES, "--out", tmp_path / "opinion") == 0
    judged = ("DIR/photos", "--split", "all", "--measures", "CS@5", "--relevance", tmp_path / "opinion")
    capsys.readouterr()
    assert run(made, "evaluate", f"average:{folder / 'first'},{folder / 'second'}", *judged) == 2
    assert "the opinion of the model that is judged" in capsys.readouterr().err
    assert run(made, "evaluate", f"average:{folder / 'second'},{folder / 'second'}", *judged) == 0


def test_a_member_is_not_judged_by_an_average(made, tmp_path, capsys):
    folder, _ = made
    average = f"average:{folder / 'first'},{folder / 'second'}"
    assert run(made, *SCORES[:-1], average, "--out", tmp_path / "opinion") == 0
    judged = ("DIR/photos", "--split", "all", "--measures", "CS@5", "--relevance", tmp_path / "opinion")
    for model in ("DIR/first", "DIR/second", average):
        capsys.readouterr()
        assert run(made, "evaluate", model, *judged) == 2
        assert "the opinion of the model that is judged" in capsys.readouterr().err


def test_neither_an_export_nor_its_model_judges_the_other(made, tmp_path, capsys):
    assert run(made, "export", "DIR/first", "--out", tmp_path / "graphs") == 0
    assert run(made, "export", "DIR/second", "--out", tmp_path / "others") == 0
    for name, model in (("of model", "DIR/first"), ("of export", tmp_path / "graphs")):
        scores = (*SCORES[:-1], model, "--out", tmp_path / name, "--vectors", tmp_path / f"{name}.npz")
        assert run(made, *scores) == 0
        visual = ("relevance", "visual", "DIR/photos", "--vectors", tmp_path / f"{name}.npz")
        assert run(made, *visual, "--out", tmp_path / f"{name}, looks") == 0
        for relevance in (tmp_path / name, tmp_path / f"{name}, looks"):
            judged = ("DIR/photos", "--split", "all", "--measures", "CS@5", "--relevance", relevance)
            for same in ("DIR/first", tmp_path / "graphs"):
                capsys.readouterr()
                assert run(made, "evaluate", same, *judged) == 2, (name, relevance, same)
                assert "the opinion of the model that is judged" in capsys.readouterr().err
            assert run(made, "evaluate", tmp_path / "others", *judged) == 0


def test_a_model_in_another_folder_or_beside_is_not_judged_by_its_opinion(made, tmp_path, capsys):
    folder, _ = made
    shutil.copytree(folder / "first", tmp_path / "copied")
    assert run(made, *SCORES, "--out", tmp_path / "opinion") == 0
    judged = ("DIR/photos", "--split", "all", "--measures", "CS@5", "--relevance", tmp_path / "opinion")
    report = ("--report", tmp_path / "report.html", "--beside", tmp_path / "copied")
    for words in ((tmp_path / "copied", *judged), ("DIR/second", *judged, *report)):
        capsys.readouterr()
        assert run(made, "evaluate", *words) == 2
        assert "the opinion of the model that is judged" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (SCORES, "give --out FOLDER for degrees, or --vectors FILE.npz"),
        ((*SCORES, "--vectors", "x.npz", "--top", "3"), "--top changes nothing without --out"),
        ((*SCORES, "--out", "x", "--direction", "t2i"), "--direction changes nothing without --top"),
        ((*SCORES, "--out", "x", "--layout", "wikipedia"), "nothing to be read as a MAT file"),
        ((*SCORES, "--out", "x", "--top", "0"), "--top must be at least 1"),
        ((*SCORES, "--vectors", "x.txt"), "vectors are written as .npz"),
        (("relevance", "visual", "DIR/photos", "--neighbours", "3"), "--neighbours changes nothing without --through"),
        (("relevance", "visual", "DIR/photos", "--through", "tfidf", "--neighbours", "0"), "--neighbours must be at"),
        (("relevance", "visual", "DIR/photos/captions.csv", "--captions-only"), "needs --vectors: "),
        (("relevance", "visual", "DIR/photos", "--vectors", "nosuch.npy"), "nosuch.npy: no such file"),
        (("relevance", "visual", "DIR/photos", "--model", "DIR/first"), "--model is a fingerprint"),
    ],
    ids=[
        "nothing",
        "top",
        "direction",
        "layout",
        "none",
        "ending",
        "idle",
        "neighbours",
        "no vectors",
        "no file",
        "a folder",
    ],
)
def test_a_mistake_gets_one_line(made, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert run(made, *words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_vectors_of_another_model_than_was_said_are_refused(made, tmp_path, capsys):
    assert run(made, *SCORES, "--vectors", tmp_path / "seen.npz") == 0
    visual = ("relevance", "visual", "DIR/photos", "--vectors", tmp_path / "seen.npz", "--model", "other")
    assert run(made, *visual) == 2
    assert "leave --model out" in capsys.readouterr().err
    beginning = read_picture_vectors(tmp_path / "seen.npz").model[:12]
    assert run(made, *visual[:-1], beginning, "--out", tmp_path / "looks") == 0
