"""Models of pairs that tests share and only read."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from rungwise.training.pair_models import CrossEncoderResult, PairTraining, TrainingObserver, train_cross_encoder
from tests.scored import scored_pairs, tiny_encoder


@dataclass(frozen=True)
class Grader:
    """A cross-encoder that has learned.

    Attributes:
        found: What its training gave back.
        said: What it said.
    """

    found: CrossEncoderResult
    said: list[str]


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "encoder")


@pytest.fixture(scope="session")
def grader(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Grader:
    """Of 160 pairs."""
    said: list[str] = []
    settings = PairTraining(epochs=20, batch_size=16, learning_rate=5e-3)
    folder = tmp_path_factory.mktemp("grader") / "grader"
    found = train_cross_encoder(
        scored_pairs(160), folder, encoder, settings, device="cpu", watching=TrainingObserver(said.append)
    )
    return Grader(found, said)
