"""``rungwise relevance explain DATA IMAGE TEXT``: which facts of a text the captions of a picture state too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import tyro

from rungwise.cli.frame import Data, parse
from rungwise.core import UserError
from rungwise.jobs import ADVANCED, Layout, MemberKey, flag, say
from rungwise.relevance.config import SpiceConfig

_EXAMPLES = ('rungwise relevance explain photos beach.jpg "a dog runs on the beach"',)


@dataclass
class Explain:
    """Which facts of a text the captions of a picture state too, and which it leaves out.

    Attributes:
        image: The picture's id, or its file's name. The number that ends an id of COCO will do, too.
        text: A caption of any words, or the id of one of the data.
        spice: How facts are compared.
    """

    data: Data
    image: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="IMAGE")]
    text: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TEXT")]
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    spice: Annotated[SpiceConfig, tyro.conf.arg(name="")] = field(default_factory=SpiceConfig)


def main(arguments: list[str]) -> int:
    """Read the data, compare the facts, and print."""
    asked = parse(
        Explain,
        arguments,
        "rungwise relevance explain",
        examples=_EXAMPLES,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    from rungwise.data import ImageCaptions, read
    from rungwise.relevance import Spice
    from rungwise.relevance.config import Building
    from rungwise.relevance.human import Finder

    data = read(asked.data, layout=asked.layout, key=asked.key, captions_only=True)
    image = Finder(data.image_ids)(asked.image)
    if image is None:
        some = ", ".join(map(repr, data.image_ids[:2])) or "none, for it has no pictures"
        raise UserError(f"{data.name}: has no picture {asked.image!r}; give one of its ids, such as {some}")
    known = {one: place for place, one in enumerate(data.caption_ids)}
    own = data.captions_of_image[image].tolist()
    caption = known.get(asked.text)
    text = asked.text if caption is None else data.captions[caption]
    references = [data.captions[one] for one in own if not (asked.spice.leave_one_out and one == caption)]
    if not references:
        raise UserError(f"{data.image_ids[image]}: has no other caption to compare with; take another picture")
    # The text is of a picture of its own, so that only the captions of the asked one answer.
    owners = np.array([*[0] * len(references), 1])
    small = ImageCaptions((data.image_ids[image], "text"), (*references, text), owners, name=data.name)
    source = asked.spice.build(small, building=Building(say=lambda _: None, option=flag))
    assert isinstance(source, Spice)
    for reference in references:
        say(f"caption: {reference}")
    say(f"text: {text}")
    say(str(source.explain(0, len(references))))
    for what, stated in (("text states", source.graphs[-1:]), ("captions state", source.graphs[:-1])):
        if not any(stated):
            say(f"the {what} no fact that the parser finds; the built-in one reads English")
    return 0
