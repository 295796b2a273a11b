"""One small good model of each kind that other programs made, and what rungwise writes of such."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.hostile import world
from tests.scored import tiny_encoder

PUBLISHED = {"hf": ("clip", "siglip2"), "open_clip": ("open_clip",), "st": ("sentence",)}
"""Folders by the prefix that they are loaded with."""


def make(root: Path) -> None:
    """All of them; the model of the world's run must be there already."""
    _make_vsepp(root / "vsepp")
    _make_published(root)
    _make_saved(root)
    tiny_encoder(root / "pair_encoder")
    _make_grader(root)


def _make_grader(root: Path) -> None:
    """A model of pairs, as training leaves it."""
    from rungwise.core.disk.folders import replacing_folder
    from rungwise.language import load_pair_model
    from rungwise.training.pair_models import CROSS_ENCODER
    from rungwise.training.pair_models._model_folders import HEADER, save_cross_encoder

    model = load_pair_model(root / "pair_encoder", outputs=1)
    with replacing_folder(root / "grader", CROSS_ENCODER, "a model of pairs", header=HEADER) as draft:
        save_cross_encoder(model, draft, {"seed": 0})


def _make_vsepp(folder: Path) -> None:
    import torch

    from tests.models.vsepp_program import WORDS, Images, Texts, checkpoint, options, save_vocabulary

    folder.mkdir()
    opt = options()
    said = checkpoint(Images(opt), Texts(opt), opt)
    for name, zipped in (("model_best.pth.tar", True), ("early.pth.tar", False)):
        torch.save(said, folder / name, _use_new_zipfile_serialization=zipped)
    save_vocabulary(folder / "vocab.pkl")
    (folder / "vocab.json").write_text(json.dumps({"word2idx": {word: at for at, word in enumerate(WORDS)}, "idx": 10}))


def _make_published(root: Path) -> None:
    from tests.published import Published

    made = Published(root / "published")
    for names in PUBLISHED.values():
        for name in names:
            shutil.move(getattr(made, name), root / name)
            setattr(made, name, root / name)


def _make_saved(root: Path) -> None:
    """A published model that was saved, models with word vectors and with a transformer, and one that was exported."""
    import torch

    from rungwise.encoders import FeatureConfig, LinearHead
    from rungwise.encoders.texts import GRUConfig, TransformerConfig
    from rungwise.models import JointEmbedding, VSEConfig, load
    from rungwise.models.export import export_onnx
    from tests.hostile.configured import sentence_model

    load(f"hf:{root / 'clip'}", "cpu").save_pretrained(root / "saved_clip")  # type: ignore[attr-defined]
    torch.manual_seed(0)
    text = GRUConfig(3, 1, word_vectors=str(root / "words/glove.txt"), directions="both", pool="max", vocabulary="both")
    config = VSEConfig(image=FeatureConfig(width=5), text=text, dimension=4)
    JointEmbedding.create(config, world.CAPTIONS).save_pretrained(root / "saved_words")
    sentence_model(root / "sentences")
    read = TransformerConfig(model=str(root / "sentences"), frozen=False)
    config = VSEConfig(image=FeatureConfig(width=5), text=read, dimension=4, text_head=LinearHead())
    JointEmbedding.create(config, world.CAPTIONS).save_pretrained(root / "saved_transformer")
    export_onnx(world.model_in(root / "run/model"), root / "exported")
