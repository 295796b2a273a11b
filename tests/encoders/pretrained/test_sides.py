import json
from pathlib import Path

import pytest
import torch

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.encoders import PREPROCESSING, TOKENIZER
from rungwise.encoders._sides import IMAGE_ENCODER, TEXT_ENCODER
from rungwise.encoders.pretrained import PretrainedImageConfig, PretrainedTextConfig
from rungwise.encoders.vocabulary import pad
from tests.published import CAPTIONS, Published


class Files:
    """Text files in memory, as a saved model gives them."""

    path = Path("model")

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def text(self, name: str) -> str:
        return self.texts[name]

    def json(self, name: str) -> dict[str, object]:
        return json.loads(self.texts[name])  # type: ignore[no-any-return]


NAMES = ["clip", "siglip2", "naflex", "open_clip", "open_clip_siglip"]


def source(name: str, published: Published) -> str:
    return f"{'open_clip' if name.startswith('open_clip') else 'hf'}:{getattr(published, name)}"


@pytest.mark.parametrize("name", NAMES)
def test_sides_are_restored_from_their_files_alone(name: str, published: Published) -> None:
    image = PretrainedImageConfig(source(name, published)).build().eval()
    text = PretrainedTextConfig(source(name, published)).build((), 0).eval()
    image_again = PretrainedImageConfig().restore(Files(dict(image.files()))).eval()
    text_again = PretrainedTextConfig().restore(Files(dict(text.files())), 0).eval()
    image_again.load_state_dict(image.state_dict())
    text_again.load_state_dict(text.state_dict())
    assert image_again.fingerprint() == image.fingerprint()
    assert text_again.fingerprint() == text.fingerprint()
    picture = torch.randint(0, 256, (3, 40, 60), dtype=torch.uint8)
    pixels = torch.stack([image.preprocessing.apply(picture), image.preprocessing.apply(picture.flip(-1))])
    assert image_again.preprocessing == image.preprocessing
    tokens, lengths = pad(text.tokenise(CAPTIONS), text.pad_number)
    with torch.inference_mode():
        assert torch.equal(image_again(pixels), image(pixels))
        assert torch.equal(text_again(tokens, lengths), text(tokens, lengths))
    assert text_again.too_long(CAPTIONS).tolist() == text.too_long(CAPTIONS).tolist()
    assert (image(pixels).shape, text.width) == ((2, image.features), image.features)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_stays_close(name: str, published: Published) -> None:
    side = PretrainedImageConfig(source(name, published)).build().eval()
    pictures = [torch.randint(0, 256, (3, 50, 60), dtype=torch.uint8) for _ in range(4)]
    rows = torch.stack([side.preprocessing.apply(one) for one in pictures])
    with torch.inference_mode():
        exact, same, half = side(rows), side.inference(False)(rows), side.inference(True)(rows)
    assert torch.equal(exact, same)
    assert (half.dtype, half.shape) == (torch.float32, exact.shape)
    assert not torch.equal(exact, half)
    assert torch.nn.functional.cosine_similarity(exact, half).min() > 0.995


@pytest.mark.parametrize("name", ["clip", "siglip2"])
def test_sides_are_restored_where_numbers_have_no_memory(name: str, published: Published) -> None:
    """A saved model is built on torch's device ``meta`` first, to compare shapes."""
    image = PretrainedImageConfig(source(name, published)).build()
    with torch.device("meta"):
        again = PretrainedImageConfig().restore(Files(dict(image.files())))
    assert again.state_dict().keys() == image.state_dict().keys()


def test_where_a_model_came_from_changes_no_fingerprint(published: Published) -> None:
    direct = PretrainedImageConfig(f"hf:{published.clip}").build()
    other = PretrainedImageConfig(f"st:{published.old_sentence}").build()
    assert direct.fingerprint() == other.fingerprint()


def test_rows_of_features_are_refused() -> None:
    with pytest.raises(UserError, match=r"set model\.text\.kind: features"):
        PretrainedTextConfig("hf:x").of(FeatureRows(torch.ones(1, 2).numpy()))


SPOILT = [
    (IMAGE_ENCODER, {"library": "os"}, "library 'os' is not one of transformers, open_clip"),
    (IMAGE_ENCODER, {"library": None}, "library: expected a name"),
    (IMAGE_ENCODER, {"architecture": "blip"}, "model_type 'blip' is not read"),
    (IMAGE_ENCODER, {"settings": []}, "settings: expected a JSON object"),
    (IMAGE_ENCODER, {"settings": {"hidden_size": 8}}, "is missing"),
    (PREPROCESSING, {"size": "large"}, "size: must be a whole number"),
    (TEXT_ENCODER, {"tokens": None}, "tokens: expected a mapping"),
    (TEXT_ENCODER, {"tokens": {"longest": 1, "pad": 0}}, "tokens: longest"),
    (TEXT_ENCODER, {"tokens": {"longest": 8, "pad": 10**6}}, "fills up with token 1000000"),
    (TOKENIZER, {"model": {"type": "Spell"}}, "tokenizer.json: model: expected one of"),
]


@pytest.mark.parametrize(("file", "change", "said"), SPOILT)
def test_spoilt_files_have_one_line(file: str, change: dict[str, object], said: str, published: Published) -> None:
    config = PretrainedImageConfig(f"hf:{published.clip}"), PretrainedTextConfig(f"hf:{published.clip}")
    files = Files({**config[0].build().files(), **config[1].build((), 0).files()})
    files.texts[file] = json.dumps(json.loads(files.texts[file]) | change)
    image = file in (IMAGE_ENCODER, PREPROCESSING)
    with pytest.raises(UserError, match=said) as refused:
        config[0].restore(files) if image else config[1].restore(files, 0)
    assert "\n" not in str(refused.value)
