import unicodedata
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError, identity
from rungwise.encoders.texts import GRUConfig, GRUEncoder, learn_vocabulary
from rungwise.encoders.vocabulary import pad, read_vocabulary, tokenise

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


OPTIONS = [
    {"directions": directions, "pool": pool, "layers": layers}
    for directions in ("one", "both")
    for pool in ("last", "mean", "max")
    for layers in (1, 2)
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_each_option_gives_each_caption_the_vector_it_has_alone(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7, **options)
    captions = [[2, 5, 6, 3], [2, 3], [2, 9, 8, 7, 6, 5, 3]]
    together = encoder(*pad(captions))
    alone = torch.cat([encoder(*pad([caption])) for caption in captions])
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_states_of_tokens_are_those_of_a_packed_gru_and_pooling_reads_them(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7, **options)
    tokens, lengths = pad([[2, 5, 6, 3], [2, 3], [2, 9, 8, 7, 6, 5, 3]])
    states = encoder.states(tokens, lengths)
    pack = partial(torch.nn.utils.rnn.pack_padded_sequence, batch_first=True, enforce_sorted=False)
    packed, _ = encoder.recurrent(pack(encoder.words(tokens), lengths))
    both, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    wanted = both.view(3, 7, -1, 7).mean(dim=2)
    for text, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(states[text, :length], wanted[text, :length])
        torch.testing.assert_close(
            encoder.states(tokens[text : text + 1], lengths[text : text + 1])[0, :length], wanted[text, :length]
        )
        if options["pool"] == "mean":
            torch.testing.assert_close(encoder(tokens, lengths)[text], wanted[text, :length].mean(dim=0))


def test_word_dropout_hides_numbers_of_word_vectors_in_training_alone() -> None:
    torch.manual_seed(0)
    options = {"word_dimension": 50, "width": 7, "directions": "both"}
    plain = GRUEncoder(learn_vocabulary([WORDS], 1), **options)
    dropping = GRUEncoder(learn_vocabulary([WORDS], 1), **options, word_dropout=0.4)
    dropping.load_state_dict(plain.state_dict())
    tokens, lengths = pad([[2, 5, 6, 3], [2, 5, 3]])
    torch.testing.assert_close(dropping.eval().states(tokens, lengths), plain.eval().states(tokens, lengths))
    seen: list[torch.Tensor] = []
    dropping.train().dropout.register_forward_hook(lambda module, given, out: seen.append(out == 0))
    dropping.states(tokens, lengths)
    assert 0.2 < seen[0].float().mean() < 0.6
    assert not torch.equal(seen[0][0, 1], seen[0][1, 1])  # the same word in two captions
    with pytest.raises(UserError, match="word_dropout"):
        GRUConfig(word_dropout=1.0)


def test_both_directions_are_the_average_of_one_and_of_the_words_turned_round() -> None:
    torch.manual_seed(0)
    both = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7, directions="both")
    there, back = (
        GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7),
        GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7),
    )
    weights = both.state_dict()
    there.load_state_dict({name: tensor for name, tensor in weights.items() if "reverse" not in name})
    reverse = {name.replace("_reverse", ""): tensor for name, tensor in weights.items() if "reverse" in name}
    back.load_state_dict(reverse | {"words.weight": weights["words.weight"]})
    caption = [2, 9, 8, 7, 3]
    expected = (there(*pad([caption])) + back(*pad([caption[::-1]]))) / 2
    torch.testing.assert_close(both(*pad([caption, [2, 9, 8, 7, 6, 6, 6, 3]]))[:1], expected)


def test_the_plain_encoder_keeps_its_names_and_its_identity() -> None:
    names = {f"recurrent.{kind}_{of}_l0" for kind in ("weight", "bias") for of in ("ih", "hh")}
    assert set(GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7).state_dict()) == names | {
        "words.weight"
    }
    assert identity(GRUConfig()) == {
        "word_dimension": 300, "min_count": 4, "kind": "gru", "directions": "one", "pool": "last", "layers": 1,
        "context_length": None, "width": None,
    }  # fmt: skip


def test_long_captions_are_cut_and_said() -> None:
    encoder = GRUConfig(min_count=1, word_dimension=3, context_length=5).build(["a b c d e"], 4)
    assert encoder.tokenise(["a b c d e", "a b c"]) == [[2, 4, 5, 6, 3], [2, 4, 5, 6, 3]]
    assert encoder.too_long(["a b c d e", "a b c", "word " * 10_000]).tolist() == [0, 2]
    assert GRUConfig(min_count=1).build(["a b"], 4).too_long(["word " * 10_000]).tolist() == []


@pytest.mark.parametrize("unspaced", ["runs", "characters"])
def test_composed_and_decomposed_letters_are_the_same_words(unspaced: Any) -> None:
    vocabulary = learn_vocabulary(["café Ünder ガ가 đượ ☕"], 1, unspaced=unspaced)
    for text in ("café", "Ünder", "ガ가", "đượ"):
        forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
        one, other = tokenise(vocabulary, forms)
        assert one == other
        assert 1 not in one


SCRIPTS = {
    "Chinese": ("一隻狗在跑", ["一", "隻", "狗", "在", "跑"]),
    "Japanese": ("犬が走る", ["犬", "が", "走", "る"]),
    "Thai": ("เด็กวิ่ง", ["เ", "ด็", "ก", "วิ่", "ง"]),
    "rare Chinese": ("𠀀𠮷", ["𠀀", "𠮷"]),
    "Korean": ("개가 달린다", ["개가", "달린다"]),
    "Arabic": ("كلب أحمر", ["كلب", "أحمر"]),
    "Hindi": ("लाल कुत्ता", ["लाल", "कुत्ता"]),
    "emoji": ("dog 👍🏽 ran", ["dog", "👍🏽", "ran"]),
}


@pytest.mark.parametrize(("text", "cut"), SCRIPTS.values(), ids=SCRIPTS)
def test_scripts_without_spaces_are_cut_into_characters_where_that_is_asked(text: str, cut: list[str]) -> None:
    vocabulary = learn_vocabulary([text], 1, unspaced="characters")
    assert vocabulary.encode(text).tokens[1:-1] == cut
    again = read_vocabulary(vocabulary.to_str(pretty=True), "tokenizer.json")
    assert again.encode(text).ids == vocabulary.encode(text).ids


@pytest.mark.parametrize("text", ["", " ", "?!", "\u200b", "\ud800", "a\x00b", "\u202eabc"])
def test_odd_texts_have_vectors(text: str) -> None:
    encoder = GRUConfig(min_count=1, word_dimension=3, directions="both", pool="max").build(["a b"], 4)
    vector = encoder(*pad(encoder.tokenise([text])))
    assert vector.shape == (1, 4)
    assert torch.isfinite(vector).all()


def test_states_may_have_a_width_of_their_own() -> None:
    encoder = GRUConfig(word_dimension=4, min_count=1, width=6).build(["a dog", "a cat"], 3)
    assert encoder.width == 6
    assert GRUConfig(word_dimension=4, min_count=1).build(["a dog"], 3).width == 3
    with pytest.raises(UserError, match="width: must be at least 1"):
        GRUConfig(width=0)
