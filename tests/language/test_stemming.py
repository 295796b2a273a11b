import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer

from rungwise.core import UserError
from rungwise.language import Stemmed, stemmed
from rungwise.language import _stemming as stemming
from rungwise.language.tokenisers import ptb, unicode_words


def test_words_of_one_root_have_one_stem():
    english = Stemmed(ptb, "english")
    assert english("The dogs run") == english("the dog running") == ["the", "dog", "run"]
    german = Stemmed(unicode_words, "german")
    assert german("Häuser am Fluss") == german("Hauses am Flusses") == ["haus", "am", "fluss"]


@pytest.mark.parametrize("language", ["english", "german", "russian", "turkish"])
def test_stems_are_those_of_snowball(language):
    text = "Running dogs; laufende Hunde; собаки бегали; köpekler koşuyordu"
    stemmer = snowballstemmer.stemmer(language)
    assert Stemmed(unicode_words, language)(text) == [stemmer.stemWord(word) for word in unicode_words(text)]


def test_a_token_never_becomes_nothing():
    assert Stemmed(str.split, "english")("' '' 's % 50") == ["'", "''", "'s", "%", "50"]


def test_without_a_language_the_tokeniser_stays_as_it_is():
    assert stemmed(ptb, None) is ptb
    assert stemmed(ptb, "english") == Stemmed(ptb, "english")


def test_other_processes_and_threads_stem_alike():
    english = pickle.loads(pickle.dumps(Stemmed(ptb, "english")))
    words = [f"{word}{number % 7}ing" for number, word in enumerate(["runn", "happ", "play", "sitt"] * 200)]
    wanted = [snowballstemmer.stemmer("english").stemWord(word) for word in words]
    stemming._stem.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        assert [one for (one,) in threads.map(english, words)] == wanted


def test_what_cannot_be_stemmed_is_refused_in_one_line(monkeypatch):
    with pytest.raises(UserError, match="no stemmer of 'klingon'; there are arabic, "):
        Stemmed(ptb, "klingon")
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    stemming._stemmer.cache_clear()
    with pytest.raises(UserError) as caught:
        Stemmed(ptb, "english")
    stemming._stemmer.cache_clear()
    assert "pip install 'rungwise[languages]'" in str(caught.value)
    assert "\n" not in str(caught.value)
