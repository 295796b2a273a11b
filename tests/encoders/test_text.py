import torch
from hypothesis import given
from hypothesis import strategies as st

from rungwise.encoders.text import GRUEncoder, learn_vocabulary, pad, tokenise

WORDS = "one two three four five six seven"


def test_rare_words_are_unknown_and_case_does_not_matter() -> None:
    vocabulary = learn_vocabulary(["A dog, a DOG"] * 2 + ["zebra"], min_count=4)
    assert vocabulary.encode("a Dog zebra ,").tokens == ["<start>", "a", "dog", "<unk>", "<unk>", "<end>"]


def test_the_vocabulary_does_not_depend_on_the_order_of_captions() -> None:
    captions = ["b a", "c b", "a c d", "e e"]
    one, other = learn_vocabulary(captions, 1), learn_vocabulary(captions[::-1], 1)
    assert one.get_vocab() == other.get_vocab()


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_any_text_has_tokens(texts: list[str]) -> None:
    vocabulary = learn_vocabulary(["some words"], min_count=1)
    for tokens in tokenise(vocabulary, texts):
        assert tokens[0] == 2
        assert tokens[-1] == 3


def test_padding_changes_no_vector() -> None:
    torch.manual_seed(0)
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7)
    captions = [[2, 5, 6, 3], [2, 3], [2, 9, 8, 7, 6, 5, 3]]
    together = encoder(*pad(captions))
    alone = torch.cat([encoder(*pad([caption])) for caption in captions])
    torch.testing.assert_close(together, alone)


def test_the_last_state_is_that_of_a_packed_gru() -> None:
    torch.manual_seed(0)
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7)
    tokens, lengths = pad([[2, 5, 6, 3], [2, 3]])
    packed = torch.nn.utils.rnn.pack_padded_sequence(encoder.words(tokens), lengths, batch_first=True)
    _, last = encoder.recurrent(packed)
    torch.testing.assert_close(encoder(tokens, lengths), last[0])
