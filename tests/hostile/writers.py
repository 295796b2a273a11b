"""Every writer: what stood before, the change, how the state is read, and what the next start does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.hostile import world
from tests.hostile.answers import digest, of_checkpoint, of_degrees, of_index, of_model, of_scenes

Step = Callable[[Path], Any]
"""Works in the place of one case; a closure over nothing that lasts."""

ABSENT = "absent"
"""The state where nothing stands, which readers refuse."""


@dataclass(frozen=True)
class Writer:
    """One way to change what is on the disk.

    Attributes:
        name: For the table.
        before: Makes what stands there before, in an empty folder.
        write: The change that is interrupted.
        state: What stands there now, as a plain value; a UserError where it refuses.
        target: The file or folder that is written, relative to the place; strangers stand beside it.
        again: What the next start does to finish the change; ``write`` itself if None.
        between: Whether a state that is neither old nor new is right too, as for caches, which may know a part.
        costly: It takes a second or so.
    """

    name: str
    before: Step
    write: Step
    state: Step
    target: str
    again: Step | None = None
    between: Callable[[Any], bool] = lambda state: False
    costly: bool = False

    def state_or_absent(self, place: Path) -> Any:
        """The state; :data:`ABSENT` where there is nothing at all to read."""
        if not (place / self.target).exists():
            return ABSENT
        return self.state(place)

    def finish(self, place: Path) -> None:
        """What the next start does."""
        (self.again or self.write)(place)


def writers(root: Path) -> list[Writer]:
    """All of them; ``root`` is the world whose collections and model they use."""
    return [*_files(root), *_caches(), *_folders(root), *_indexes(root), *_tables(), *_runs(root)]


_NUMBERED = re.compile(r"(?<=-)\d+(?=\.)|(?<=tfevents).*")
_OF_LANCE = re.compile(r"(?<=\.lance/)([\w.]+)/.*")
_LOCK = re.compile(r"(^|/)[^/]*lock$")


def names_in(place: Path) -> list[str]:
    """All names below a place; numbers of parts, names that LanceDB draws, and locks do not count."""
    found = {path.relative_to(place).as_posix() for path in place.rglob("*")}
    return sorted({_OF_LANCE.sub(r"\1", _NUMBERED.sub("N", name)) for name in found if not _LOCK.search(name)})


def _nothing(place: Path) -> None:
    """Nothing stands there before."""


def _text(path: str) -> Step:
    return lambda place: (place / path).read_bytes().hex()


def _files(root: Path) -> list[Writer]:
    from rungwise.calibration import Calibration
    from rungwise.core.disk.sealed_lines import hash_of_text
    from rungwise.data import read
    from rungwise.data.pictures import contact_sheet
    from rungwise.evaluation import Provenance, Result, compare, evaluate
    from rungwise.relevance.agreement import Agreed
    from rungwise.relevance.agreement._protocols import AgreementPart
    from rungwise.relevance.agreement._scoring import Estimate
    from rungwise.relevance.combine import read_fit, write_fit
    from rungwise.relevance.embedding import read_picture_vectors, write_picture_vectors
    from rungwise.relevance.human import Judgement, add_judgement, read_judgements
    from rungwise.relevance.lexical import DocumentFrequencies

    def result(seed: int) -> Result:
        scores = np.random.default_rng(seed).normal(size=(40, 40))
        return evaluate(
            similarity=scores,
            image_of_caption=np.arange(40),
            provenance=Provenance(data_name="colours", data_hash="00"),
        )

    def frequencies(words: str) -> Step:
        return lambda place: DocumentFrequencies.of([words, "a cat"], [0, 1]).save(place / "counts.npz")

    def sheet(seed: int) -> Step:
        return lambda place: contact_sheet(read(root / "csv"), place / "sheet.png", columns=2, rows=1, seed=seed)

    def comparison(draws: int) -> Step:
        return lambda place: compare([result(1), result(2)], draws=draws).to_json(place / "comparison.json")

    def calibration(spread: float) -> Step:
        standard = np.random.default_rng(0).normal(scale=spread, size=(20, 50))
        return lambda place: Calibration.unsupervised(standard).save(place / "calibration.json")

    def fit(seed: int) -> Step:
        return lambda place: write_fit(world.learned(seed), place / "fit.json")

    def agreed(value: float) -> Step:
        numbers = {"accuracy": Estimate(value, 0.0, 1.0)}
        found = Agreed("a.csv", "pairs", 9, 0, 1, 0.5, (AgreementPart("all", 9, numbers),), "as people count", numbers)
        return lambda place: found.to_json(place / "agreed.json", "tfidf")

    def seen(seed: int) -> Step:
        rows = np.random.default_rng(seed).random((3, 4))
        return lambda place: write_picture_vectors(place / "seen.npz", rows, "model", ("a", "b", "c"))

    def judge(*said: tuple[str, int]) -> Step:
        def write(place: Path) -> None:
            for who, grade in said:
                judgement = Judgement("a", "b", grade, who, "2024-05-01T12:00:00Z", hash_of_text("a dog"))
                add_judgement(place / "judgements.jsonl", judgement)

        return write

    def state_of_judgements(place: Path) -> Any:
        return read_judgements(place / "judgements.jsonl").ratings().tolist()

    def state_of_result(place: Path) -> Any:
        found = Result.from_json(place / "result.json")
        return [dict(found.numbers), found.per_query("i2t/R@1").tolist()]

    return [
        Writer("result, first", _nothing, lambda place: result(2).to_json(place / "result.json"),
               state_of_result, "result.json"),
        Writer("result, again", lambda place: result(1).to_json(place / "result.json"),
               lambda place: result(2).to_json(place / "result.json"), state_of_result, "result.json"),
        Writer("calibration", calibration(1.0), calibration(2.0),
               lambda place: str(Calibration.load(place / "calibration.json")), "calibration.json"),
        Writer("fitted combination", fit(1), fit(2), lambda place: str(read_fit(place / "fit.json")), "fit.json"),
        Writer("agreement", agreed(0.25), agreed(0.75), _text("agreed.json"), "agreed.json"),
        Writer("picture vectors", seen(1), seen(2),
               lambda place: read_picture_vectors(place / "seen.npz").vectors.tolist(), "seen.npz"),
        Writer("comparison", comparison(20), comparison(30), _text("comparison.json"), "comparison.json"),
        Writer("document frequencies", frequencies("a dog"), frequencies("a red dog"),
               lambda place: DocumentFrequencies.load(place / "counts.npz").content_hash(), "counts.npz"),
        Writer("judgements, first", _nothing, judge(("Ada", 4)), state_of_judgements, "judgements.jsonl",
               between=lambda found: found == []),
        Writer("judgements, one more", judge(("Ada", 4), ("Bo", 2)), judge(("Bo", 3)), state_of_judgements,
               "judgements.jsonl"),
        Writer("contact sheet", sheet(0), sheet(1), _text("sheet.png"), "sheet.png"),
    ]  # fmt: skip


def _caches() -> list[Writer]:
    from rungwise.encoders.row_cache import RowStore
    from rungwise.models import ModelFacts, read_facts
    from rungwise.models._lazy_model import write_facts
    from rungwise.relevance.storage.pair_cache import Keys, PairCache

    def fact(fingerprint: str) -> Step:
        return lambda place: write_facts(ModelFacts(fingerprint, 8, ""), place / "model.json")

    texts = [f"text {number}" for number in range(41)]
    keys = Keys(texts, "model", symmetric=True).of(np.zeros(40, np.int64), np.arange(1, 41))
    scores = np.linspace(0, 1, 40, dtype=np.float32)

    def add(start: int, stop: int) -> Step:
        return lambda place: PairCache(place / "pairs").add(keys[start:stop], scores[start:stop])

    def known_pairs(place: Path) -> Any:
        found, known = PairCache(place / "pairs").look_up(keys)
        return [bool((found == scores)[known].all()), int(known[:20].sum()), int(known.sum())]

    rows = np.arange(40 * 600, dtype=np.float32).reshape(40, 600) + 1
    row_keys = [bytes([number + 1]) * 32 for number in range(40)]

    def append(start: int, stop: int) -> Step:
        return lambda place: _store(place).append(row_keys[start:stop], rows[start:stop])

    def _store(place: Path) -> RowStore:
        return RowStore(place / "features", (600,), np.float32)

    def known_rows(place: Path) -> Any:
        store = _store(place)
        found = store.find(row_keys)
        known = found >= 0
        known[known] = store.sound(found[known])
        whole = bool((store.rows()[found[known]] == rows[known]).all())
        return [whole, int(known[:20].sum()), int(known.sum())]

    def append_missing(place: Path) -> None:
        store = _store(place)
        found = store.find(row_keys)
        lacking = [at for at in range(40) if found[at] < 0 or not store.sound(found[at : at + 1])[0]]
        if lacking:
            store.append([row_keys[at] for at in lacking], rows[lacking])

    def right(state: Any) -> bool:
        """Nothing known is wrong, and the twenty that were there are still known."""
        return state[0] is True and state[1] == 20

    return [
        Writer(
            "facts of a model",
            fact("9a3f"),
            fact("3f9a"),
            lambda place: str(read_facts(place / "model.json")),
            "model.json",
        ),
        Writer("pair cache", add(0, 20), add(20, 40), known_pairs, "pairs", between=right),
        Writer("feature cache", append(0, 20), append(20, 40), known_rows, "features", append_missing, right),
    ]


def _folders(root: Path) -> list[Writer]:
    from rungwise.core import UserError
    from rungwise.core.disk import check_seal
    from rungwise.core.disk.folders import entries
    from rungwise.core.disk.staging import sweep
    from rungwise.data import read
    from rungwise.relevance import CIDErD, CrossEncoder, PairInference
    from rungwise.relevance.precomputed import kept_rows, remove, write_in_shards
    from rungwise.relevance.storage import KeptFolder, saved
    from rungwise.scenes import SceneConfig, generate

    data = read(root / "csv", captions_only=True)

    def degrees(k: int | None, orders: int) -> Step:
        captions = [text * orders for text in data.captions]
        return lambda place: CIDErD(captions, data.image_of_caption).save(place / "degrees", k=k)

    def in_shards(orders: int) -> Step:
        captions = [text * orders for text in data.captions]

        def write(place: Path) -> None:
            work = place / "degrees.shards"
            with saved.replacing(place / "degrees") as draft:
                write_in_shards(CIDErD(captions, data.image_of_caption), draft, work, k=2, shards=2)
            remove(work)

        return write

    def state_of_degrees(place: Path) -> Any:
        return of_degrees(place / "degrees")["main"]

    def filled(step: Step) -> Step:
        """From within the folder, which is then filled, as a mount point is."""

        def write(place: Path) -> None:
            (place / "degrees").mkdir(exist_ok=True)
            os.chdir(place / "degrees")
            try:
                step(place)
            finally:
                os.chdir("/")

        return write

    def state_of_filled(place: Path) -> Any:
        """While entries are moved there is nothing to read, and the old state comes back to whoever writes next."""
        try:
            return state_of_degrees(place)
        except UserError:
            sweep(place / "degrees")
        return state_of_degrees(place) if entries(place / "degrees") else ABSENT

    def keep(orders: int) -> Step:
        captions = [text * orders for text in data.captions]
        kept = kept_rows(CIDErD(captions, data.image_of_caption))
        return lambda place: KeptFolder(place / "relevance").keep("cider-d", world.KEPT, kept)

    def state_of_kept(place: Path) -> Any:
        kept = KeptFolder(place / "relevance").find("cider-d", world.KEPT)
        return ABSENT if kept is None else kept.facts["content_hash"]

    def save_model(seed: int) -> Step:
        def save(place: Path) -> None:
            import torch

            model = world.model_in(root / "run/model")
            with torch.no_grad():
                model.image_projection.bias += seed  # type: ignore[attr-defined]
            model.save_pretrained(place / "model")  # type: ignore[attr-defined]

        return save

    def save_pair_model(seed: int) -> Step:
        def save(place: Path) -> None:
            import torch

            from rungwise.core.disk.folders import replacing_folder
            from rungwise.language import load_pair_model
            from rungwise.training.pair_models import CROSS_ENCODER
            from rungwise.training.pair_models._model_folders import save_cross_encoder

            torch.manual_seed(seed)
            model = load_pair_model(root / "pair_encoder", outputs=1)
            with replacing_folder(place / "grader", CROSS_ENCODER, "a model of pairs") as draft:
                save_cross_encoder(model, draft, {"seed": seed})

        return save

    def state_of_pair_model(place: Path) -> Any:
        check_seal(place / "grader")
        found = CrossEncoder(
            ["a dog", "a cat"], [0, 1], place / "grader", scale="sigmoid", inference=PairInference(device="cpu")
        )
        return [found.fingerprint, (place / "grader" / "README.md").read_text()]

    scenes = SceneConfig(pictures=4, side=32)
    return [
        Writer("model of pairs, first", _nothing, save_pair_model(1), state_of_pair_model, "grader", costly=True),
        Writer("model of pairs, again", save_pair_model(1), save_pair_model(2), state_of_pair_model, "grader",
               costly=True),
        Writer("degrees, first", _nothing, degrees(None, 1), state_of_degrees, "degrees"),
        Writer("degrees, again", degrees(None, 1), degrees(None, 2), state_of_degrees, "degrees"),
        Writer("degrees, best in place of all", degrees(None, 1), degrees(2, 1), state_of_degrees, "degrees"),
        Writer("degrees, filled first", lambda place: (place / "degrees").mkdir(), filled(degrees(None, 1)),
               state_of_filled, "degrees"),
        Writer("degrees, filled again", filled(degrees(2, 1)), filled(degrees(None, 2)), state_of_filled, "degrees"),
        Writer("degrees in shards, first", _nothing, in_shards(1), state_of_degrees, "degrees"),
        Writer("degrees in shards, again", degrees(2, 1), in_shards(2), state_of_degrees, "degrees"),
        Writer("kept relevance, first", _nothing, keep(1), state_of_kept, "relevance"),
        Writer("kept relevance, again", keep(1), keep(2), state_of_kept, "relevance"),
        Writer("model, first", _nothing, save_model(1), lambda place: of_model(place / "model"), "model"),
        Writer("model, again", save_model(1), save_model(2), lambda place: of_model(place / "model"), "model"),
        Writer("scenes", _nothing, lambda place: generate(place / "scenes", scenes),
               lambda place: of_scenes(place / "scenes"), "scenes"),
    ]  # fmt: skip


def _indexes(root: Path) -> list[Writer]:
    from rungwise.data import read
    from rungwise.index import Index
    from tests.colour_model import ColourModel

    data = read(root / "csv")
    half, other = data.select(range(4)), data.select(range(4, 8))

    def build(some: Any, overwrite: bool = False) -> Step:
        return lambda place: Index.build(some, ColourModel(), place / "index", overwrite=overwrite)

    def opened(place: Path) -> Index:
        return Index.open(place / "index")

    def state(place: Path) -> Any:
        return of_index(place / "index")["main"]

    def rows(place: Path) -> Any:
        """Rows without their order: an upsert that is done again puts them last."""
        index = opened(place)
        stored = index.picture_store.get([one.id for one in index.items()])
        return sorted([one.id, list(one.captions), digest(stored[one.id].vector)] for one in index.items())

    def thinned(place: Path) -> None:
        build(data)(place)
        opened(place).remove(data.image_ids[:1])

    def updated(place: Path) -> None:
        """Some come, some go, as an update finds them."""
        if not (place / "index").exists():
            Index.create(place / "index", ColourModel(), name=data.name, store="exact")
        opened(place).update(data.select(range(2, 8)), ColourModel())

    def in_lance(place: Path) -> None:
        """Two tables of LanceDB, as the command makes them."""
        Index.build(half, ColourModel(), place / "index", store="lance")

    def on_the_way(found: Any) -> bool:
        """An update is made of whole batches: every row is one of the old or of the new ones."""
        ids = [one for one, *_ in found]
        return len(set(ids)) == len(ids) and set(ids) <= set(data.image_ids) and set(ids) >= set(half.image_ids[2:])

    def graded(said: str) -> Step:
        def grade(place: Path) -> None:
            if not (place / "index").exists():
                build(half)(place)
            opened(place).grade("a red picture", data.image_ids[0], said, "Ada")  # type: ignore[arg-type]

        return grade

    def grades(place: Path) -> Any:
        return [[one.id, one.grade, one.who] for one in opened(place).grades()]

    return [
        Writer("index, a grade", graded("close"), graded("right"), grades, "index"),
        Writer("index, first", _nothing, build(half), state, "index", build(half, True)),
        Writer("index, first update", _nothing, updated, rows, "index", between=lambda found: found == []),
        Writer("index, brought up to date", build(half), updated, rows, "index", between=on_the_way),
        Writer("index in LanceDB, brought up to date", in_lance, updated, rows, "index", between=on_the_way,
               costly=True),
        Writer("index, again", build(half), build(other, True), state, "index"),
        Writer("index, more pictures", build(half), lambda p: opened(p).upsert(other, ColourModel()), rows,
               "index"),
        Writer("index, fewer pictures", build(data), lambda p: opened(p).remove(list(other.image_ids)),
               rows, "index"),
        Writer("index, compacted", thinned, lambda p: opened(p).compact(), rows, "index"),
    ]  # fmt: skip


def _tables() -> list[Writer]:
    from rungwise.index.stores.lance import store as lance
    from rungwise.index.stores.lance.store import LanceStore
    from rungwise.similarity import Cosine

    names, vectors = [f"row {number}" for number in range(6)], np.eye(6, dtype=np.float32)

    def made(place: Path) -> LanceStore:
        return LanceStore.create(place, "rows", 6, Cosine())

    def opened(place: Path) -> LanceStore:
        return LanceStore.open(place, "rows")

    def filled(place: Path) -> None:
        made(place).upsert(names[:4], vectors[:4], [{"n": number} for number in range(4)])

    def changed(place: Path) -> None:
        opened(place).upsert(names[2:], -vectors[2:], [{"tag": "new"}] * 4)

    def thinned(place: Path) -> None:
        filled(place)
        opened(place).delete(names[:1])

    def listed(place: Path) -> None:
        with mock.patch.multiple(lance, LISTS_PAY_FROM_BYTES=1, MAPPED_FROM_ROWS=1):
            opened(place).compact()

    def thinned_beside_lists(place: Path) -> None:
        filled(place)
        listed(place)
        opened(place).delete(names[:1])

    def found(place: Path) -> Any:
        return state(place), opened(place).search(vectors[:2], 6).ids

    def without_two(place: Path) -> None:
        opened(place).delete(names[:2])

    def state(place: Path) -> Any:
        """Rows without their order: an upsert that is done again puts them last."""
        store = opened(place)
        rows = store.get([one for one, _ in store.records()])
        return sorted([one, digest(row.vector), dict(row.record)] for one, row in rows.items())

    return [
        Writer("LanceDB store, rows", filled, changed, state, "rows.lance", costly=True),
        Writer("LanceDB store, fewer rows", filled, without_two, state,
               "rows.lance", costly=True),
        Writer("LanceDB store, compacted", thinned, lambda place: opened(place).compact(), state, "rows.lance",
               costly=True),
        Writer("LanceDB store, inverted lists", thinned, listed, found, "rows.lance", costly=True),
        Writer("LanceDB store, inverted lists made anew", thinned_beside_lists, listed, found, "rows.lance",
               costly=True),
    ]  # fmt: skip


def _runs(root: Path) -> list[Writer]:
    from rungwise.core import dump_yaml
    from rungwise.data import read
    from rungwise.training import run
    from rungwise.training.config import TrainConfig
    from rungwise.training.config._stage import Stage
    from rungwise.training.engine import RunState, Trained, load_checkpoint, save_checkpoint
    from rungwise.training.steps import Adam

    def checkpoint(step: int) -> Step:
        def save(place: Path) -> None:
            import torch

            torch.manual_seed(step)
            model = torch.nn.Linear(40, 40)
            trained = Trained(model, torch.nn.Identity(), torch.optim.Adam(model.parameters()), Adam())
            save_checkpoint(place / "checkpoint.safetensors", trained, RunState(total_steps=step))

        return save

    data = changed(read(root / "features"), splits=world.SPLITS)
    plain = changed(world.run_config(), batch_size=2, epochs=(2,), checkpoint_steps=1)
    heads = {"tune": "weights", "model": {"image_head": {"kind": "mlp", "hidden": [4]}}}
    two = changed(plain, epochs=(1,), stages=(Stage("base"), Stage("heads", heads)))

    def training(name: str, config: TrainConfig) -> Writer:
        def write(place: Path) -> None:
            out = place / "run"
            found = any((out / one).exists() for one in ("checkpoint.safetensors", "stages"))
            run(config, data, out, cache=place / "cache", device="cpu", resume=found)

        def state(place: Path) -> Any:
            """Of the files that a run has written so far, each must be whole."""
            known: list[Any] = []
            for out in (place / "run", *sorted((place / "run").glob("stages/*"))):
                if (out / "checkpoint.safetensors").exists():
                    stands, tensors = load_checkpoint(out / "checkpoint.safetensors")  # its history holds times, too
                    sums = digest(*(tensors[name].numpy() for name in sorted(tensors)))
                    known.append([out.name, stands.epoch, stands.step, sums])
                if (out / "model").exists():
                    known.append([out.name, world.model_in(out / "model").fingerprint])
            if (place / "run" / "config.yaml").exists():
                known.append((place / "run" / "config.yaml").read_text() == dump_yaml(config))
            return known

        return Writer(name, _nothing, write, state, "run", between=lambda found: isinstance(found, list), costly=True)

    return [
        Writer("checkpoint", checkpoint(1), checkpoint(2), of_checkpoint, "checkpoint.safetensors"),
        training("training", plain),
        training("training in stages", two),
    ]
