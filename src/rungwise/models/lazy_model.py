"""A model that is opened when something is to be encoded, and is known by its files until then.

To open a model takes torch and seconds, and whether an index is of a model takes its fingerprint alone. That follows
from the bytes of the model's files and from the programs that read them. So it is kept in the cache under the SHA-256
of both. A model whose files are others than those that were opened before is opened. What is known is compared once
more when the model is opened after all, before anything is encoded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from rungwise.core.configuration import STRICT, from_plain
from rungwise.core.digests import digest_of_json
from rungwise.core.disk.cache_folder import default_cache
from rungwise.core.disk.files import replacing
from rungwise.core.disk.sealed_lines import sealed, unsealed
from rungwise.core.disk.seals import digest_of, names_below
from rungwise.core.errors import UserError
from rungwise.core.untrusted_files import read_bytes, stamp
from rungwise.core.version import __version__
from rungwise.encoders.pretrained.model_source import ModelSource
from rungwise.models.average import members_of
from rungwise.models.contracts import DualEncoder, EncodedImages, Pictures, Progress, Texts, Vectors
from rungwise.models.io.folder import ModelFolder

_READERS = ("torch", "timm", "transformers", "tokenizers", "open_clip_torch", "onnxruntime")
"""Libraries that have a say in what is read of a model's files."""
_NEVER_READ = {".bin", ".ckpt", ".h5", ".msgpack", ".onnx", ".ot", ".pt", ".pth"}
"""Weights in other formats beside those of a published model."""


@dataclass(frozen=True)
class ModelFacts:
    """What an index asks of a model before anything is encoded.

    Attributes:
        fingerprint: As :attr:`PairScorer.fingerprint <rungwise.models.contracts.PairScorer.fingerprint>`.
        dimension: As :attr:`DualEncoder.dimension <rungwise.models.contracts.DualEncoder.dimension>`.
        stands_for: As :attr:`DualEncoder.stands_for <rungwise.models.contracts.DualEncoder.stands_for>`.
    """

    __pydantic_config__ = STRICT

    fingerprint: str
    dimension: int
    stands_for: str

    @classmethod
    def of(cls, model: DualEncoder) -> ModelFacts:
        """Those of a model that is open."""
        return cls(model.fingerprint, model.dimension, model.stands_for)


class ModelFiles:
    """The files of a model on this machine, by which it is recognised.

    Args:
        place: The model as :func:`rungwise.models.load` takes it.
        folder: Where the files are.
        library: That published it; empty for a model of rungwise.

    Attributes:
        place: As given.
    """

    def __init__(self, place: str, folder: Path, library: str = "") -> None:
        self.place = place
        self._folder = folder
        self._library = library
        self._stamps = self._now()

    @classmethod
    def of(cls, source: str) -> ModelFiles | None:
        """The files of a model, fetched where they are on the hub; None where they do not tell all of it.

        Args:
            source: As :func:`rungwise.models.load` takes it.

        Raises:
            UserError: As :func:`rungwise.models.load`, if there is no model, or it cannot be fetched.
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
        """Where facts of a model with these files are kept; None where a file cannot be read."""
        try:
            content = {name: digest_of(self._folder / name) for name in self._stamps}
        except (OSError, UserError):  # which opening the model explains
            return None
        readers = [__version__, _own_modules(), *map(_version, _READERS)]
        return default_cache() / "models" / f"{digest_of_json([self._library, readers, content])}.json"

    def facts(self) -> ModelFacts | None:
        """What was kept of a model with these files; None where none was opened before."""
        return None if self._note is None else read_facts(self._note)

    def keep(self, facts: ModelFacts) -> None:
        """Keep what is known of the model that was read from these files, unless they were written to meanwhile."""
        if self._note is None or self._now() != self._stamps:
            return
        with suppress(OSError, UserError):  # without them it is opened again
            write_facts(facts, self._note)

    def _now(self) -> dict[str, tuple[int, ...] | None]:
        """What changes when a file is written to, by its name; hidden folders are no part of a model."""
        names = [name for name in names_below(self._folder) if not any(one[0] == "." for one in name.split("/")[:-1])]
        if self._library and not any(name.endswith(".index.json") for name in names):  # which may name any file
            names = [name for name in names if Path(name).suffix not in _NEVER_READ]
        names.sort()
        return {name: stamp(self._folder / name) for name in names}


def write_facts(facts: ModelFacts, path: Path) -> None:
    """Write a file of facts, with a checksum.

    Raises:
        UserError: If the disk is full, or the place cannot be written.
    """
    with replacing(path) as draft:
        draft.write_bytes(sealed(asdict(facts)))


def read_facts(path: Path) -> ModelFacts | None:
    """What :func:`write_facts` wrote; None where there is no such file, or it is damaged.

    >>> read_facts(Path("nowhere.json"))
    """
    try:
        return from_plain(ModelFacts, unsealed(read_bytes(path, "settings_bytes")), str(path))
    except (ValueError, TypeError, RecursionError, UserError):
        return None


def _names_another(folder: Path) -> bool:
    """Whether a model of open_clip reads a configuration of the hub besides its own, or may do so."""
    try:
        return b"hf_model_name" in read_bytes(folder / "open_clip_config.json", "settings_bytes")
    except UserError:  # which opening the model explains
        return True


def _own_modules() -> str:
    """What changes when a module of rungwise is edited, as in a clone that somebody works on."""
    package = Path(__file__).parents[1]
    known = sorted((path.relative_to(package).as_posix(), stamp(path)) for path in package.rglob("*.py"))
    return digest_of_json(known)


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


class LazyModel:
    """A model that is opened when it first encodes.

    Args:
        facts: Known of it.
        open_model: Opens it.
        correct: Given the facts of the model that was opened, where they are others.

    Attributes:
        facts: As given.
    """

    def __init__(
        self, facts: ModelFacts, open_model: Callable[[], DualEncoder], correct: Callable[[ModelFacts], object]
    ) -> None:
        self.facts = facts
        self._open_model = open_model
        self._correct = correct

    @classmethod
    def of(cls, model: DualEncoder) -> LazyModel:
        """A model that is open, of which the facts are computed once: the fingerprint takes all of its weights."""
        lazy = cls(ModelFacts.of(model), lambda: model, lambda _: None)
        lazy._model = model
        return lazy

    @property
    def fingerprint(self) -> str:
        """See :attr:`PairScorer.fingerprint <rungwise.models.contracts.PairScorer.fingerprint>`."""
        return self.facts.fingerprint

    @property
    def dimension(self) -> int:
        """See :attr:`DualEncoder.dimension <rungwise.models.contracts.DualEncoder.dimension>`."""
        return self.facts.dimension

    @property
    def stands_for(self) -> str:
        """See :attr:`DualEncoder.stands_for <rungwise.models.contracts.DualEncoder.stands_for>`."""
        return self.facts.stands_for

    def encode_image(
        self, pictures: Pictures, *, progress: Progress | None = None, cache: Path | None = None
    ) -> EncodedImages:
        """See :meth:`DualEncoder.encode_image <rungwise.models.contracts.DualEncoder.encode_image>`."""
        return self._model.encode_image(pictures, progress=progress, cache=cache)

    def encode_captions(self, texts: Texts, *, progress: Progress | None = None, cache: Path | None = None) -> Vectors:
        """See :meth:`DualEncoder.encode_captions <rungwise.models.contracts.DualEncoder.encode_captions>`."""
        return self._model.encode_captions(texts, progress=progress, cache=cache)

    @cached_property
    def _model(self) -> DualEncoder:
        """The model, open.

        Raises:
            UserError: If it is another one than what was known of it says.
        """
        model = self._open_model()
        found = ModelFacts.of(model)
        if found != self.facts:
            self._correct(found)
            raise UserError("the model is not the one that its files were known to be; run it again")
        return model
