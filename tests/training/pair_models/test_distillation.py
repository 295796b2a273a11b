from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language.sentence_models import load_sentence_model
from rungwise.relevance import BiEncoder
from rungwise.training.pair_models import PairTraining, TrainingObserver, distil, pair_scores
from tests.scored import WORDS, scored_pairs, tiny_sentence_model

torch = pytest.importorskip("torch")
load_file = pytest.importorskip("safetensors.torch").load_file
pytest.importorskip("sentence_transformers")

PAIRS = scored_pairs(40)
SETTINGS = PairTraining(epochs=8, batch_size=8, learning_rate=5e-3)
CAPTIONS = [f"a {one} {other}" for one in WORDS for other in WORDS]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def teacher(grader):
    return grader.found.model


@pytest.fixture(scope="module")
def student(home):
    return tiny_sentence_model(home / "sentences")


def cosines(folder, pairs):
    source = BiEncoder((*pairs.first, *pairs.second), range(2 * len(pairs)), load_sentence_model(folder, "cpu"))
    return source.pair_scores(np.arange(len(pairs)), np.arange(len(pairs), 2 * len(pairs)))


def test_the_cosine_comes_near_to_the_teachers_scores(teacher, student, home):
    said = []
    found = distil(
        teacher, PAIRS, home / "distilled", student, SETTINGS, captions=CAPTIONS, unlabelled=60, device="cpu",
        watching=TrainingObserver(said.append),
    )  # fmt: skip
    assert found.unlabelled == 60
    assert "distilling: 90 pairs, 60 of them scored by nobody" in said
    train = PAIRS.split("train")
    wanted = pair_scores(teacher, train)
    before, after = (np.square(cosines(folder, train) - wanted).mean() for folder in (student, home / "distilled"))
    assert after < 0.6 * before
    dev = PAIRS.split("val")
    assert found.dev.pearson == pytest.approx(np.corrcoef(cosines(home / "distilled", dev), dev.scores)[0, 1])
    assert found.dev_before.pearson == pytest.approx(np.corrcoef(cosines(student, dev), dev.scores)[0, 1])
    assert (found.test_before.pairs, found.test.pairs) == (5, 5)
    card = (home / "distilled" / "README.md").read_text()
    assert "pairs that nobody scored: 60" in card
    assert PAIRS.content_hash() in card


def test_the_folder_is_one_of_sentence_transformers(teacher, student, home):
    from sentence_transformers import SentenceTransformer

    folder = home / "layout"
    distil(teacher, PAIRS, folder, student, replace(SETTINGS, epochs=1), unlabelled=5, device="cpu")
    theirs = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    wanted = load_sentence_model(folder, "cpu").encode(["dog cat"], show_progress_bar=False)
    np.testing.assert_allclose(theirs.encode(["dog cat"], show_progress_bar=False), wanted, atol=1e-6)
    distil(teacher, PAIRS, folder, student, replace(SETTINGS, epochs=1), unlabelled=0, device="cpu")


def test_without_captions_pairs_are_drawn_of_training_texts_and_never_of_those_that_judge(
    teacher, student, home, monkeypatch
):
    seen = []

    def draw(texts, vectors, count, **how):
        seen.append((list(texts), vectors.shape, how["without"]))
        return (), ()

    monkeypatch.setattr("rungwise.training.pair_models._distillation.drawn_pairs", draw)
    settings = replace(SETTINGS, epochs=1)
    judged = {*PAIRS.split("val").first, *PAIRS.split("test").second}
    for captions in ((), [*CAPTIONS, *judged]):
        distil(teacher, PAIRS, home / "drawn", student, settings, captions=captions, unlabelled=5, device="cpu")
    train = PAIRS.split("train")
    for texts, shape, without in seen:
        assert not judged & set(texts)
        assert len(texts) == len(set(texts)) == shape[0]
        assert without == set(zip(train.first, train.second, strict=True))
    assert set(seen[0][0]) <= {*train.first, *train.second}
    assert set(seen[1][0]) == set(CAPTIONS)


def test_one_seed_gives_one_model(teacher, student, tmp_path):
    settings = replace(SETTINGS, epochs=1)
    for name in ("one", "other"):
        distil(teacher, PAIRS, tmp_path / name, student, settings, captions=CAPTIONS, unlabelled=20, device="cpu")
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other"))
    assert one == other


def dtypes_in(folder):
    return {weight.dtype for weight in load_file(folder / "model.safetensors").values()}


def test_a_student_that_was_saved_in_bfloat16_learns_in_float32(teacher, student, tmp_path):
    half = tmp_path / "half"
    load_sentence_model(student, "cpu").bfloat16().save(str(half), create_model_card=False)
    assert dtypes_in(half) == {torch.bfloat16}
    distil(teacher, PAIRS, tmp_path / "x", half, replace(SETTINGS, epochs=1), unlabelled=0, device="cpu")
    assert dtypes_in(tmp_path / "x") == {torch.float32}


def test_interruptions_and_strangers(teacher, student, tmp_path):
    def stop(line):
        if line.startswith("epoch"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distil(
            teacher,
            PAIRS,
            tmp_path / "x",
            student,
            SETTINGS,
            unlabelled=5,
            device="cpu",
            watching=TrainingObserver(stop),
        )
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine.txt").touch()
    with pytest.raises(UserError, match=r"holds 'mine\.txt', which is no part of a sentence model"):
        distil(teacher, PAIRS, tmp_path, student, SETTINGS)
