"""Degrees of relevance in shards: the same bits, time and memory by shard, and COCO's training size.

    RUNGWISE_DATA=... python benchmarks/sharded_relevance.py            # Flickr30K's training captions, and growth
    RUNGWISE_DATA=... python benchmarks/sharded_relevance.py --coco     # 567,000 captions, top 100 each
    RUNGWISE_DATA=... python benchmarks/sharded_relevance.py --images 2000

CIDEr-D from texts to lists on the disk, three ways: all queries at once, the shards one after the other in one process,
and the shards on Ray's workers. Every way runs in a process of its own. Memory is the most that was resident: of the
process, and of the process that made a shard while it did so. What workers share (the weights of all captions) counts
for each of them.

``--coco`` has no 567,000 captions at hand. It takes those of Flickr30K's training part and of COCO's 5,000 test
pictures, 34,000 pictures with five each, and repeats them with changes: in a copy of a caption some words give way to
others of the collection, a word is left out or two change places, until no other caption is like it. This has the size
of COCO's training part (113,287 pictures with 566,747 captions), not its words.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from measuring import alone, peak
from relevance import Captions, coco5k, flickr30k

COCO_IMAGES = 113_400
MB = 1e6
SHARDS = 4
WORKERS = 2
WAYS = ("at once", "shards in turn", "shards on Ray")


def repeated(captions: Captions, images: int) -> Captions:
    """Captions of so many images: those that are given, then copies of them with changes, all of them distinct."""
    texts, owners = captions
    own: list[list[str]] = [[] for _ in range(max(owners) + 1)]
    for text, owner in zip(texts, owners, strict=True):
        own[owner].append(text)
    words = [word for text in texts for word in text.split()]
    draw = random.Random(0)
    known: set[str] = set()
    found: list[str] = []
    of: list[int] = []
    for image in range(images):
        for text in own[image % len(own)]:
            changed = text if image < len(own) else changes(text, words, draw)
            while changed in known:
                changed = changes(changed, words, draw)
            known.add(changed)
            found.append(changed)
            of.append(image)
    return found, of


def changes(text: str, words: list[str], draw: random.Random) -> str:
    """One to three words replaced, and one left out or two changing places."""
    own = text.split()
    for _ in range(draw.randint(1, 3)):
        own[draw.randrange(len(own))] = draw.choice(words)
    place = draw.randrange(len(own))
    if draw.random() < 0.5 and len(own) > 3:
        del own[place]
    elif place:
        own[place - 1], own[place] = own[place], own[place - 1]
    else:
        own.append(draw.choice(words))
    return " ".join(own)


def case(way: str, captions: Captions, k: int, direction: str) -> dict[str, Any]:
    """From texts to lists on the disk."""
    from rungwise.core.compute import OnWorkers, Share, cluster, in_turn
    from rungwise.data import ImageCaptions
    from rungwise.relevance import write_degrees
    from rungwise.relevance.config import Building, source_config
    from rungwise.relevance.precomputed import write_in_shards

    texts, owners = captions
    data = ImageCaptions(tuple(str(image) for image in range(max(owners) + 1)), tuple(texts), np.array(owners))
    shards: list[Any] = []
    with ExitStack() as held:
        place = Path(held.enter_context(tempfile.TemporaryDirectory()))
        (place / "degrees").mkdir()
        share: Share = in_turn
        if way == "shards on Ray":
            share = OnWorkers(held.enter_context(cluster(workers=WORKERS)))
        start = time.perf_counter()
        source = source_config("cider-d").build(data, building=Building(share=share))
        built = time.perf_counter() - start
        if way == "at once":
            write_degrees(source, place / "degrees", k=k, direction=direction)
        else:
            shards = write_in_shards(
                source, place / "degrees", place / "work", k=k, direction=direction, shards=SHARDS, share=share
            )
        wall = time.perf_counter() - start
        digest = hashlib.sha256()
        for file in sorted((place / "degrees").iterdir()):
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    return {"wall": wall, "built": built, "peak": peak(), "shards": shards, "bits": digest.hexdigest()}


def show(console: Console, title: str, captions: Captions, k: int, ways: Sequence[str], directions: list[str]) -> None:
    table = Table(title=title)
    for column in ("what", "way", "s", "of it weights", "MB", "shards: s", "shards: MB", "the same bits"):
        table.add_column(column, justify="left" if column in ("what", "way") else "right")
    for direction in directions:
        bits = ""
        for way in ways:
            found = alone(case, way, captions, k, direction)
            bits = bits or found["bits"]
            table.add_row(
                direction,
                f"{SHARDS} {way}" if found["shards"] else way,
                f"{found['wall']:.1f}",
                f"{found['built']:.1f}",
                f"{found['peak'] / MB:,.0f}",
                " ".join(f"{shard.seconds:.1f}" for shard in found["shards"]),
                " ".join(f"{shard.peak / MB:,.0f}" for shard in found["shards"]),
                "" if way == ways[0] else "yes" if found["bits"] == bits else "NO",
            )
            print(f"{title}: {direction} {way} {found['wall']:.1f} s", flush=True)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=29_000, help="of Flickr30K's training part")
    parser.add_argument("--coco", action="store_true", help="567,000 captions instead; many minutes")
    parser.add_argument("--coco-images", type=int, default=COCO_IMAGES)
    parser.add_argument("-k", type=int, default=100)
    parser.add_argument("--directions", nargs="+", choices=("i2t", "t2i"), default=["i2t", "t2i"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, help="default: all; with --coco on Ray alone")
    asked = parser.parse_args()
    console = Console(width=150)
    if asked.coco:
        flickr, coco = flickr30k("train", asked.images), coco5k(5000)
        pictures = max(flickr[1]) + 1
        base = flickr[0] + coco[0], flickr[1] + [pictures + owner for owner in coco[1]]
        captions = repeated(base, asked.coco_images)
        console.print(
            f"{len(captions[0]):,} distinct captions of {asked.coco_images:,} pictures: {len(base[0]):,} that people"
            " wrote (Flickr30K train, COCO 5K test), the rest are those with words replaced, left out or moved"
        )
        title = f"COCO's training size, {len(captions[0]):,} captions, CIDEr-D, top {asked.k}"
        show(console, title, captions, asked.k, asked.ways or WAYS[2:], asked.directions)
        return
    for share in (4, 2, 1):
        captions = flickr30k("train", max(1, asked.images // share))
        title = f"Flickr30K train, {len(captions[0]):,} captions, CIDEr-D, top {asked.k}"
        directions = asked.directions if share == 1 else asked.directions[-1:]
        show(console, title, captions, asked.k, asked.ways or WAYS, directions)


if __name__ == "__main__":
    main()
