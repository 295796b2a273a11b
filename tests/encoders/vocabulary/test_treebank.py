"""Against NLTK's own tokenizer, given one sentence after the other."""

import random
import re
from pathlib import Path

import pytest
from nltk.tokenize import NLTKWordTokenizer
from tokenizers import Tokenizer

from rungwise.encoders.vocabulary import read_vocabulary, treebank_vocabulary

FRAME = ("<pad>", "<start>", "<end>", "<unk>")
EMPTY = treebank_vocabulary({word: number for number, word in enumerate(FRAME)})


def words(text: str) -> list[str]:
    """As the vocabulary cuts them, whichever it knows."""
    normal = EMPTY.normalizer.normalize_str(text)
    return [word for word, _ in EMPTY.pre_tokenizer.pre_tokenize_str(normal)]


def words_of_nltk(text: str) -> list[str]:
    """Each sentence ends with a period, a question mark or an exclamation mark before a space."""
    parts = re.split(r"""((?<=[.?!])[\])}>"'»”’]*\s+)""", text.lower())
    ends = [*(one.rstrip() for one in parts[1::2]), ""]
    return [
        word for part, end in zip(parts[::2], ends, strict=True) for word in NLTKWordTokenizer().tokenize(part + end)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "A dog's bone, isn't it?",
        "They're at 10:30, in the (old) park; 3,000 people & two dogs...",
        'A sign reads "Keep out!" and "no dogs".',
        "\"Yes,\" it says -- 'no'.",
        'Two dogs. They run. (Fast.) "Good."',
        "We cannot, gonna, gotta, wanna and gimme more'n one d'ye see",
        "'Tis the boys' ball, 'twas [red] <blue> {green}",
        "Ein Hund läuft über die Straße – schnell!",
        "a t-shirt w/ #5 @ $3.50 * 100%",
        "can't've it's o'clock rock'n'roll",
    ],
)
def test_words_are_those_of_nltk(text: str) -> None:
    assert words(text) == words_of_nltk(text)


def test_words_are_those_of_nltk_in_any_order() -> None:
    rng = random.Random(0)
    pieces = ["a", "dog's", "isn't", "'hello'", '"dog"', '("sign"),', "so...", "end.", "dogs'", "3,000", "10:30;",
              "--", "[x]", "what?!", "cannot", "gonna", "'tis", "they've", "“no”", "café", "x-y", "&"]  # fmt: skip
    texts = [" ".join(rng.choices(pieces, k=rng.randint(1, 8))) for _ in range(500)]
    assert [text for text in texts if words(text) != words_of_nltk(text)] == []


@pytest.mark.real_data
def test_captions_are_cut_as_nltk_cuts_them(real_data: Path) -> None:
    lines = (real_data / "flickr8k" / "Flickr8k_text" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    captions = [line.split("\t")[1].strip() for line in lines[::40]]
    captions = [one for one in captions if not re.search(r"\.\s+\S", one)]  # where sentences end is asked below
    assert len(captions) > 1000
    assert [one for one in captions if words(one) != words_of_nltk(one)] == []


def test_a_period_within_a_caption_ends_a_sentence_unless_it_abbreviates() -> None:
    assert words("It sits. Mr. T. Smith of the U.S. army runs.") == [
        *("it", "sits", ".", "mr.", "t.", "smith", "of", "the", "u.s.", "army", "runs", ".")
    ]


def test_a_saved_vocabulary_is_read_as_it_was() -> None:
    numbers = {word: number for number, word in enumerate((*FRAME, "dog", "``", "''", "n't"))}
    saved = treebank_vocabulary(numbers).to_str(pretty=True)
    read = read_vocabulary(saved, "tokenizer.json")
    assert read.encode('The "dog" isn\'t').ids == [1, 3, 5, 4, 6, 3, 7, 2]
    assert read_vocabulary(read.to_str(), "tokenizer.json").to_str() == Tokenizer.from_str(saved).to_str()


@pytest.mark.parametrize(
    "text", [".)" * 20_000, ".)" + "'s" * 20_000, "." + ")" * 50_000 + "x", ". " * 20_000, "'" * 50_000, "can" * 20_000]
)
def test_long_rows_of_marks_take_a_time_that_grows_as_they_do(text: str) -> None:
    assert len(EMPTY.encode(text)) > 2  # the library gives up on what takes too many steps
