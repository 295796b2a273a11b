"""The library itself, with tiny models.

Also tests rungwise.integrations.sentence_transformers._sentence_transformers_rows and
rungwise.integrations.sentence_transformers._sentence_transformers_evaluator.
"""

import csv
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from PIL import Image
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments

import rungwise
from rungwise import losses
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import Result, evaluate
from rungwise.integrations.sentence_transformers import (
    GradedListLoss,
    GradedLoss,
    GradedRetrievalEvaluator,
    collection_of,
    pairs_of,
    with_positions,
)
from rungwise.relevance.lexical import TfIdf
from tests.integrations.pairs_of_texts import BATCH, LOSSES, WORDS, model, pairs, trained, with_degrees
from tests.published import Published
from tests.rooms import ROOT


def features(own: SentenceTransformer, rows: Dataset, *columns: str) -> list[dict[str, torch.Tensor]]:
    return [own.preprocess(list(rows[column])) for column in columns]


def unit(vectors: torch.Tensor) -> torch.Tensor:
    return vectors / vectors.norm(dim=1, keepdim=True)


def by_hand(own: SentenceTransformer, name: str, rows: Dataset, data: Any, degrees: np.ndarray) -> list[torch.Tensor]:
    """Value and gradients of the loss of a block whose every entry is filled by a loop."""
    loss = LOSSES[name]().double()
    first, second = (unit(own(one)["sentence_embedding"]) for one in features(own, rows, "anchor", "positive"))
    block, graded, same = (torch.zeros(len(rows), len(rows), dtype=torch.float64) for _ in range(3))
    cells = []
    for i in range(len(rows)):
        for c in range(len(rows)):
            cells.append((first[i] * second[c]).sum())
            graded[i, c] = float(degrees[rows["label"][i][0], rows["label"][c][1]])
            same[i, c] = rows["anchor"][i] == rows["anchor"][c]
    block = torch.stack(cells).reshape(len(rows), len(rows))
    value = loss(block, graded, same.bool(), image_similarity=first @ first.T, text_similarity=second @ second.T)
    own.zero_grad()
    value.backward()
    return [value.detach(), *(one.grad.clone() for one in (*own.parameters(), *loss.parameters()))]


@pytest.mark.parametrize("cached", [None, 3], ids=["at once", "cached"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_a_batch_are_those_of_a_plain_block(name: str, cached: int | None) -> None:
    rows, data, degrees = with_degrees(pairs())
    rows, own = rows.select(range(BATCH)), model()
    expected = by_hand(own, name, rows, data, degrees)
    own.zero_grad()
    loss = GradedLoss(own, LOSSES[name]().double(), degrees, data=data, mini_batch_size=cached)
    value = loss(features(own, rows, "anchor", "positive"), torch.tensor(rows["label"][:]))
    (value / 4).backward()  # as the trainer does with four steps of accumulation
    got = [value.detach(), *(4 * one.grad for one in (*own.parameters(), *loss.negatives.loss.parameters()))]
    assert expected[0] != 0
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_hard_negatives_are_further_captions() -> None:
    rows, data, degrees = with_degrees(pairs(12))
    owners = data.image_of_caption
    other = [next(c for c in range(12) if owners[c] != owners[row]) for row in range(12)]
    plain = pairs(12).add_column("negative", [data.captions[c] for c in other])
    rows = with_positions(plain, data).select(range(5))
    own, loss = model(), losses.SumOfHinges()
    labels = torch.tensor(rows["label"][:])
    got = GradedLoss(own, loss, degrees, data=data)(features(own, rows, "anchor", "positive", "negative"), labels)
    first, second, third = (
        unit(own(one)["sentence_embedding"]).detach() for one in features(own, rows, "anchor", "positive", "negative")
    )
    total = 0.0
    candidates = [*zip(second, labels[:, 1], strict=True), *zip(third, labels[:, 2], strict=True)]
    right = [[owners[int(c)] == int(i) for _, c in candidates] for i in labels[:, 0]]
    for i, anchor in enumerate(first):
        for c, (own_text, _) in enumerate(candidates):
            for n, (text, _) in enumerate(candidates):
                if right[i][c] and not right[i][n]:
                    total += max(0.0, 0.2 - float(anchor @ own_text) + float(anchor @ text))
            for n, rival in enumerate(first):
                if right[i][c] and not right[n][c]:
                    total += max(0.0, 0.2 - float(anchor @ own_text) + float(rival @ own_text))
    assert float(got.detach()) == pytest.approx(total, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mini_batch_size": 3}], ids=["at once", "cached"])
@pytest.mark.parametrize("name", ["Ladder", "SoftContrastive"])
def test_fifty_steps_of_the_trainer_are_those_of_a_plain_loop(name: str, options: Any, tmp_path: Path) -> None:
    got = trained(tmp_path, name, **options)
    rows, _, degrees = with_degrees(pairs())
    own, loss = model(torch.float32), LOSSES[name]()
    optimizer = torch.optim.AdamW([*own.parameters(), *loss.parameters()], lr=1e-2, weight_decay=0.0)
    for step in range(50):
        batch = rows.select(range(step * BATCH % 48, step * BATCH % 48 + BATCH))
        first, second = (unit(own(one)["sentence_embedding"]) for one in features(own, batch, "anchor", "positive"))
        i, c = torch.tensor(batch["label"][:]).T
        same = torch.tensor([[one == other for other in batch["anchor"]] for one in batch["anchor"]])
        optimizer.zero_grad()
        loss(first @ second.T, torch.from_numpy(degrees)[i][:, c], same).backward()
        optimizer.step()
    expected = [*own.parameters(), *loss.parameters()]
    largest = max(float((one - other).abs().max()) for one, other in zip(got, expected, strict=True))
    moved = float((expected[0] - next(model(torch.float32).parameters())).abs().max())
    print(f"{name}: after 50 steps parameters differ by at most {largest:.1e}; they moved by up to {moved:.2f}")
    assert moved > 0.1
    assert largest < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mini_batch_size": 2}], ids=["at once", "cached"])
def test_two_processes_train_as_one_with_the_whole_batch(options: Any, tmp_path: Path) -> None:
    from tests.ports import free_port

    program = (
        "import json, sys, torch\nfrom pathlib import Path\nfrom tests.integrations.pairs_of_texts import trained\n"
        "from safetensors.torch import save_file\nfolder, options = Path(sys.argv[1]), json.loads(sys.argv[2])\n"
        "got = trained(folder, 'SoftContrastive', batch=4, gather_across_devices=True, **options)\n"
        "rank = torch.distributed.get_rank()\n"
        "save_file({str(n): one for n, one in enumerate(got)}, folder / f'{rank}.safetensors')\n"
        "torch.distributed.barrier()\ntorch.distributed.destroy_process_group()\n"
    )
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), json.dumps(options)],
            cwd=ROOT,
            env={**os.environ, **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]
    try:
        assert [process.wait() for process in running] == [0, 0]
    finally:
        for process in running:
            process.kill()
    from safetensors.torch import load_file

    expected = trained(tmp_path / "one", "SoftContrastive", batch=8)
    for rank in range(2):
        got = load_file(tmp_path / f"{rank}.safetensors")
        largest = max(float((got[str(n)] - one).abs().max()) for n, one in enumerate(expected))
        print(f"process {rank}: after 50 steps parameters differ from one process's by at most {largest:.1e}")
        assert largest < 1e-4


def test_what_cannot_be_trained_is_refused_in_one_line() -> None:
    rows, data, degrees = with_degrees(pairs(12))
    own, loss = model(), losses.Ladder()
    given = features(own, rows.select(range(3)), "anchor", "positive")
    with pytest.raises(UserError, match="reads degrees of relevance, and none are given"):
        GradedLoss(own, loss)
    with pytest.raises(UserError, match="does not say whose each caption is"):
        GradedLoss(own, loss, degrees)
    graded = GradedLoss(own, loss, degrees, data=data)
    with pytest.raises(UserError, match="no column of positions; make it with with_positions"):
        graded(given)
    with pytest.raises(UserError, match=r"its labels \(3,\) are no positions of 2 columns"):
        graded(given, torch.tensor([0.1, 0.2, 0.3]))
    with pytest.raises(UserError, match="1 column for the model"):
        graded(given[:1], torch.zeros(3, 1, dtype=torch.int64))
    with pytest.raises(UserError, match="set its reduction"):
        GradedLoss(own, losses.Ladder(reduction="none"), degrees, data=data)(
            given, torch.zeros(3, 2, dtype=torch.int64)
        )
    with pytest.raises(UserError, match="reads scores and degrees alone"):
        GradedListLoss(None, losses.MultiModalNCE(reduction="none"))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="with a value for each query; give another, such as"):
        GradedListLoss(None, losses.SmoothNDCG())  # type: ignore[arg-type]
    with pytest.raises(UserError, match="reduction= 'none' is neither"):
        GradedListLoss(None, losses.SmoothNDCG(reduction="none"), reduction="none")  # type: ignore[arg-type]


def test_positions_are_found_by_text_and_by_id() -> None:
    data = ImageCaptions(("7", "8"), ("a dog", "a cat", "a dog"), np.array([0, 0, 1]))
    rows = Dataset.from_dict({"picture": ["x", "y"], "caption": ["a cat", "a dog"], "id": ["7", "8"]})
    assert with_positions(rows, data, image_id="id")["label"][:] == [[0, 1], [1, 2]]
    assert with_positions(rows, data, image_id="id").column_names == ["picture", "caption", "label"]
    plain = rows.remove_columns(["id"])
    with pytest.raises(UserError, match=r"row 1: 'a dog' stands at 2 pictures of collection; name the column"):
        with_positions(plain, data)
    with pytest.raises(UserError, match="column 'label' is there already"):
        with_positions(plain.add_column("label", [0.5, 1.0]), data)
    with pytest.raises(UserError, match="has no column 'key'"):
        with_positions(plain, data, image_id="key")
    strange = Dataset.from_dict({"picture": ["x"], "caption": ["a horse"]})
    with pytest.raises(UserError, match="row 0, column 'caption': 'a horse' is no caption of collection"):
        with_positions(strange, data)
    with pytest.raises(UserError, match="row 0, column 'caption': int is no text"):
        with_positions(Dataset.from_dict({"picture": ["x"], "caption": [3]}), data)
    with pytest.raises(UserError, match="is no caption of collection at another picture"):
        with_positions(Dataset.from_dict({"p": ["x"], "c": ["a cat"], "n": ["a cat"]}), data)


def photos(colours: list[tuple[int, int, int]]) -> list[Image.Image]:
    return [Image.new("RGB", (40, 40), one) for one in colours]


def shown() -> ImageCaptions:
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)]
    said = [["a dog", "a small dog"], ["a cat"], ["a red boat", "a boat"], ["grass"]]
    return rungwise.read(photos(colours), captions=said)


@pytest.mark.slow
def test_pictures_and_captions_train_and_the_best_model_is_chosen(published: Published, tmp_path: Path) -> None:
    data = shown()
    own = SentenceTransformer(str(published.sentence), local_files_only=True, device="cpu")
    source = TfIdf(data.captions, data.image_of_caption)
    evaluator = GradedRetrievalEvaluator(data, source, name="dev", measures=["R@1", "nDCG@3", "rsum"])
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path / "run"), num_train_epochs=8, per_device_train_batch_size=6, learning_rate=5e-3, report_to="none",
        use_cpu=True, eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True,
        metric_for_best_model="dev_rsum", disable_tqdm=True,
    )  # fmt: skip
    loss = GradedLoss(own, losses.Ladder(thresholds=(0.5,), reduction="mean"), source)
    before = evaluator(own)
    trainer = SentenceTransformerTrainer(own, arguments, train_dataset=pairs_of(data), loss=loss, evaluator=evaluator)
    trainer.train()
    history = [one["eval_dev_rsum"] for one in trainer.state.log_history if "eval_dev_rsum" in one]
    assert len(history) == 8
    assert max(history) > before["dev_rsum"]
    assert trainer.state.best_metric == max(history) == evaluator(own)["dev_rsum"]
    with (tmp_path / "run" / "eval" / "graded_retrieval_dev_results.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(one["rsum"]) for one in lines] == history
    assert float(lines[0]["rsum/low"]) <= history[0] <= float(lines[0]["rsum/high"])
    kept = Result.from_json(tmp_path / "run" / "eval" / "graded_retrieval_dev_epoch8.0_steps8.json")
    assert kept["rsum"] == history[-1]


def test_numbers_are_those_of_evaluate(published: Published, tmp_path: Path) -> None:
    data = shown()
    own = SentenceTransformer(str(published.sentence), local_files_only=True, device="cpu")
    source = TfIdf(data.captions, data.image_of_caption)
    measures = ["R@1", "MedR", "nDCG@3", "NCS@3", "CS@4", "rsum"]
    evaluator = GradedRetrievalEvaluator(data, source, measures=measures, draws=50)
    got = evaluator(own, str(tmp_path), 1, 20)
    images = own.encode(photos([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)]), normalize_embeddings=True)
    expected = evaluate(
        image_embeddings=images,
        text_embeddings=own.encode(list(data.captions), normalize_embeddings=True),
        image_of_caption=data.image_of_caption,
        relevance=source,
        measures=measures,
    )
    assert set(got) < set(expected)  # a sum's terms are in the result, and not among the numbers that were asked for
    assert got == pytest.approx({name: expected[name] for name in got}, abs=1e-4)
    assert evaluator.primary_metric == "rsum"
    other = GradedRetrievalEvaluator(data, source, measures=["R@1"], draws=0)
    for _ in range(2):
        other(own, str(tmp_path))
    files = sorted(one.name for one in tmp_path.glob("*.csv"))
    assert files == ["graded_retrieval_results.csv", "graded_retrieval_results_2.csv"]
    assert len((tmp_path / files[1]).read_text().splitlines()) == 3


def test_a_rank_is_better_where_it_is_smaller() -> None:
    rows = collection_of(pairs(12))
    assert not GradedRetrievalEvaluator(rows, measures=["MedR"]).greater_is_better
    assert GradedRetrievalEvaluator(rows, measures=["MedR", "R@1"], primary="t2i/R@1").greater_is_better
    with pytest.raises(UserError, match=r"primary= 'R@1' is not measured; name one of i2t/R@1, t2i/R@1"):
        GradedRetrievalEvaluator(rows, measures=["R@1"], primary="R@1")
    with pytest.raises(UserError, match="has no pictures to encode"):
        GradedRetrievalEvaluator(ImageCaptions(("a",), ("b",), np.array([0])))


def test_graded_judgements_of_documents() -> None:
    queries = {"q1": "red disc", "q2": "blue box", "q3": "star"}
    corpus = {f"d{n}": text for n, text in enumerate(pairs(12)["positive"])}
    judged = {"q1": {"d1": 3, "d4": 0.5, "d7": 1}, "q2": {"d4": 2.5}, "q3": {"d0": 1}}
    own = model(torch.float32)
    evaluator = GradedRetrievalEvaluator.of_judgements(queries, corpus, judged, measures=["R@1", "MRR", "nDCG@5"])
    got = evaluator(own)
    asked, held = (own.encode(list(texts.values())) for texts in (queries, corpus))
    scores = [[float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)) for b in held] for a in asked]
    hits, reciprocal, gains = [], [], []
    for query, row in zip(queries, scores, strict=True):
        order = sorted(range(len(row)), key=lambda at: -row[at])
        assert all(row[a] - row[b] > 1e-6 for a, b in pairwise(order[:6]))
        own_degrees = [judged[query].get(f"d{at}", 0.0) for at in order]
        first = next(place for place, degree in enumerate(own_degrees) if degree > 0)
        hits.append(100.0 * (first == 0))
        reciprocal.append(100.0 / (first + 1))
        ideal = sorted(own_degrees, reverse=True)
        dcg, best = (sum(one[k] / np.log2(k + 2) for k in range(5)) for one in (own_degrees, ideal))
        gains.append(100.0 * dcg / best)
    expected = {"i2t/R@1": np.mean(hits), "i2t/MRR": np.mean(reciprocal), "i2t/nDCG@5": np.mean(gains)}
    assert got == pytest.approx(expected, abs=1e-4)
    with pytest.raises(UserError, match="'d99' is not among queries and corpus"):
        GradedRetrievalEvaluator.of_judgements(queries, corpus, {"q1": {"d99": 1}})


class Scorer(torch.nn.Module):
    """A cross-encoder's surface: a score for each pair, from a table of trained numbers."""

    num_labels, device = 1, torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.tensor([0.3, -0.2, 0.9, 0.1, 0.4]))

    def preprocess(self, given: list[tuple[str, str]], **_: Any) -> dict[str, torch.Tensor]:
        return {"at": torch.tensor([int(document) for _, document in given])}

    def forward(self, given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"scores": self.table[given["at"]]}


@pytest.mark.parametrize("size", [None, 2])
def test_lists_lose_as_a_loop_over_them_says(size: int | None) -> None:
    inputs = (["q", "r"], [["0", "1", "2"], ["3", "4"]])
    labels = [torch.tensor([1.0, 0.4, 0.0]), torch.tensor([0.2, 0.9])]
    scorer = Scorer()
    value = GradedListLoss(scorer, losses.SumOfHinges(margin=0.5, reduction="none"), mini_batch_size=size)(
        inputs, labels
    )  # type: ignore[arg-type]
    expected = (max(0, 0.5 - 0.3 - 0.2) + max(0, 0.5 - 0.3 + 0.9) + max(0, 0.5 - 0.4 + 0.1)) / 2
    assert float(value) == pytest.approx(expected)
    value.backward()
    assert scorer.table.grad.tolist() == pytest.approx([-0.5, 0.0, 0.5, 0.5, -0.5])  # the hinge rests at its kink
    with pytest.raises(UserError, match="row 1 of a batch: 2 documents, 1 degrees"):
        GradedListLoss(scorer, losses.Ladder(reduction="none"))(inputs, [labels[0], labels[1][:1]])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a query, a list of documents, and a list of their degrees"):
        GradedListLoss(scorer, losses.Ladder(reduction="none"))(inputs, torch.zeros(2))  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_cross_encoder_learns_the_order_of_lists(tmp_path: Path) -> None:
    import transformers
    from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, num_labels=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path / "model")
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "model")
    own = CrossEncoder(str(tmp_path / "model"), device="cpu", local_files_only=True)
    queries, documents = ["red disc", "blue box", "green star"], ["red", "disc", "blue", "box", "green", "star"]
    degrees = [[float(word in query) * (1.0 if word in WORDS[:3] else 0.5) for word in documents] for query in queries]
    rows = Dataset.from_dict({"query": queries, "documents": [documents] * 3, "labels": degrees})
    loss = GradedListLoss(own, losses.SmoothNDCG(reduction="none"))
    arguments = CrossEncoderTrainingArguments(
        str(tmp_path / "run"), num_train_epochs=40, per_device_train_batch_size=3, learning_rate=5e-3,
        report_to="none", use_cpu=True, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    given = [queries, [documents] * 3], [torch.tensor(one) for one in degrees]
    before = float(loss(*given).detach())
    CrossEncoderTrainer(own, arguments, train_dataset=rows, loss=loss).train()
    after = float(loss(*given).detach())
    print(f"loss of lists: {before:.3f} before, {after:.3f} after 40 epochs")
    assert after < 0.8 * before
