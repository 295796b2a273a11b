import json
from collections.abc import Callable
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from rungwise.core import UserError
from rungwise.encoders.texts import learn_vocabulary
from rungwise.encoders.vocabulary import cutting, pieces, read_vocabulary, tokenise, unknown_words, whole_words
from rungwise.encoders.vocabulary._tokenizer import PATTERNS
from tests.encoders.vocabulary.test_character_maps import character_map

CAPTIONS = ["a red dog runs", "a blue cat"]


@pytest.fixture
def said() -> dict[str, Any]:
    """What a sound vocabulary says."""
    found: dict[str, Any] = json.loads(learn_vocabulary(CAPTIONS, 1).to_str())
    return found


def test_a_vocabulary_of_ours_is_read_as_it_was() -> None:
    learnt = learn_vocabulary(CAPTIONS, 1)
    again = read_vocabulary(learnt.to_str(pretty=True), "tokenizer.json")
    assert again.to_str() == learnt.to_str()
    assert tokenise(again, CAPTIONS) == tokenise(learnt, CAPTIONS)


def replacing(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda said: said.__setitem__(name, value)


def within(*places: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(said: dict[str, Any]) -> None:
        inner: Any = said
        for place in places[:-1]:
            inner = inner[place]
        inner[places[-1]] = value

    return change


BACKTRACKING = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
GROWING = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
SLOW = {"type": "Replace", "pattern": {"Regex": r"\s+\s+\s+$"}, "content": " "}
WORD_PIECE = {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##"} | {
    "max_input_chars_per_word": 10**9, "vocab": {"<unk>": 0}
}  # fmt: skip
PAIRS = {"type": "BPE", "dropout": 0.5, "vocab": {"a": 0}, "merges": []}
MAP = {"type": "Precompiled", "precompiled_charsmap": character_map({"\uff41": "a"})}
SPECIAL = ("post_processor", "special_tokens", "<end>")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replacing("pre_tokenizer", BACKTRACKING), "the pattern .* is none that is known here"),
        (
            replacing("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, BACKTRACKING]}),
            "the pattern .* is none that is known here",
        ),
        (
            replacing("normalizer", {"type": "Sequence", "normalizers": [GROWING] * 10}),
            "makes a text more than 64 times as long",
        ),
        (replacing("normalizer", SLOW), "normalizer: the pattern .* is none that is known here"),
        (replacing("normalizer", {"type": "Prepend", "prepend": "a" * 65}), "prepend: expected a text of at most 64"),
        (replacing("normalizer", {"type": "Replace"}), "not a vocabulary"),
        (
            replacing("normalizer", {"type": "Sequence", "normalizers": [MAP, MAP]}),
            "makes a text more than 64 times as long",
        ),
        (replacing("model", WORD_PIECE), "max_input_chars_per_word: expected at most 1000, got 1000000000"),
        (replacing("model", PAIRS), "dropout: must be null"),
        (replacing("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 17}), "list of at most 16"),
        (replacing("normalizer", {"type": "Sequence", "normalizers": {}}), "normalizer: expected a list"),
        (replacing("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "charsmap: cut off"),
        (replacing("normalizer", 5), "normalizer: expected one of .*; got None"),
        (replacing("normalizer", {"type": ["NFC"]}), "normalizer: expected one of"),
        (replacing("model", None), "model: expected one of BPE, Unigram, WordLevel, WordPiece"),
        (replacing("model", {"type": "WordLevel"}), "not a vocabulary"),
        (replacing("padding", {"strategy": {"Fixed": 10**12}, "pad_id": 0}), "padding: must be null"),
        (replacing("truncation", {"max_length": 0}), "truncation: must be null"),
        (within("model", "vocab", "dog", value=4000), "are not numbered 0..9"),
        (within("model", "vocab", "dog", value=-1), "not a vocabulary"),
        (within("model", "vocab", "dog", value=10**30), "not a vocabulary"),
        (within("model", "vocab", "cat", value=4), "are not numbered"),
        (within("model", "unk_token", value="<gone>"), "cannot read a caption|not a vocabulary"),
        (within(*SPECIAL, "ids", value=[999]), "gives the number 999, of 10 words"),
        (within(*SPECIAL, "ids", value=[3] * 100), "adds 101 tokens to a caption; at most 16 are taken|not a voc"),
        (within("added_tokens", value=[{"id": 0}]), "not a vocabulary"),
        (replacing("post_processor", {"type": "Sequence", "processors": [{"type": "Evil"}]}), "got 'Evil'"),
        (replacing("version", 7), "not a vocabulary"),
    ],
)  # fmt: skip
def test_what_could_hang_grow_or_point_beyond_the_table_is_refused(
    said: dict[str, Any], change: Callable[[dict[str, Any]], None], message: str
) -> None:
    change(said)
    with pytest.raises(UserError, match=message) as caught:
        read_vocabulary(json.dumps(said), "model/tokenizer.json")
    assert str(caught.value).startswith("model/tokenizer.json: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "5", '"a"', "[" * 100_000, '{"model": NaN}', "9" * 5000])
def test_what_is_no_vocabulary_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match="^here: ") as caught:
        read_vocabulary(text, "here")
    assert "\n" not in str(caught.value)


def test_a_panic_of_the_library_is_one_line(said: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicError(BaseException):
        """As those of Rust code, which derive from no Exception."""

    class Panicking:
        @staticmethod
        def from_str(text: str) -> None:
            raise PanicError("called `Option::unwrap()` on a `None` value\nmore")

    monkeypatch.setattr("rungwise.encoders.vocabulary._tokenizer.Tokenizer", Panicking)
    with pytest.raises(UserError, match=r"^here: not a vocabulary \(called `Option::unwrap\(\)` on a `None` value\)"):
        read_vocabulary(json.dumps(said), "here")


def test_with_a_table_of_its_own_length_numbers_may_be_left_out(said: dict[str, Any]) -> None:
    said["model"]["vocab"]["dog"] = 40
    assert read_vocabulary(json.dumps(said), "here", rows=41).encode("dog").ids == [2, 40, 3]
    with pytest.raises(UserError, match="here: numbers a word 40, where the table has 40 rows"):
        read_vocabulary(json.dumps(said), "here", rows=40)


@pytest.mark.parametrize(
    "normalizer",
    [
        MAP,
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"},
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "Prepend", "prepend": "\u2581"},
    ],
)
def test_parts_of_published_vocabularies_are_read(said: dict[str, Any], normalizer: dict[str, Any]) -> None:
    said["normalizer"] = {"type": "Sequence", "normalizers": [normalizer, *said["normalizer"]["normalizers"]]}
    assert read_vocabulary(json.dumps(said), "here").encode("\uff41 dog").ids[-1] == 3


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_patterns_that_are_known_read_any_text_in_one_go(said: dict[str, Any], pattern: str) -> None:
    """One that did not would take minutes for the longest of these, or give up."""
    said["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": True}
    vocabulary = read_vocabulary(json.dumps(said), "here")
    for text in (" ", "a", "'", "<|", "\u72ac", "\u0e01\u0e34", "a ", "\n ", "1!"):
        assert vocabulary.encode(text * 20_000).ids[-1] == 3


@pytest.mark.parametrize(
    ("pattern", "left"),
    [(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]\^_`{|}~]""", "ab"), (r"[^\p{L}\s]+", "ab"), ("[ab]", "!")],
)
def test_a_class_of_characters_alone_is_read_in_one_go(said: dict[str, Any], pattern: str, left: str) -> None:
    said["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}
    normalizer = read_vocabulary(json.dumps(said), "tokenizer.json").normalizer
    assert normalizer is not None
    assert set(normalizer.normalize_str("a!b" * 50_000)) == set(left)


@pytest.mark.parametrize("pattern", ["[ab]+[ab]+", "[ab]*", "([ab]+)+", "[a[b]+]+", "[ab]+c", "[ab"])
def test_more_than_one_class_is_none_that_is_known(said: dict[str, Any], pattern: str) -> None:
    said["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}
    with pytest.raises(UserError, match="is none that is known here|repeats a repetition"):
        read_vocabulary(json.dumps(said), "tokenizer.json")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (models.WordPiece({"[UNK]": 0, "Dog": 1, "##gy": 2, "a": 3, "x1": 4, "!!": 5}, unk_token="[UNK]"), {"dog"}),
        (models.BPE({"do": 0, "dog</w>": 1, "g</w>": 2, "a": 3}, [], end_of_word_suffix="</w>"), {"dog"}),
        (models.BPE({"do": 0, "Ġdog": 1, "Ġ": 2}, []), {"dog"}),
        (models.Unigram([("<unk>", 0.0), ("▁dog", -1.0), ("og", -2.0), ("▁犬の", -3.0)], 0), {"dog", "犬の"}),
        (models.WordLevel({"<unk>": 0, "dog": 1, "t-shirt": 2}, unk_token="<unk>"), {"dog"}),
    ],
)
def test_whole_words_of_any_kind_of_vocabulary(model: models.Model, words: set) -> None:
    assert whole_words(Tokenizer(model)) == words


def test_a_vocabulary_of_pieces_lacks_signs_alone() -> None:
    pieces = {"[UNK]": 0, "do": 1, "##g": 2, "a": 3}
    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    assert unknown_words(tokenizer, "a dog") == ()
    assert unknown_words(tokenizer, "a 犬 dog ☃ 犬") == ("犬",)
    assert unknown_words(Tokenizer(models.BPE({"a": 0}, [])), "zebra") == ()


def test_pieces_are_the_tokens_as_they_stand_in_the_text() -> None:
    vocabulary = learn_vocabulary(["a dog runs"], 1)
    assert pieces(vocabulary, "A  Zebra, runs\ud83d") == ["", "A", "Zebra", ",", "runs", "?", ""]
    cut = cutting(vocabulary, 4)
    assert pieces(cut, "a dog runs on") == ["", "a", "dog", ""]
    for text in ("", "  ", "a dog", "DOG!!"):
        assert len(pieces(cut, text)) == len(tokenise(cut, [text])[0])
