"""Makes the data of the studies that ask where degrees help, in studies/made/: nothing of it is committed.

    cd studies; python make_data.py

* ``one-caption``: Flickr8K with one caption for each training picture, the one that is most like a caption of another
  training picture by tf-idf.
* ``shuffled-10``, ``-30``, ``-50``: Flickr8K with that percentage of the training captions dealt anew among
  themselves, so that they stand beside wrong pictures. Validation and test captions stay.
* ``pictures.npz``: a vector of each picture of Flickr8K by the frozen backbone of the studies.
* ``scenes-1``, ``-5``, ``-25``: generated scenes of which so many neighbouring training pictures show the same things.
* ``noisy-1``, ``-5``, ``-25``: exact degrees of their training pictures with noise of a standard deviation of 0.2.

Pictures, splits and people's grades are links to the published folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import timm
import torch
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from safetensors.torch import load_file
from sklearn.feature_extraction.text import TfidfVectorizer

from rungwise.core import digest_of_parts
from rungwise.data import read
from rungwise.relevance import Degrees
from rungwise.relevance.embedding import write_picture_vectors
from rungwise.scenes import SceneConfig, generate, own_degrees

STUDIES = Path(__file__).parent
PUBLISHED, MADE = STUDIES / "data" / "flickr8k", STUDIES / "made"
TOKENS = "Flickr8k.token.txt"
SHARES, GROUPS = (10, 30, 50), (1, 5, 25)
PICTURES, SEED, NOISE = 4000, 0, 0.2


def captions() -> list[tuple[str, str, str]]:
    """Picture, number and text of each published caption."""
    lines = (PUBLISHED / "Flickr8k_text" / TOKENS).read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        name, text = line.split("\t", 1)
        picture, number = name.rsplit("#", 1)
        found.append((picture, number, text))
    return found


def training_pictures() -> set[str]:
    """Names of the pictures of the training split."""
    return set((PUBLISHED / "Flickr8k_text" / "Flickr_8k.trainImages.txt").read_text(encoding="utf-8").split())


def write(name: str, texts: Mapping[tuple[str, str], str]) -> None:
    """A folder in the layout of Flickr8K with these captions, everything else being links."""
    folder = MADE / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "Flickr8k_text").mkdir(parents=True)
    (folder / "Flicker8k_Dataset").symlink_to((PUBLISHED / "Flicker8k_Dataset").resolve())
    for path in (PUBLISHED / "Flickr8k_text").iterdir():
        if path.name != TOKENS:
            (folder / "Flickr8k_text" / path.name).symlink_to(path.resolve())
    lines = [f"{picture}#{number}\t{text}\n" for (picture, number), text in texts.items()]
    (folder / "Flickr8k_text" / TOKENS).write_text("".join(lines), encoding="utf-8")
    print(f"{folder}: {len(lines):,} captions")


def one_caption() -> None:
    """One caption of each training picture: the one with the nearest caption of another training picture."""
    every, trained = captions(), training_pictures()
    own = [one for one in every if one[0] in trained]
    vectors = TfidfVectorizer().fit_transform([text for _, _, text in own])
    pictures = np.array([picture for picture, _, _ in own])
    nearest = np.empty(len(own))
    for begin in range(0, len(own), 2000):
        block = (vectors[begin : begin + 2000] @ vectors.T).toarray()
        block[pictures[begin : begin + 2000, None] == pictures] = -1.0
        nearest[begin : begin + 2000] = block.max(axis=1)
    best: dict[str, int] = {}
    for at, (picture, _, _) in enumerate(own):
        if picture not in best or nearest[at] > nearest[best[picture]]:
            best[picture] = at
    chosen = {own[at][:2] for at in best.values()}
    write("one-caption", {one[:2]: one[2] for one in every if one[0] not in trained or one[:2] in chosen})


def shuffled(percent: int) -> None:
    """A share of the training captions in another order, so that none of them stands beside its own picture."""
    every, trained = captions(), training_pictures()
    places = [at for at, one in enumerate(every) if one[0] in trained]
    draw = np.random.default_rng(percent)
    moved = draw.permutation(places)[: round(len(places) * percent / 100)]
    # Each takes the text of the next one around a circle, in which neighbours are of different pictures.
    circle = sorted(moved.tolist(), key=lambda at: int(every[at][1]))
    texts = {one[:2]: one[2] for one in every}
    for at, other in zip(circle, [*circle[1:], circle[0]], strict=True):
        texts[every[at][:2]] = every[other][2]
    wrong = sum(every[at][0] != every[other][0] for at, other in zip(circle, [*circle[1:], circle[0]], strict=True))
    print(f"{wrong:,} of {len(places):,} training captions stand beside another picture")
    write(f"shuffled-{percent}", texts)


def pictures() -> None:
    """A vector of each picture by MobileNetV2, as its weights want pictures."""
    weights = STUDIES / "data" / "weights" / "mobilenetv2_100_imagenet.safetensors"
    network = timm.create_model("mobilenetv2_100", pad_type="same", num_classes=0)
    network.load_state_dict({name: value for name, value in load_file(weights).items() if "classifier" not in name})
    network.eval().to(memory_format=torch.channels_last)
    data = read(PUBLISHED)
    vectors = []
    for begin in range(0, len(data), 64):
        paths = [PUBLISHED / "Flicker8k_Dataset" / name for name in data.image_ids[begin : begin + 64]]
        pixels = np.stack([np.asarray(Image.open(path).convert("RGB").resize((224, 224))) for path in paths])
        batch = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1
        with torch.inference_mode():
            vectors.append(network(batch.to(memory_format=torch.channels_last)).numpy())
    path = MADE / "pictures.npz"
    write_picture_vectors(path, np.concatenate(vectors), digest_of_parts([weights.name]), data.image_ids)
    print(f"{path}: {len(data):,} vectors")


class NoisyDegrees(Degrees):
    """Degrees with normal noise that follows from a seed, within 0..1.

    Args:
        exact: The degrees.
        seed: Seed of the noise.
    """

    def __init__(self, exact: Degrees, seed: int) -> None:
        super().__init__(exact.shape)
        self.image_of_caption, self.captions_hash, self._seed = exact.image_of_caption, exact.captions_hash, seed
        noise = np.random.default_rng(seed).normal(0.0, NOISE, exact.shape)
        self._matrix = (exact.dense() + noise).clip(0, 1).astype(np.float32)

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) degrees."""
        return self._matrix[np.ix_(*self.positions(images, captions))]

    def options(self) -> dict[str, float]:
        """Deviation and seed of the noise."""
        return {"noise": NOISE, "seed": self._seed}


def noisy(group: int) -> None:
    """Exact degrees of the training scenes with noise."""
    data = read(MADE / f"scenes-{group}").split("train")
    exact = own_degrees(MADE / f"scenes-{group}", data)
    assert exact is not None
    folder = MADE / f"noisy-{group}"
    shutil.rmtree(folder, ignore_errors=True)
    NoisyDegrees(exact, group).save(folder)
    print(f"{folder}: degrees of {len(data):,} scenes")


def main() -> None:
    """Make all of them."""
    one_caption()
    for percent in SHARES:
        shuffled(percent)
    pictures()
    for group in GROUPS:
        folder = MADE / f"scenes-{group}"
        generate(folder, SceneConfig(pictures=PICTURES, alike=group, seed=SEED))
        print(f"{folder}: {PICTURES:,} scenes")
        noisy(group)


if __name__ == "__main__":
    main()
