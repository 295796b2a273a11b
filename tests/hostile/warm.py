"""The parent of all cases: everything is imported before the first fork, and nothing is computed."""

from __future__ import annotations

import codecs
import gc
import importlib
from contextlib import suppress

from tests.house import modules

_BESIDE = ("pyarrow.parquet", "timm", "torch.utils.tensorboard", "tensorboard.compat.tensorflow_stub", "numba",
           "safetensors.torch", "tests.colour_model", "scipy.io", "onnxruntime", "open_clip", "sentence_transformers",
           "transformers.models.clip.modeling_clip", "transformers.models.siglip.modeling_siglip",
           "tests.models.vsepp_program", "symtable", "matplotlib.figure", "matplotlib.backends.backend_svg",
           "matplotlib.backends.backend_agg")  # fmt: skip


def warm() -> None:
    """Import what cases would import one by one, each in its own child."""
    from PIL import Image

    for name in (*modules(), *_BESIDE):
        if not name.endswith("__main__"):
            with suppress(ImportError):  # extras that are not installed
                importlib.import_module(name)
    with suppress(ImportError):  # matplotlib keeps the files of fonts open, which a case counts
        from matplotlib.font_manager import findfont, get_font

        get_font(findfont("DejaVu Sans"))
    Image.init()
    for name in ("utf-8-sig", "utf-16", "utf-32", "latin-1", "idna", "unicode_escape"):
        codecs.lookup(name)  # which imports it; a case without privileges could not
    gc.collect()
    gc.freeze()  # or every child would copy all of it, only to find no garbage
