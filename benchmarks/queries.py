"""What queries of several parts, full text and folding find and cost: the numbers behind the defaults of a search.

    python benchmarks/queries.py without MODEL DATA       weights of what is taken away
    python benchmarks/queries.py words MODEL DATA         full text joined with vectors: always, or where it says most
    python benchmarks/queries.py duplicates MODEL DATA    cosines of altered copies, and of different pictures
    python benchmarks/queries.py costs MODEL INDEX        processor time of each part of a search in an index

DATA is a collection with captions; its test split is taken where it has one. Captions say what a picture shows.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rungwise.core import UserError
from rungwise.data import ImageCaptions, read
from rungwise.index import Index, Searcher, SearchOptions, parse_where
from rungwise.index.query import Rarity
from rungwise.index.search import MOST_OF, fused
from rungwise.index.stores import WordIndex, words_of
from rungwise.models import DualEncoder, load_dual_encoder
from rungwise.similarity import unit_rows

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
TOP = 10
LEAST_PICTURES = 15
POOL = 200
RARE = 5
CONCEPTS = {
    "a dog": "dog dogs puppy puppies",
    "a man": "man men guy guys",
    "a woman": "woman women lady ladies",
    "a child": "child children kid kids boy boys girl girls toddler baby",
    "people": "people crowd group man men woman women boy boys girl girls child children person persons",
    "water": "water ocean lake river pool sea waves wave",
    "grass": "grass grassy field lawn",
    "snow": "snow snowy",
    "a beach": "beach sand sandy shore",
    "a ball": "ball balls football soccer baseball basketball tennis frisbee",
    "a hat": "hat hats cap helmet",
    "a bicycle": "bike bikes bicycle bicycles bicyclist biker cyclist bmx",
    "a street": "street road sidewalk city",
    "trees": "tree trees forest woods",
    "rocks": "rock rocks cliff mountain mountains",
    "a shirt": "shirt shirts t-shirt tshirt",
    "something red": "red",
    "a building": "building buildings house wall",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("without", "words", "duplicates", "costs"))
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    asked = parser.parse_args()
    if asked.what == "costs":
        costs(load_dual_encoder(asked.model), Index.open(asked.data))
        return
    data = read(asked.data)
    data = data.split("test") if "test" in data.split_names else data
    model = load_dual_encoder(asked.model)
    {"without": without, "words": words, "duplicates": duplicates}[asked.what](model, data)


def without(model: DualEncoder, data: ImageCaptions) -> None:
    """For each pair of things that captions name together and apart: how often the top shows either."""
    pictures = unit_rows(model.encode_image(data.pictures).vectors)
    shown = {name: _shows(data, set(synonyms.split())) for name, synonyms in CONCEPTS.items()}
    pairs = [
        (kept, less)
        for kept in CONCEPTS
        for less in CONCEPTS
        if not set(CONCEPTS[kept].split()) & set(CONCEPTS[less].split())
        and min((shown[kept] & shown[less]).sum(), (shown[kept] & ~shown[less]).sum()) >= LEAST_PICTURES
    ]
    texts = [*CONCEPTS, *(f"{kept} without {less}" for kept, less in pairs)]
    vector = dict(zip(texts, unit_rows(model.encode_text(texts)), strict=True))
    print(f"{data.name}: {len(data)} pictures, {len(pairs)} pairs; of the first {TOP}, % that show")
    print(f"{'query':<24} {'what is kept':>12} {'what is less':>12} {'kept, not less':>14}")

    def line(name: str, query: Callable[[str, str], NDArray[np.float32]]) -> None:
        shares = []
        for kept, less in pairs:
            best = np.argsort(-(pictures @ query(kept, less)), kind="stable")[:TOP]
            has, lacks = shown[kept][best], ~shown[less][best]
            shares.append((has.mean(), 1 - lacks.mean(), (has & lacks).mean()))
        a, b, c = 100 * np.mean(shares, axis=0)
        print(f"{name:<24} {a:>12.1f} {b:>12.1f} {c:>14.1f}")

    line("the words with 'without'", lambda kept, less: vector[f"{kept} without {less}"])
    for weight in WEIGHTS:
        line(f"kept - {weight:.1f} * less", lambda kept, less, weight=weight: vector[kept] - weight * vector[less])


def words(model: DualEncoder, data: ImageCaptions) -> None:
    """One caption of a picture is the query; the index holds the others, of all pictures or of some."""
    pictures = unit_rows(model.encode_image(data.pictures).vectors)
    of_image = data.captions_of_image
    targets = [image for image, captions in enumerate(of_image) if len(captions) > 1]
    captions = [data.captions[of_image[image][0]] for image in targets]
    frequency = Counter(word for text in data.captions for word in set(words_of(text)))
    rarest = [
        " ".join(sorted(dict.fromkeys(words_of(text)), key=lambda word: frequency[word])[:3]) for text in captions
    ]
    for kind, queries in (("whole captions", captions), ("their three rarest words", rarest)):
        vectors = unit_rows(model.encode_text(queries))
        ranked = np.argsort(-(vectors @ pictures.T), axis=1, kind="stable")
        for share in (1.0, 0.5, 0.1):
            described = np.random.default_rng(0).random(len(data)) < share
            said = {
                image: " ".join(data.captions[one] for one in own[1:])
                for image, own in enumerate(of_image)
                if described[image]
            }
            print(f"\n{data.name}: queries are {kind}; captions of {len(said)} of {len(data)} pictures are indexed")
            _compare(queries, targets, ranked, said, described, frequency)


def _compare(
    queries: Sequence[str],
    targets: Sequence[int],
    ranked: NDArray[np.int64],
    said: Mapping[int, str],
    described: NDArray[np.bool_],
    frequency: Mapping[str, int],
) -> None:
    """Rank by vectors, by words, and by both in several ways."""
    index = WordIndex((str(image), text) for image, text in said.items())
    rarity = Rarity(said.values())
    found = [list(map(int, index.best(text, POOL)[0])) for text in queries]
    most = []
    for text, images in zip(queries, found, strict=True):
        shares = rarity.shares(text, [said[image] for image in images])
        most.append([image for image, share in zip(images, shares, strict=True) if share >= MOST_OF])
    rare = [any(frequency[word] < RARE for word in words_of(text)) for text in queries]
    plans: dict[str, Callable[[int], Sequence[int]]] = {
        "vectors": lambda q: ranked[q].tolist(),
        "full text": lambda q: found[q],
        "both, any word": lambda q: _both(ranked[q], found[q]),
        f"both, any word, if one stands in < {RARE}": lambda q: _both(ranked[q], found[q] if rare[q] else []),
        "both, most of the words": lambda q: _both(ranked[q], most[q]),
    }
    print(f"{'ranked by':<40} {'R@1':>6} {'R@10':>6} {'nDCG@10':>8} {'described R@10':>15} {'others R@10':>12}")
    for name, plan in plans.items():
        ranks = np.array([_rank(plan(q), target) for q, target in enumerate(targets)])
        has = described[list(targets)]
        gain = np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0).mean()
        parts = [100 * np.mean(ranks[chosen] <= 10) if chosen.any() else float("nan") for chosen in (has, ~has)]
        print(
            f"{name:<40} {100 * np.mean(ranks <= 1):>6.1f} {100 * np.mean(ranks <= 10):>6.1f} {100 * gain:>8.1f}"
            f" {parts[0]:>15.1f} {parts[1]:>12.1f}"
        )


def duplicates(model: DualEncoder, data: ImageCaptions, copies: int = 200) -> None:
    """Cosines of pictures with altered copies of themselves, and with the nearest other picture."""
    pictures = unit_rows(model.encode_image(data.pictures).vectors)
    levels = (0.90, 0.95, 0.98, 0.99)
    print(f"{'copy':<28} {'median cosine':>13} " + " ".join(f"{f'% >= {one}':>10}" for one in levels))

    def line(name: str, cosines: NDArray[np.float32]) -> None:
        shares = " ".join(f"{100 * np.mean(cosines >= one):>10.1f}" for one in levels)
        print(f"{name:<28} {np.median(cosines):>13.3f} {shares}")

    chosen = np.random.default_rng(0).permutation(len(data))[:copies]
    for name, alter in _ALTERED.items():
        encoded = model.encode_image([alter(Image.open(data.paths[image]).convert("RGB")) for image in chosen])
        line(name, (unit_rows(encoded.vectors) * pictures[chosen]).sum(axis=1))
    nearest = np.concatenate(list(_nearest(pictures)))
    line("(the nearest other picture)", nearest)


def costs(model: DualEncoder, index: Index, queries: int = 60) -> None:
    """Texts are captions of the index and one to four words of others, encoded before; no text is searched twice.

    Then filters that are misspelt, each in an index that was just opened, as the first and the second of it.
    """
    rng = np.random.default_rng(0)
    drawn = list(islice(index.captions(), 200_000))
    parts = "words", "folding", "the end"
    kinds: dict[str, tuple[str, ...]] = {"vectors": (), **{f"and {one}": (one,) for one in parts}, "and all": parts}
    chosen = rng.choice(len(drawn), min(len(drawn), len(kinds) * queries), replace=False)
    texts = [_cut(drawn[at], rng) if place % 2 else drawn[at] for place, at in enumerate(chosen.tolist())]
    searcher = Searcher(index, model)
    for text in texts[:3]:
        searcher.search(text)
    vectors = searcher.encode_texts(list(dict.fromkeys(texts)))
    print(f"{len(index):,} pictures; ms of processor of a search by text, without encoding it")
    for place, (name, used) in enumerate(kinds.items()):
        options = SearchOptions(
            words="auto" if "words" in used else "off", fold_duplicates="folding" in used, end="the end" in used
        )
        own = texts[place :: len(kinds)]
        begun = time.process_time()
        for text in own:
            searcher.search(text, options=options, vectors=vectors)
        print(f"{name:<16} {1000 * (time.process_time() - begun) / len(own):>8.1f}")
    index = Index.open(index.folder) if index.folder is not None else index
    for name in ("the first misspelt filter", "the next"):
        begun = time.process_time()
        with contextlib.suppress(UserError):
            index.understood(parse_where("foldre == 'a'"))
        print(f"{name:<26} {1000 * (time.process_time() - begun):>8.1f}")


def _cut(text: str, rng: np.random.Generator) -> str:
    """One to four words of a text that follow each other."""
    words = text.split()
    many = int(rng.integers(1, 5))
    first = int(rng.integers(0, max(1, len(words) - many)))
    return " ".join(words[first : first + many])


def _jpeg(picture: Image.Image, quality: int = 90) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return file.getvalue()


_ALTERED: dict[str, Callable[[Image.Image], bytes]] = {
    "JPEG of quality 90": _jpeg,
    "JPEG of quality 60": lambda picture: _jpeg(picture, 60),
    "3/4 of the size": lambda picture: _jpeg(picture.resize((picture.width * 3 // 4, picture.height * 3 // 4))),
    "5 % brighter": lambda picture: _jpeg(picture.point(lambda value: min(255, int(value * 1.05)))),
    "1 % cut off on each side": lambda picture: _jpeg(
        picture.crop(
            (picture.width // 100, picture.height // 100, picture.width * 99 // 100, picture.height * 99 // 100)
        )
    ),
}


def _nearest(rows: NDArray[np.float32], block: int = 1000) -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(rows), block):
        cosines = rows[start : start + block] @ rows.T
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1
        yield cosines.max(axis=1)


def _shows(data: ImageCaptions, names: set[str]) -> NDArray[np.bool_]:
    """Which pictures a caption says to show it."""
    return np.array(
        [any(names & set(words_of(data.captions[one])) for one in captions) for captions in data.captions_of_image]
    )


def _both(ranked: NDArray[np.int64], found: Sequence[int]) -> list[int]:
    first = [str(one) for one in ranked[:POOL]]
    joined = [int(one) for one in fused([first, [str(one) for one in found]])]
    return joined + [one for one in ranked[POOL:].tolist() if one not in set(found)]


def _rank(ranking: Sequence[int], target: int) -> int:
    places = np.flatnonzero(np.asarray(ranking) == target)
    return int(places[0]) + 1 if places.size else 10**9


if __name__ == "__main__":
    main()
