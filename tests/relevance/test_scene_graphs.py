"""The configuration of SPICE. Also tests rungwise.relevance.config._scene_graphs."""

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.language.scene_graphs import _synonyms as synonyms
from rungwise.relevance import FactWeights, Spice
from rungwise.relevance.config import Building, SpiceConfig, source_config
from rungwise.relevance.embedding import by_word_vectors

DATA = ImageCaptions(("a", "b"), ("a red dog", "a pup", "the"), np.array([0, 1, 1]))


@pytest.fixture(autouse=True)
def _no_wordnet(monkeypatch):
    monkeypatch.setattr(synonyms, "wordnet_folder", lambda: None)


def built(**options):
    said = []
    source = source_config({"kind": "spice", **options}).build(DATA, building=Building(say=said.append))
    return source, said


def test_it_is_the_source_with_its_options():
    source, said = built(measure="precision", weights=[1, 0.5, 0.5], leave_one_out=True)
    weights = FactWeights(1, 0.5, 0.5)
    expected = Spice(
        DATA.captions, DATA.image_of_caption, measure="precision", weights=weights, leave_one_out=True, images=2
    )
    np.testing.assert_array_equal(source.dense(), expected.dense())
    assert source.content_hash() == expected.content_hash()
    assert said == [
        "spice: no WordNet here; synonyms are those of a short list of everyday words",
        "spice: 3 facts of 3 captions; 1 captions state none",
    ]


def test_word_vectors_let_words_match_in_part(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("dog 1 0\npup 0.9 0.3\n", encoding="utf-8")
    source, _ = built(likeness="words", vectors=str(path), least=0.2)
    likeness = by_word_vectors(path, least=0.2)
    assert source.content_hash() == Spice(DATA.captions, DATA.image_of_caption, likeness=likeness).content_hash()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": "x.txt"}, "vectors changes nothing without likeness words"),
        ({"model": "x"}, "model changes nothing without likeness sentences"),
        ({"least": 0.5}, "least changes nothing without likeness"),
        ({"likeness": "words"}, "needs vectors: a file of word vectors"),
        ({"wordnet": "nowhere"}, "nowhere.*not found"),
        ({"spacy": "no_such_model"}, "no_such_model.*spaCy"),
        ({"weights": [1, 1]}, "weights"),
    ],
)
def test_mistakes_get_one_line(options, message):
    with pytest.raises(UserError, match=message) as caught:
        built(**options)
    assert "\n" not in str(caught.value)


def test_the_configuration_is_light():
    assert SpiceConfig().kind == "spice"
    assert not SpiceConfig().pairs_are_costly
