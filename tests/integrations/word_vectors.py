"""Pages of a made library of texts and their vectors, for the retrievers of other programs."""

import zlib

import numpy as np

WIDTH = 64
TOPICS = ("tides", "bread", "chess", "owls")
PAGES = [f"a page about {topic}, number {number}" for topic in TOPICS for number in range(6)] + [
    f"a page about nothing at all, number {number}" for number in range(176)
]


def vector_of(text: str) -> list[float]:
    """A unit vector: near that of other texts with the same topic, and in no direction of its own otherwise."""
    drawn = np.random.default_rng(zlib.crc32(text.encode())).normal(size=WIDTH) * 0.7
    for topic in TOPICS:
        if topic in text:
            drawn = drawn + 9 * np.random.default_rng(zlib.crc32(topic.encode())).normal(size=WIDTH) / 4
    return (drawn / np.linalg.norm(drawn)).tolist()


def cosines(query: str) -> dict[str, float]:
    """Cosine of every page with a query, one product at a time."""
    vector = vector_of(query)
    return {page: sum(a * b for a, b in zip(vector, vector_of(page), strict=True)) for page in PAGES}


def pages_about(topic: str) -> set[str]:
    """What a search for a topic should give."""
    return {page for page in PAGES if topic in page}
