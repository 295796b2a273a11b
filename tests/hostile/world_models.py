"""One small good model of each kind that other programs made."""

from __future__ import annotations

import json
from pathlib import Path


def make(root: Path) -> None:
    """All of them."""
    _make_vsepp(root / "vsepp")


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
