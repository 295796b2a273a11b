"""Configurations and folders that name encoders, for the walk of tests.hostile.configurations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from rungwise.core import to_plain
from rungwise.encoders import AdapterHead, FeatureConfig
from rungwise.encoders._heads import MLPHead, ResidualHead
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import JointEmbedding, VSEConfig, load
from rungwise.models.export import export_onnx
from rungwise.models.joint._config import OUR_IMAGE_SIDES, OUR_TEXT_SIDES

FEATURES = {"kind": "features", "width": 3}


def documents(home: Path) -> dict[str, Any]:
    """Models of a run with every kind of side and head; the files that they name are made here.

    A kind of side that has none here has one with its defaults.
    """
    (home / "words.txt").write_text("dog 1 2 3\ncat 4 5 6\n")
    text = to_plain(GRUConfig(3, 1, word_vectors=str(home / "words.txt"), train_words=False, vocabulary="both"))
    small = {"kind": "gru", "word_dimension": 3, "min_count": 1}
    source = f"hf:{clip(home)}"
    found: dict[str, Any] = {
        "gru": {"image": FEATURES, "text": text, "dimension": 4},
        "transformer": {
            "image": FEATURES,
            "text": {"kind": "transformer", "model": str(sentences(home)), "frozen": False, "keep_layers": 1},
            "text_head": "linear",
            "dimension": 4,
        },
        "heads": {
            "image": FEATURES, "text": small, "dimension": 4,
            "image_head": to_plain(ResidualHead(hidden=4)), "text_head": to_plain(AdapterHead(hidden=4)),
        },
        "mlp": {"image": FEATURES, "text": small, "dimension": 4, "image_head": to_plain(MLPHead(hidden=(4, 4)))},
        "pretrained": {
            "image": {"kind": "pretrained", "source": source, "frozen": True, "l2_normalise": True},
            "text": {"kind": "pretrained", "source": source, "frozen": True, "l2_normalise": True},
            "image_head": "none",
            "dimension": 24,
        },
    }  # fmt: skip
    sides: dict[str, Any] = {"image": OUR_IMAGE_SIDES, "text": OUR_TEXT_SIDES}
    for side, configs in sides.items():
        there = {one[side]["kind"] for one in found.values()} | {ImageConfig.kind}  # pictures have a run of their own
        for config in configs:
            if config.kind not in there:
                found[config.kind] = {"image": FEATURES, "text": small, "dimension": 4, side: to_plain(config())}
    return found


def clip(home: Path) -> Path:
    """A published model, made once."""
    from tests.published import Published

    (home / "published").mkdir(exist_ok=True)
    made = home / "published" / "clip"
    return made if made.is_dir() else Published(home / "published").clip


def sentences(home: Path) -> Path:
    """A sentence model, made once."""
    made = home / "encoder" / "sentences"
    if not made.is_dir():
        made.parent.mkdir()
        sentence_model(made)
    return made


def sentence_model(folder: Path) -> None:
    """A small folder of sentence-transformers."""
    import transformers
    from sentence_transformers import SentenceTransformer, models

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog"]
    raw = folder.with_name("raw")
    raw.mkdir()
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4,
        max_position_embeddings=8,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(raw)
    (raw / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(raw / "vocab.txt"), model_max_length=8).save_pretrained(raw)
    dense = models.Dense(4, 2, activation_function=torch.nn.Tanh())
    parts = [models.Transformer(str(raw)), models.Pooling(4), dense, models.Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(str(folder))


def folders(home: Path) -> list[tuple[Path, tuple[str, ...], Callable[[], None]]]:
    """Folders of models, their files, and what uses them."""
    published, saved, exported = clip(home), home / "saved_clip", home / "exported"
    load(f"hf:{published}", "cpu").save_pretrained(saved)  # type: ignore[attr-defined]
    config = VSEConfig(image=FeatureConfig(width=3), text=GRUConfig(4, 1), dimension=4)
    export_onnx(JointEmbedding.create(config, ["a dog"]), exported)

    def encode(source: str) -> Callable[[], None]:
        return lambda: load(source, "cpu", altered=True).encode_text(["a dog"])  # type: ignore[attr-defined]

    return [
        (published, ("config.json", "preprocessor_config.json", "tokenizer_config.json"), encode(f"hf:{published}")),
        (saved, ("config.json", "image_encoder.json", "text_encoder.json"), encode(str(saved))),
        (exported, ("config.json",), encode(str(exported))),
    ]
