"""Folders of pair models in the layout of sentence-transformers, each with a card on how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rungwise.core.formats import system_errors
from rungwise.core.output import printable
from rungwise.core.version import __version__
from rungwise.language import SAID, PairModel
from rungwise.language.sentence_models import without_bars
from rungwise.training.pair_models._correlations import Correlations

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_CARD = "README.md"
HEADER = "config.json"
"""File without which a folder is not taken for a model."""
_TRANSFORMER = (
    HEADER, "model.safetensors", "model-*.safetensors", "model.safetensors.index.json", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt",
    "*.model", "chat_template.jinja",
)  # fmt: skip
CROSS_ENCODER = (*_TRANSFORMER, _CARD)
"""Names of the files in a cross-encoder's folder."""

BI_ENCODER = (
    *CROSS_ENCODER, "modules.json", "config_sentence_transformers.json", "sentence_*_config.json",
    *(f"[0-9]_*/{name}" for name in _TRANSFORMER),
)  # fmt: skip
"""Names of the files in a sentence model's folder."""

_CROSS_ENCODER_USE = """```python
from sentence_transformers import CrossEncoder

CrossEncoder("this folder").predict([("a dog runs", "a puppy is running")])
```

```sh
rungwise relevance cascade DATA --model "this folder" --out degrees
```"""
_BI_ENCODER_USE = """```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("this folder")
model.similarity(model.encode(["a dog runs"]), model.encode(["a puppy is running"]))
```

```sh
rungwise relevance bi-encoder DATA --model "this folder" --out degrees
```"""


def save_cross_encoder(model: PairModel, folder: Path, facts: Mapping[str, Any]) -> None:
    """Write a cross-encoder with one output, whose sigmoid is the score, into an existing empty folder.

    ``facts`` go into its card.
    """
    network, tokenizer = model.network, model.tokenizer
    network.config.sentence_transformers = {"activation_fn": "torch.nn.modules.activation.Sigmoid", **_library()}
    setattr(network.config, SAID, {"scale": "sigmoid"})
    tokenizer.model_max_length = model.max_length  # so that whoever loads it cuts where training did
    with without_bars(), system_errors(folder):
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    purpose = "Reads two texts together, and says in 0..1 how alike their meanings are."
    _write_card(folder, "Cross-encoder", "text-ranking", "cross-encoder", purpose, _CROSS_ENCODER_USE, facts)


def save_bi_encoder(model: SentenceTransformer, folder: Path, facts: Mapping[str, Any]) -> None:
    """Write a sentence model into an existing empty folder."""
    with without_bars(), system_errors(folder):
        model.save_pretrained(str(folder), create_model_card=False)
    purpose = "Gives a text a vector. The cosine of two vectors says how alike the meanings are."
    _write_card(
        folder, "Sentence embeddings", "sentence-similarity", "sentence-similarity", purpose, _BI_ENCODER_USE, facts
    )


def agreement_facts(dev: Correlations, test: Correlations | None, when: str = "") -> dict[str, Any]:
    """Correlations of both splits, as facts for a card."""
    return {
        f"{name}{when}": {"Pearson": round(one.pearson, 4), "Spearman": round(one.spearman, 4), "pairs": one.pairs}
        for name, one in (("dev", dev), ("test", test))
        if one is not None
    }


def name_of(model: str | Path) -> str:
    """Name of a model in a card: a name on the hub unchanged, of a folder its last part."""
    if isinstance(model, str) and not Path(model).expanduser().is_dir():
        return model
    return Path(model).name


def _library() -> dict[str, str]:
    try:
        return {"version": version("sentence-transformers")}
    except PackageNotFoundError:
        return {}


def _write_card(
    folder: Path, title: str, pipeline: str, tag: str, purpose: str, use: str, facts: Mapping[str, Any]
) -> None:
    from huggingface_hub import ModelCardData  # slow to load, and only saving needs it

    header = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag=pipeline,
        tags=["sentence-transformers", tag],
        model_name=title,
    )
    plain = yaml.safe_dump({**facts, "rungwise": __version__}, sort_keys=False, allow_unicode=True)
    # Names of files and splits are a stranger's: within a block of code they are shown as they are.
    block = "\n".join(f"    {printable(line)}" for line in plain.splitlines())
    (folder / _CARD).write_text(
        f"---\n{header.to_yaml().strip()}\n---\n\n# {title}\n\n{purpose} Made with rungwise.\n\n{use}\n\n"
        f"## What it is made of\n\n{block}\n",
        encoding="utf-8",
    )
