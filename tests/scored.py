"""Pairs of texts whose score is known, and tiny models that can learn it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rungwise.data import ScoredPairs

ANIMALS, THINGS = ("dog", "cat", "horse", "bird"), ("boat", "tree", "car", "house")
WORDS = (*ANIMALS, *THINGS)


def scored_pairs(count: int = 40) -> ScoredPairs:
    """Pairs of texts of two words; the score is 5 times the share of animals among the four. Three of four train."""
    draw = np.random.default_rng(0)
    first, second, scores = [], [], []
    while len(first) < count:
        a, b = (draw.choice(WORDS, 2, replace=False).tolist() for _ in range(2))
        first.append(" ".join(a))
        second.append(" ".join(b))
        scores.append(5.0 * sum(word in ANIMALS for word in (*a, *b)) / 4)
    splits = tuple("train" if place % 4 < 3 else "val" if place % 8 < 4 else "test" for place in range(count))
    return ScoredPairs(tuple(first), tuple(second), np.array(scores), splits, "words")


def write_table(pairs: ScoredPairs, file: Path) -> Path:
    """The pairs as a CSV with a column of splits."""
    rows = zip(pairs.first, pairs.second, pairs.scores.tolist(), pairs.splits, strict=True)
    lines = ["sentence1,sentence2,score,split", *(",".join(map(str, row)) for row in rows)]
    file.write_text("\n".join(lines))
    return file


def tiny_encoder(folder: Path, layers: int = 2) -> Path:
    """A BERT of random weights without outputs, as it is published."""
    import torch
    import transformers

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "a", "red", "runs"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=32).save_pretrained(folder)
    return folder


def tiny_sentence_model(folder: Path) -> Path:
    """A sentence model of random weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    raw = tiny_encoder(folder.with_name(f"{folder.name}_raw"))
    parts = [Transformer(str(raw)), Pooling(16), Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(str(folder), create_model_card=False)
    return folder
