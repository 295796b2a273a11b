import pytest

from rungwise.core.configuration import from_plain
from rungwise.core.errors import UserError
from rungwise.training.config import TrainConfig
from rungwise.training.snapshot_config import Snapshot


def test_a_source_with_options_becomes_one_line():
    found = from_plain(TrainConfig, {"snapshot": {"relevance": {"kind": "tfidf", "tokenizer": "unicode"}}}, "run.yaml")
    assert found.snapshot.relevance == "{kind: tfidf, tokenizer: unicode}"


def test_patience_counts_epochs():
    with pytest.raises(UserError, match="snapshot.patience must not be negative, got -1"):
        Snapshot(patience=-1)
