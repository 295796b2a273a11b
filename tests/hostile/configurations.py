"""Every value of every configuration file in turn replaced by something hostile; run by test_configuration.py.

``python -m tests.hostile.configurations FOLDER SHARE [DOCUMENT ...]`` prints as JSON how many cases there were, how
many were refused and accepted, what raised something else than a line for a person, and what happened that must not.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import torch
import yaml
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.torch import load_file, save_file

from rungwise.core import UserError, from_plain, load_yaml, to_plain
from rungwise.data import ImageCaptions, read
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import JointEmbedding, VSEConfig, family, load
from rungwise.models.io._families import REGIONS
from rungwise.models.regions._config import RegionConfig
from rungwise.relevance.config import CONFIGS, degrees_of, names_source, source_config
from rungwise.relevance.embedding import PairInference
from rungwise.relevance.embedding.cross_encoder import CrossEncoder
from rungwise.similarity import Order
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.config._losses import LOSSES
from rungwise.training.engine import RunState, load_checkpoint
from rungwise.training.engine._checkpoint import header_of
from tests.hostile import configured
from tests.hostile.watched import Watch
from tests.scored import tiny_encoder

CAPTIONS = ("a red dog", "a blue cat", "a dog")
DATA = ImageCaptions(("one", "two"), CAPTIONS, np.array([0, 1, 1]), labels=(("a",), ("b",)))
TAGS = (
    "!!python/object/apply:os.system ['touch ran']",
    "!!python/name:os.system",
    "!!python/object/new:evil.Layer []",
    "!!python/module:evil",
)
KEYS = (
    "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir", "file", "url", "hf_hub_id", "auto_map",
    "trust_remote_code", "_target_", "__class__", "__reduce__", "py/object",
)  # fmt: skip
SMALL = "test_resnet.r160_in1k"

Case = tuple[str, Callable[[], object]]


class Evil:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("ran"),)


def plant(home: Path) -> None:
    """Files that do harm where somebody trusts them."""
    torch.save({"state_dict": Evil()}, home / "evil.pth")
    (home / "evil.pkl").write_bytes(pickle.dumps(Evil()))
    np.save(home / "evil.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    (home / "evil.py").write_text("import pathlib\npathlib.Path('ran').touch()\nclass Layer: pass\n")
    folder = home / "evil"
    folder.mkdir()
    shutil.copy(home / "evil.pth", folder / "pytorch_model.bin")
    (folder / "config.json").write_text(
        json.dumps({"architecture": "resnet18", "auto_map": {"AutoModel": "evil.Layer"}})
    )
    (home / "mine.txt").write_text("do not touch")


def payloads(home: Path) -> list[Any]:
    """What takes the place of a value."""
    pth = str(home / "evil.pth")
    return [
        pth, str(home / "evil.npy"), str(home / "evil.pkl"), str(home / "mine.txt"), str(home / "evil"),
        f"file://{pth}", f"local-dir:{home / 'evil'}", "hf-hub:evil/model", "evil/model", "http://127.0.0.1:9/evil.pth",
        "os.system", "evil.Layer", "__import__('evil')", "$(touch ran)", "{{''.__class__.evil}}", "evil\x1b]0;x\x07",
        {"checkpoint_path": pth}, {"file": pth, "custom_load": True}, {"kind": "evil.Layer"},
        {"__reduce__": ["os.system", ["touch ran"]]}, {"_target_": "os.system"},
        {"auto_map": {"AutoModel": "evil.Layer"}}, [pth], ["os.system", ["touch ran"]], [[pth]],
        True, None, -1, 10**18, 1e308,
    ]  # fmt: skip


def places(values: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value of nested mappings and lists stands, themselves included."""
    if above:
        yield above
    inner = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, one in list(inner)[:12]:  # of a vocabulary some words are enough
        yield from places(one, (*above, key))


def replaced(values: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a place."""
    changed = copy.deepcopy(values)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


class Walk:
    """Makes the cases of one document after the other.

    Args:
        home: Where everything is written.
        share: Of all payloads, how many each value meets: all for 0.
    """

    def __init__(self, home: Path, share: int) -> None:
        self.home, self.share = home, share
        self._payloads, self._next = payloads(home), 0

    def variants(self, name: str, values: Any) -> Iterator[tuple[str, Any]]:
        """The document with each value in turn replaced, and with keys that nobody asked for."""
        for place in places(values):
            for payload in self._some(self._payloads):
                yield f"{name}: {'.'.join(map(str, place))} = {payload!r}"[:200], replaced(values, place, payload)
        for place in ((), *places(values)):
            if not isinstance(_at(values, place), dict):
                continue
            for key in self._some(KEYS):
                value = str(self.home / "evil.pth")
                yield f"{name}: {'.'.join(map(str, place))} + {key}", replaced(values, (*place, key), value)

    def _some(self, given: Any) -> list[Any]:
        if not self.share:
            return list(given)
        first, self._next = self._next, self._next + self.share
        return [given[number % len(given)] for number in range(first, first + self.share)]

    def training(self) -> Iterator[Case]:
        """A YAML file of a run, with every loss, sampler, step and image side."""
        file = self.home / "run.yaml"
        plain = to_plain(TrainConfig(model=VSEConfig(image=ImageConfig(SMALL, weights="random", size=32))))
        documents = {"train": plain, "features": plain | {"model": {"image": {"kind": "features", "width": 3}}}}
        documents["order"] = plain | {"model": plain["model"] | {"similarity": to_plain(Order())}}
        for kind in LOSSES.names():
            try:
                documents[f"loss {kind}"] = {"loss": to_plain(config_of(LOSSES.named(kind))(kind))}
            except TypeError:  # a loss that has to be told something
                documents[f"loss {kind}"] = {"loss": {"kind": kind, "thresholds": [0.5], "weights": [1.0]}}
        for kind in ("shuffled", "by_length", "one_caption_per_image", "relevance_aware", "label_lists"):
            documents[f"sampler {kind}"] = {"sampler": {"kind": kind}}
        for kind in ("plain", "cached_gradients", "global_negatives"):
            documents[f"step {kind}"] = {"step": {"kind": kind}}
        for kind in REGIONS:
            documents[f"model {kind}"] = {"model": to_plain(_small(kind))}
        documents |= {f"encoder {name}": {"model": one} for name, one in configured.documents(self.home).items()}
        for name, document in documents.items():
            for said, values in self.variants(name, document):
                yield said, lambda values=values: _train(file, yaml.safe_dump(values))
            for place in places(document):
                for tag in self._some(TAGS)[:1] if self.share else TAGS:
                    text = yaml.safe_dump(replaced(document, place, "TAG")).replace("TAG", tag)
                    yield f"{name}: {place} {tag}", lambda text=text: _train(file, text)

    def sources(self) -> Iterator[Case]:
        """Every source of relevance, as a mapping and as a text in braces."""
        for config in CONFIGS:
            values = {"kind": config.kind} | {
                name: value for name, value in to_plain(config()).items() if name != "kind"
            }
            for said, changed in self.variants(f"relevance {config.kind}", values):
                yield said, lambda changed=changed: source_config(changed).build(DATA)
                text = yaml.safe_dump(changed, default_flow_style=True, width=10**6).strip()
                yield f"{said} as text", lambda text=text: degrees_of(text, DATA) if names_source(text) else None

    def models(self) -> Iterator[Case]:
        """A saved model: settings, preprocessing, vocabulary, header of the weights, seal."""
        config = VSEConfig(image=FeatureConfig(width=3), text=GRUConfig(4, 1), dimension=4)
        pictures = replace(config, image=ImageConfig(SMALL, weights="random", size=32))
        sound, seeing = self.home / "model", self.home / "seeing"
        JointEmbedding.create(config, CAPTIONS).save_pretrained(sound, {"seed": 3, "data": "scenes"})
        JointEmbedding.create(pictures, CAPTIONS).save_pretrained(seeing)
        for place, name in (
            (sound, "config.json"), (sound, "tokenizer.json"), (seeing, "config.json"), (seeing, "preprocessing.json"),
        ):  # fmt: skip
            before = (place / name).read_text()
            for said, values in self.variants(name, json.loads(before)):
                yield said, lambda file=place / name, values=values: _model(file, json.dumps(values))
            (place / name).write_text(before)
        weights = sound / "model.safetensors"
        tensors, data = load_file(weights), weights.read_bytes()
        for kind in REGIONS:
            small: Any = family(kind)
            place = self.home / kind
            small.create(_small(kind), CAPTIONS, FeatureRows(np.zeros((2, 2, 3), np.float32))).save_pretrained(place)
            before = (place / "config.json").read_text()
            for said, values in self.variants(f"{kind}/config.json", json.loads(before)):
                yield said, lambda place=place, values=values: _regions(place, json.dumps(values))
            (place / "config.json").write_text(before)
        for payload in self._payloads:
            said = json.dumps(payload)
            yield f"header {said}"[:100], lambda said=said: _weights(sound, tensors, said)
        weights.write_bytes(data)
        for payload in self._payloads:
            line = f"{'0' * 64}  {payload}\n"
            yield f"seal {payload}"[:100], lambda line=line: _sealed(sound, line)

    def encoders(self) -> Iterator[Case]:
        """Folders of published models, and what rungwise saves and exports of them."""
        for folder, names, use in configured.folders(self.home):
            yield from self._edited([folder / name for name in names], use)

    def checkpoints(self) -> Iterator[Case]:
        """The state in the header of a checkpoint."""
        file = self.home / "checkpoint.safetensors"
        state = to_plain(RunState(settings=to_plain(TrainConfig()), history=[{"rsum": 1.0}], data_hash="a"))
        for said, values in self.variants("checkpoint", json.loads(json.dumps(state))):
            yield said, lambda values=values: _checkpoint(file, json.dumps(values))

    def sentence_models(self) -> Iterator[Case]:
        """A folder of sentence-transformers, and one of a cross-encoder."""
        from rungwise.language import load_pair_model
        from rungwise.language.sentence_models import load_sentence_model
        from rungwise.training.pair_models._model_folders import save_cross_encoder

        def sentences() -> None:
            load_sentence_model(sound, "cpu").encode(["a dog"], show_progress_bar=False)

        def pairs() -> None:
            CrossEncoder(CAPTIONS, (0, 1, 1), grader, scale="raw", inference=PairInference(device="cpu")).pair_block(
                [0], [1]
            )

        sound, grader = self.home / "sentences", self.home / "grader"
        configured.sentence_model(sound)
        yield from self._edited(sorted(sound.rglob("*.json")), sentences)
        save_cross_encoder(load_pair_model(tiny_encoder(grader), outputs=1), grader, {})
        yield from self._edited([grader / name for name in ("config.json", "tokenizer_config.json")], pairs)

    def _edited(self, files: list[Path], use: Callable[[], None]) -> Iterator[Case]:
        for file in files:
            before = file.read_text()
            for said, values in self.variants(f"{file.parent.name}: {file.name}", json.loads(before)):
                yield said, lambda file=file, values=values: (file.write_text(json.dumps(values)), use())
            file.write_text(before)


def _at(values: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        values = values[key]
    return values


def _train(file: Path, text: str) -> None:
    """As ``rungwise train`` does it, up to the first step."""
    file.write_text(text)
    config = load_yaml(TrainConfig, file)
    if not config.loss.needs_thresholds:
        config.loss.build()
    if config.data.relevance:
        degrees_of(config.data.relevance, DATA)
    if config.start:
        load(config.start, "cpu")
    if config.data.path:
        read(Path(config.data.path))
    if isinstance(config.model, VSEConfig | RegionConfig) and config.model.dimension <= 4096:
        shape = (2, 3) if isinstance(config.model, VSEConfig) else (2, 2, 3)
        rows = FeatureRows(np.zeros(shape, np.float32)) if config.model.image.kind == "features" else None
        _created(repr(config.model), config.model, rows)


_made: dict[str, bool] = {}


def _created(key: str, config: VSEConfig | RegionConfig, rows: FeatureRows | None) -> None:
    """Once for every configuration: most values that change leave the model as it is."""
    if key not in _made:
        family(config.kind).create(config, CAPTIONS, rows)  # type: ignore[attr-defined]
        _made[key] = True


def _small(kind: str) -> Any:
    """The configuration of a small model of regions of 3 numbers."""
    config: Any = family(kind).config_type  # type: ignore[attr-defined]
    more: dict[str, Any] = {"concepts": {"min_count": 1, "width": 3, "most_share": 1.0}} if kind == "cvse" else {}
    if kind == "vsrn":
        more = {"captions": {"hidden": 3, "word_dimension": 3}}
    sides = {"image": {"kind": "features", "width": 3}, "text": {"word_dimension": 4, "min_count": 1}}
    return from_plain(config, {"kind": kind, **sides, "dimension": 4, **more}, "small")


def _regions(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    load(folder, "cpu", altered=True).block(FeatureRows(np.zeros((1, 2, 3), np.float32)), ["a dog"])


def _model(file: Path, text: str) -> None:
    file.write_text(text)
    load(file.parent, "cpu", altered=True).encode_text(["a dog"])  # type: ignore[attr-defined]


def _weights(folder: Path, tensors: Any, said: str) -> None:
    save_file(tensors, folder / "model.safetensors", metadata={"state": said, "format": said})
    load(folder, "cpu", altered=True)


def _sealed(folder: Path, line: str) -> None:
    (folder / "SHA256SUMS").write_text(line)
    load(folder, "cpu")


def _checkpoint(file: Path, said: str) -> None:
    tensors = {"model/a": torch.zeros(1)}
    save_file(tensors, file, metadata=header_of(said, tensors))
    load_checkpoint(file)


def _nobody_home(name: str, **_: Any) -> str:
    """The hub, which a name of a model is a reason to ask."""
    raise LocalEntryNotFoundError(f"{name}: no connection")


CONTROLS: dict[str, Callable[[], object]] = {
    "unpickles": lambda: torch.load("evil.pth", weights_only=False),
    "imports": lambda: __import__("evil"),
    "starts a process": lambda: os.system("true"),
    "connects": lambda: __import__("urllib.request").request.urlopen("http://127.0.0.1:9/"),
    "evaluates": lambda: eval("__import__('evil')"),
    "writes elsewhere": lambda: Path("..", "elsewhere").write_text("x"),
    "loads a Python object": lambda: yaml.unsafe_load(TAGS[0]),
}
"""Harm that must be seen, or the walk tells nothing."""


DOCUMENTS = ("training", "sources", "models", "encoders", "checkpoints", "sentence_models")


def main(home: Path, share: int, documents: Sequence[str] = DOCUMENTS) -> dict[str, Any]:
    """Walk, and say what happened."""
    plant(home)
    os.chdir(home)
    sys.path.insert(0, str(home))
    huggingface_hub.snapshot_download = _nobody_home
    walk = Walk(home, share)
    planted = {path: path.read_bytes() for path in (home / "mine.txt", home / "evil.pth", home / "evil.py")}
    _warm_up(walk)
    watch = Watch(home)
    blind = []
    for name, act in CONTROLS.items():
        with watch.on() as seen:
            _outcome(act)
        if not seen:
            blind.append(name)
        (home / "ran").unlink(missing_ok=True)
    sys.modules.pop("evil", None)
    counts: Counter[str] = Counter()
    harm, errors = [], []
    for document in documents:
        for name, act in getattr(walk, document)():
            with watch.on() as seen:
                outcome = _outcome(act)
            counts[outcome.split(":")[0]] += 1
            counts[document] += 1
            harm += [f"{name}: {one}" for one in seen]
            if outcome.startswith("error"):
                errors.append(f"{name}: {outcome}")
            changed = [path.name for path, data in planted.items() if path.read_bytes() != data]
            if (home / "ran").exists() or changed:
                harm.append(f"{name}: {changed or 'code ran'}")
                (home / "ran").unlink(missing_ok=True)
                for path, data in planted.items():
                    path.write_bytes(data)
    return {"counts": counts, "harm": harm, "errors": errors, "blind": blind}


def _outcome(act: Callable[[], object]) -> str:
    try:
        act()
    except UserError as error:
        return "error: more than a line" if "\n" in str(error) else "refused"
    except MemoryError:
        return "error: memory"
    except BaseException as error:  # a panic of Rust code is no Exception
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
        return f"error: {type(error).__name__} {str(error)[:150]} at {where}"
    return "accepted"


def _warm_up(walk: Walk) -> None:
    """What libraries load when they are first used is not the configuration's doing."""
    for config in CONFIGS:
        _outcome(lambda config=config: source_config(config.kind).build(DATA))
    _outcome(
        lambda: _train(walk.home / "warm.yaml", f"model: {{image: {{backbone: {SMALL}, weights: random, size: 32}}}}")
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    result = main(folder, int(sys.argv[2]), sys.argv[3:] or DOCUMENTS)
    print(json.dumps(result))
