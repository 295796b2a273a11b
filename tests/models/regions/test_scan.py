import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig, TransformerConfig, learn_vocabulary
from rungwise.models import EncoderBatch
from rungwise.models.regions._scan import SCAN, SCANConfig
from rungwise.similarity import WordSets, all_pairs
from tests.models.regions.programs import programs
from tests.models.regions.small import CAPTIONS, sides_of_features, varied
from tests.similarity.scan_loops import scan_of_pair


def scan(regions: int = 3, **changes: object) -> tuple[SCAN, torch.Tensor]:
    """A model in float64, and rows of four images."""
    torch.manual_seed(0)
    rows = np.random.default_rng(2).normal(size=(4, regions, 7)).astype(np.float32)
    model = SCAN.create(SCANConfig(**sides_of_features(), dimension=5, **changes), CAPTIONS, FeatureRows(rows))
    varied(model)
    return model, torch.from_numpy(rows)


def words_of(model: SCAN, text: str) -> torch.Tensor:
    """(L, D) words of one caption, from the weights of the GRU, number by number (Cho et al. 2014)."""
    tokens = model.text_encoder.tokenise([text])[0]
    ways = []
    for suffix, order in (("", tokens), ("_reverse", tokens[::-1])):
        weights = {
            name: getattr(model.text_encoder.recurrent, f"{name}_l0{suffix}").double()
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
        state, states = torch.zeros(5, dtype=torch.float64), []
        for token in order:
            word = model.text_encoder.words.weight[token].double()
            given = (weights["weight_ih"] @ word + weights["bias_ih"]).view(3, 5)
            before = (weights["weight_hh"] @ state + weights["bias_hh"]).view(3, 5)
            reset, update = torch.sigmoid(given[0] + before[0]), torch.sigmoid(given[1] + before[1])
            new = torch.tanh(given[2] + reset * before[2])
            state = (1 - update) * new + update * state
            states.append(state)
        ways.append(states if not suffix else states[::-1])
    mean = [(one + other) / 2 for one, other in zip(*ways, strict=True)]
    return torch.stack([word / word.norm() for word in mean])


@pytest.mark.parametrize("regions", [1, 3])
@pytest.mark.parametrize(
    "changes", [{}, {"attend": "i2t", "smoothing": 4.0, "lse": 5.0}, {"pooling": "mean", "normalise": "softmax"}]
)
def test_it_scores_pairs_by_the_equations_from_weights_to_similarity(regions: int, changes: dict) -> None:
    model, rows = scan(regions, **changes)
    weight, bias = model.region_projection.weight.double(), model.region_projection.bias.double()
    found = model.block(FeatureRows(rows.numpy()), CAPTIONS[:4])
    asked = {"attend": "t2i", "smoothing": 9.0, "pooling": "lse", "lse": 6.0, "normalise": "clipped_l2norm", **changes}
    for image in range(4):
        own = torch.stack([weight @ row.double() + bias for row in rows[image]])
        own = own / own.norm(dim=1, keepdim=True)
        for caption in range(4):
            wanted = scan_of_pair(own, words_of(model, CAPTIONS[caption]), **asked)
            assert found[image, caption] == pytest.approx(wanted.item(), abs=2e-5)


@pytest.mark.parametrize("changes", [{}, {"attend": "i2t", "smoothing": 4.0, "lse": 5.0}])
def test_it_is_what_the_loop_of_the_benchmark_gives(changes: dict) -> None:
    model, rows = scan(4, **changes)
    config, lengths = model.config, [2, 5, 1]
    regions = model.regions(rows).detach().double()
    words = F.normalize(torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64), dim=2)
    found = all_pairs(model.comparison, regions, WordSets.of(words, lengths))
    program = programs.scan(regions, words, lengths, config.attend, config.smoothing, config.lse)
    torch.testing.assert_close(program, found, rtol=0, atol=1e-10)


def test_every_weight_has_a_gradient() -> None:
    model, rows = scan()
    tokens = [model.text_encoder.tokenise([text])[0] for text in CAPTIONS[:4]]
    longest = max(map(len, tokens))
    padded = torch.tensor([one + [0] * (longest - len(one)) for one in tokens])
    scored = model.score(EncoderBatch(rows, padded, torch.tensor([len(one) for one in tokens])))
    (scored.similarity * torch.randn(4, 4, generator=torch.Generator().manual_seed(1))).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
        assert torch.isfinite(parameter.grad).all(), name


def test_parameters_are_as_many_as_the_authors() -> None:
    """SCAN on Flickr30K: 2,048-d regions, words of 300, a bidirectional GRU of 1,024."""
    words = [f"word{number}" for number in range(500)]
    vocabulary = len(words) + 4  # and <pad>, <unk>, <start>, <end>
    text = GRUConfig(word_dimension=300, min_count=1, directions="both")
    config = SCANConfig(image=FeatureConfig(width=2048, l2_normalise=False), text=text, dimension=1024)
    with torch.device("meta"):
        model = SCAN.create(config, words, FeatureRows(np.zeros((1, 36, 2048), np.float16)))
    regions = 2048 * 1024 + 1024
    gru = 2 * 3 * (300 * 1024 + 1024 * 1024 + 1024 + 1024)
    assert learn_vocabulary(words, 1).get_vocab_size() == vocabulary
    assert sum(one.numel() for one in model.parameters()) == regions + vocabulary * 300 + gru


def test_a_transformer_gives_words_of_another_width() -> None:
    torch.manual_seed(0)
    rows = FeatureRows(np.random.default_rng(2).normal(size=(3, 4, 7)).astype(np.float32))
    config = SCANConfig(image=FeatureConfig(l2_normalise=False), text=TransformerConfig(keep_layers=1), dimension=8)
    model = SCAN.create(config, CAPTIONS, rows).eval()
    assert model.word_projection.in_features == model.text_encoder.state_width
    together = model.block(rows, CAPTIONS)
    for caption, text in enumerate(CAPTIONS):
        np.testing.assert_allclose(model.block(rows, [text])[:, 0], together[:, caption], atol=1e-5)
    assert len(model.too_long(["word " * 2000])) == 1


def test_word_dropout_is_of_training_alone() -> None:
    text = GRUConfig(word_dimension=6, min_count=1, directions="both", word_dropout=0.4)
    torch.manual_seed(0)
    rows = FeatureRows(np.random.default_rng(2).normal(size=(3, 4, 7)).astype(np.float32))
    config = SCANConfig(image=FeatureConfig(l2_normalise=False), text=text, dimension=8)
    model = SCAN.create(config, CAPTIONS, rows)
    np.testing.assert_array_equal(model.block(rows, CAPTIONS), model.block(rows, CAPTIONS))
    tokens, lengths = torch.tensor([[2, 5, 6, 3], [2, 5, 3, 0]]), torch.tensor([4, 3])
    model.train()
    first, second = model.words(tokens, lengths), model.words(tokens, lengths)
    assert not torch.allclose(first, second)
    assert torch.allclose(F.normalize(first, dim=2), first, atol=1e-6)


@pytest.mark.parametrize("changes", [{"attend": "both"}, {"smoothing": 0.0}, {"normalise": "none"}])
def test_options_that_are_not_known_are_refused(changes: dict) -> None:
    with pytest.raises(UserError, match=next(iter(changes))):
        SCANConfig(**changes)
