"""A model that is opened when something is to be encoded, and known by its files until then.

Opening a model takes torch and seconds, while the question whether an index belongs to a model takes its fingerprint
alone. The fingerprint follows from the bytes of the model's files and from the programs that read them, so it is cached
under the SHA-256 of both. A model with other files is opened. When a model is opened in the end, its facts are compared
with the cached ones before anything is encoded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from rungwise.core import STRICT, UserError, digest_of_json, from_plain, read_bytes, stamp
from rungwise.core.disk import default_cache, digest_of, names_below, replacing
from rungwise.core.disk.sealed_lines import sealed, unsealed
from rungwise.core.version import __version__
from rungwise.encoders.pretrained import ModelSource
from rungwise.models._average import members_of
from rungwise.models._contracts import DualEncoder, EncodedImages, Pictures, Progress, Texts, Vectors
from rungwise.models.io import ModelFolder

_READERS = ("torch", "timm", "transformers", "tokenizers", "open_clip_torch", "onnxruntime")
"""Libraries whose versions affect how a model's files are read."""
_NEVER_READ = {".bin", ".ckpt", ".h5", ".msgpack", ".onnx", ".ot", ".pt", ".pth"}
"""Suffixes of weights in other formats that lie beside those of a published model."""


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a model that an index asks for before anything is encoded.

    Attributes:
        fingerprint: Hash of everything that a vector depends on.
        dimension: Length of a vector.
        stands_for: Fingerprint of another model that gives the same vectors; empty where there is none.
    """

    __pydantic_config__ = STRICT

    fingerprint: str
    dimension: int
    stands_for: str

    @classmethod
    def of(cls, model: DualEncoder) -> ModelFacts:
        """Read the facts from an open model."""
        return cls(model.fingerprint, model.dimension, model.stands_for)


class ModelFiles:
    """The files of a model on this machine, by which it is recognised.

    Args:
        place: The model as :func:`rungwise.models.load` takes it.
        folder: Folder of the files.
        library: Library that published the model; empty for a model of rungwise.
    """

    def __init__(self, place: str, folder: Path, library: str = "") -> None:
        self.place = place
        self._folder = folder
        self._library = library
        self._stamps = self._now()

    @classmethod
    def of(cls, source: str) -> ModelFiles | None:
        """The files of a model, downloaded from the hub if needed; None where they do not determine the model.

        Raises:
            UserError: If there is no such model, or it cannot be downloaded.
            AlteredModelError: If its seal is damaged.
        """
        if members_of(source) is not None:
            return None
        published = ModelSource.named(source)
        if published is None:
            folder = ModelFolder.open(source).path
            if Path(source).is_dir():
                return cls(source, folder)
            # Under a name without a prefix, what is no model of rungwise is refused when it is opened.
            return None if ModelSource.of_folder(folder) else cls(str(folder), folder)
        published.require_library()
        if published.library == "open_clip" and (published.folder is None or _names_another(published.folder)):
            return None
        folder = published.fetched()
        return cls(f"{published.library}:{folder}", folder, published.library)

    @cached_property
    def _note(self) -> Path | None:
        """Cache file for the facts of a model with these files; None where a file cannot be read."""
        try:
            content = {name: digest_of(self._folder / name) for name in self._stamps}
        except (OSError, UserError):  # which opening the model explains
            return None
        readers = [__version__, _own_modules(), *map(_version, _READERS)]
        return default_cache() / "models" / f"{digest_of_json([self._library, readers, content])}.json"

    def facts(self) -> ModelFacts | None:
        """Cached facts of a model with these files; None where none was opened before."""
        return None if self._note is None else read_facts(self._note)

    def keep(self, facts: ModelFacts) -> None:
        """Cache the facts of the model that was read from these files, unless a file was changed meanwhile."""
        if self._note is None or self._now() != self._stamps:
            return
        with suppress(OSError, UserError):  # without them it is opened again
            write_facts(facts, self._note)

    def _now(self) -> dict[str, tuple[int, ...] | None]:
        """Stamps of the model's files, which change when a file is written; hidden folders are not part of a model."""
        names = [name for name in names_below(self._folder) if not any(one[0] == "." for one in name.split("/")[:-1])]
        if self._library and not any(name.endswith(".index.json") for name in names):  # which may name any file
            names = [name for name in names if Path(name).suffix not in _NEVER_READ]
        names.sort()
        return {name: stamp(self._folder / name) for name in names}


def write_facts(facts: ModelFacts, path: Path) -> None:
    """Write a file of facts, with a checksum."""
    with replacing(path) as draft:
        draft.write_bytes(sealed(asdict(facts)))


def read_facts(path: Path) -> ModelFacts | None:
    """The facts that :func:`write_facts` wrote; None where there is no such file, or it is damaged."""
    try:
        return from_plain(ModelFacts, unsealed(read_bytes(path, "settings_bytes")), str(path))
    except (ValueError, TypeError, RecursionError, UserError):
        return None


def _names_another(folder: Path) -> bool:
    """Whether an open_clip model reads, or may read, another configuration from the hub besides its own."""
    try:
        return b"hf_model_name" in read_bytes(folder / "open_clip_config.json", "settings_bytes")
    except UserError:  # which opening the model explains
        return True


def _own_modules() -> str:
    """Digest that changes when a module of rungwise is edited, as in a development clone."""
    package = Path(__file__).parents[1]
    known = sorted((path.relative_to(package).as_posix(), stamp(path)) for path in package.rglob("*.py"))
    return digest_of_json(known)


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


class LazyModel:
    """A model with cached ``facts`` that is opened when it first encodes.

    ``correct`` is called with the facts of the opened model where they differ.
    """

    def __init__(
        self, facts: ModelFacts, open_model: Callable[[], DualEncoder], correct: Callable[[ModelFacts], object]
    ) -> None:
        self.facts = facts
        self._open_model = open_model
        self._correct = correct

    @classmethod
    def of(cls, model: DualEncoder) -> LazyModel:
        """Wrap an open model; its facts are computed once, since the fingerprint reads all weights."""
        lazy = cls(ModelFacts.of(model), lambda: model, lambda _: None)
        lazy._model = model
        return lazy

    @property
    def fingerprint(self) -> str:
        """The cached fingerprint."""
        return self.facts.fingerprint

    @property
    def dimension(self) -> int:
        """The cached length of a vector."""
        return self.facts.dimension

    @property
    def stands_for(self) -> str:
        """The cached fingerprint of the model that this one stands for."""
        return self.facts.stands_for

    def encode_image(
        self, pictures: Pictures, *, progress: Progress | None = None, cache: Path | None = None
    ) -> EncodedImages:
        """Open the model if needed, and encode images."""
        return self._model.encode_image(pictures, progress=progress, cache=cache)

    def encode_captions(self, texts: Texts, *, progress: Progress | None = None, cache: Path | None = None) -> Vectors:
        """Open the model if needed, and encode captions."""
        return self._model.encode_captions(texts, progress=progress, cache=cache)

    @cached_property
    def _model(self) -> DualEncoder:
        """Open the model."""
        model = self._open_model()
        found = ModelFacts.of(model)
        if found != self.facts:
            self._correct(found)
            raise UserError("the model is not the one that its files were known to be; run it again")
        return model
