import json

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from rungwise.core import UserError
from rungwise.encoders.untrusted import PretrainedTokenizer, TokenRules, check_special, check_vocabulary, plain_rules

WORDS = {word: number for number, word in enumerate(["<pad>", "<unk>", "</s>", "a", "dog", "cat"])}


def rules() -> str:
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(3)
    return plain_rules(tokenizer.to_str())


def test_a_text_that_is_cut_keeps_its_end() -> None:
    tokenizer = PretrainedTokenizer(rules(), TokenRules(longest=4, pad=0), "tokenizer.json", 6)
    texts = ["a dog", "a dog a cat a dog", "", "a dog cat", "a dog cat a"]
    assert tokenizer.tokenise(texts) == [[3, 4, 2], [3, 4, 3, 2], [2], [3, 4, 5, 2], [3, 4, 5, 2]]
    assert tokenizer.too_long(texts).tolist() == [1, 4]
    assert tokenizer.too_long([]).tolist() == []


def test_texts_are_cleaned_first_and_a_token_may_become_0() -> None:
    rules_of_model = TokenRules(longest=4, pad=0, clean="lower", zeroed=2)
    tokenizer = PretrainedTokenizer(rules(), rules_of_model, "tokenizer.json", 6, str.lower)
    assert tokenizer.tokenise(["A DOG"]) == [[3, 4, 0]]


def test_what_the_tokenizer_pads_and_cuts_by_itself_is_left_out() -> None:
    said = json.loads(rules())
    assert (said["padding"], said["truncation"]) == (None, None)


@pytest.mark.parametrize(
    ("pad", "rows", "said"), [(6, 6, "fills up with token 6"), (0, 5, "numbers a word 5, where the table has 5 rows")]
)
def test_numbers_beyond_the_table_are_refused(pad: int, rows: int, said: str) -> None:
    with pytest.raises(UserError, match=said):
        PretrainedTokenizer(rules(), TokenRules(longest=4, pad=pad), "tokenizer.json", rows)


@pytest.mark.parametrize(("words", "rows"), [(49408, 49408), (250_002, 250_112), (250_000, 250_100), (100, 128)])
def test_a_table_may_be_a_little_longer_than_the_vocabulary(words: int, rows: int) -> None:
    check_vocabulary(words, rows, "tokenizer.json")


@pytest.mark.parametrize(("words", "rows"), [(49409, 49408), (32_000, 256_000), (256_000, 32_000), (378, 560)])
def test_a_vocabulary_of_another_model_is_refused(words: int, rows: int) -> None:
    with pytest.raises(UserError, match=f"{words} words, but the model's table has {rows}"):
        check_vocabulary(words, rows, "tokenizer.json")


def test_special_tokens_that_the_model_does_not_name_are_not_compared() -> None:
    check_special({"eos": 1, "pad": 0}, {"eos": 1, "bos": None}, "tokenizer.json")
