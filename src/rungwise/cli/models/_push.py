"""``rungwise push``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.jobs import say

_EXAMPLES = ("rungwise push run/model someone/a-model --private",)


@dataclass
class Push:
    """Upload a saved model to the Hugging Face hub; its card becomes the page.

    The token is that of HF_TOKEN or of "hf auth login". A folder that was altered since it was saved is refused.

    Attributes:
        model: Folder of a model.
        repository: Where to. It is made if there is none.
        private: Make a new repository private.
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    repository: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OWNER/NAME")]
    private: bool = False


def main(arguments: list[str]) -> int:
    """Upload a model, and print its address."""
    asked = parse(Push, arguments, "rungwise push", examples=_EXAMPLES)
    from rungwise.models.io import push_to_hub

    say(f"uploaded: {push_to_hub(asked.model, asked.repository, private=asked.private)}")
    return 0
