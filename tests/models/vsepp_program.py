"""What the VSE++ program computes and saves (Faghri et al. 2018), in plain torch, for the tests of its import."""

import pickle
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WORDS = ("<pad>", "<start>", "<end>", "<unk>", "a", "dog", "'s", "runs", ".", "two")


def unit(vectors: Tensor) -> Tensor:
    """Rows of length 1."""
    return vectors / vectors.pow(2).sum(dim=1, keepdim=True).sqrt()


class Images(nn.Module):
    """Precomputed features, or a network of torchvision without its last layer; a linear layer."""

    def __init__(self, opt: Namespace) -> None:
        super().__init__()
        self.opt = opt
        if opt.data_name.endswith("_precomp"):
            self.fc = nn.Linear(opt.img_dim, opt.embed_size)
            return
        self.cnn: Any = getattr(torchvision.models, opt.cnn_type)(weights=None)
        if opt.cnn_type.startswith("vgg"):
            self.fc = nn.Linear(self.cnn.classifier[6].in_features, opt.embed_size)
            self.cnn.classifier = nn.Sequential(*list(self.cnn.classifier.children())[:-1])
            self.cnn.features = nn.DataParallel(self.cnn.features)
        else:
            self.fc = nn.Linear(self.cnn.fc.in_features, opt.embed_size)
            self.cnn.fc = nn.Sequential()
            self.cnn = nn.DataParallel(self.cnn)

    def forward(self, images: Tensor) -> Tensor:
        vectors = self.fc(unit(self.cnn(images)) if hasattr(self, "cnn") else images)
        vectors = vectors if self.opt.no_imgnorm else unit(vectors)
        return vectors.abs() if self.opt.use_abs else vectors


class Texts(nn.Module):
    """Word vectors and a GRU on packed captions, longest first."""

    def __init__(self, opt: Namespace) -> None:
        super().__init__()
        self.opt = opt
        self.embed = nn.Embedding(opt.vocab_size, opt.word_dim)
        self.rnn = nn.GRU(opt.word_dim, opt.embed_size, opt.num_layers, batch_first=True)

    def forward(self, tokens: list[list[int]]) -> Tensor:
        order = sorted(range(len(tokens)), key=lambda place: -len(tokens[place]))
        lengths = [len(tokens[place]) for place in order]
        padded = torch.zeros(len(tokens), max(lengths), dtype=torch.int64)
        for row, place in zip(padded, order, strict=True):
            row[: len(tokens[place])] = torch.tensor(tokens[place])
        states, _ = self.rnn(pack_padded_sequence(self.embed(padded), lengths, batch_first=True))
        states = pad_packed_sequence(states, batch_first=True)[0]
        last = torch.stack([one[length - 1] for one, length in zip(states, lengths, strict=True)])
        vectors = torch.empty_like(last)
        vectors[order] = unit(last)
        return vectors.abs() if self.opt.use_abs else vectors


def options(**changed: Any) -> Namespace:
    """The program's, with its defaults but for small sizes."""
    usual = {
        "data_path": "data", "data_name": "coco_precomp", "vocab_path": "vocab", "margin": 0.2, "num_epochs": 30,
        "batch_size": 128, "word_dim": 6, "embed_size": 8, "grad_clip": 2.0, "crop_size": 224, "num_layers": 1,
        "learning_rate": 0.0002, "lr_update": 15, "workers": 10, "log_step": 10, "val_step": 500, "logger_name": "runs",
        "resume": "", "max_violation": True, "img_dim": 5, "finetune": False, "cnn_type": "vgg19", "use_restval": False,
        "measure": "cosine", "use_abs": False, "no_imgnorm": False, "vocab_size": len(WORDS),
    }  # fmt: skip
    return Namespace(**{**usual, **changed})


def checkpoint(images: nn.Module, texts: nn.Module, opt: Namespace) -> dict[str, Any]:
    """What the program hands to torch.save."""
    sides = [images.state_dict(), texts.state_dict()]
    return {"epoch": 7, "model": sides, "best_rsum": 312.5, "opt": opt, "Eiters": 42}


def save_vocabulary(path: Path, words: tuple[str, ...] = WORDS, protocol: int = 2) -> Path:
    """The pickle of an object of the class ``vocab.Vocabulary``, which stands in no module here."""
    numbers = {word: number for number, word in enumerate(words)}
    kind = type("Vocabulary", (), {"__module__": "vocab"})
    whole = kind()
    vars(whole).update(word2idx=numbers, idx2word={n: word for word, n in numbers.items()}, idx=len(words))
    module = type(pickle)("vocab")
    module.Vocabulary = kind  # type: ignore[attr-defined]
    sys.modules["vocab"] = module
    try:
        path.write_bytes(pickle.dumps(whole, protocol=protocol))
    finally:
        del sys.modules["vocab"]
    return path
