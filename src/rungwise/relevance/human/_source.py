"""People's judgements of how well a caption describes an image: CrissCrossed Captions, ECCV Caption, Flickr8K, any CSV.

Judgements name images and captions by ids; they are found in a collection by these, an image also by its file's name
without folder and ending or by the number that ends it, since COCO's annotations call ``COCO_val2014_000000391895.jpg``
just 391895. What is not in the collection is counted and listed in ``issues``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.data import ImageCaptions, Issue
from rungwise.relevance._base import Degrees, Positions
from rungwise.relevance.human._alignment import is_of_people, place_judgements
from rungwise.relevance.human._ids import Finder, read_id_lists
from rungwise.relevance.human._judgement_tables import JudgementRow, read_graded
from rungwise.relevance.human._rows import LARGEST_GRADE


class HumanJudgements(Degrees):
    """R by people: the grade of each judged pair, NaN where no one was asked.

    Several judgements of a pair are averaged. Grades keep the scale they come in: 0..5 in CxC, 1..4 from Flickr8K's
    experts, 0..1 from its crowd.

    Args:
        images: Positions of the judged pairs' images.
        captions: Positions of the judged pairs' captions.
        grades: Grades of the judged pairs; as an attribute (n,) float32, one for each of ``pairs``.
        shape: (images, captions) of the whole matrix.
        closed_images: Images of which every caption was judged: a pair of theirs that is not listed is 0 and not NaN.
        closed_captions: Captions of which every image was judged, likewise.
        image_of_caption: (captions,) the position of each caption's image, where it is known.
        issues: Judgements that were left out.

    Attributes:
        pairs: (n, 2) ascending positions (image, caption) of the judged pairs.

    >>> human = HumanJudgements([0, 1, 1], [0, 0, 0], [4.0, 1.0, 2.0], (2, 2))
    >>> human.dense()
    array([[4. , nan],
           [1.5, nan]], dtype=float32)
    """

    def __init__(
        self,
        images: ArrayLike,
        captions: ArrayLike,
        grades: ArrayLike,
        shape: tuple[int, int],
        *,
        closed_images: ArrayLike = (),
        closed_captions: ArrayLike = (),
        image_of_caption: ArrayLike | None = None,
        issues: Iterable[Issue] = (),
    ) -> None:
        super().__init__(shape)
        self.image_of_caption = None if image_of_caption is None else np.asarray(image_of_caption, np.int64)
        rows, columns = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        values = np.asarray(grades, np.float64)
        if not rows.shape == columns.shape == values.shape or rows.ndim != 1:
            raise UserError(
                f"human judgements: {rows.shape} images, {columns.shape} captions and {values.shape} grades do not fit;"
                " give one of each a judgement"
            )
        for what, positions, count in (("image", rows, shape[0]), ("caption", columns, shape[1])):
            if positions.size and not 0 <= positions.min() <= positions.max() < count:
                raise UserError(
                    f"human judgements: {what} positions run {positions.min()}..{positions.max()} but there are {count}"
                )
        usable = np.abs(values) <= LARGEST_GRADE
        if not usable.all():
            raise UserError(f"human judgements: grade {int(np.argmin(usable))} is no finite number of 32 bits")
        keys, place, counts = np.unique(rows * shape[1] + columns, return_inverse=True, return_counts=True)
        self._keys = keys
        self.pairs: Positions = np.stack(np.divmod(keys, max(1, shape[1])), axis=1)
        sums = np.bincount(place, weights=values, minlength=len(keys))
        self.grades: NDArray[np.float32] = (sums / counts).astype(np.float32)
        self.issues = tuple(issues)
        self._closed_images, self._closed_captions = np.zeros(shape[0], np.bool_), np.zeros(shape[1], np.bool_)
        self._closed_images[np.asarray(closed_images, np.int64)] = True
        self._closed_captions[np.asarray(closed_captions, np.int64)] = True
        self.complete = bool(self._closed_images.all() or self._closed_captions.all())

    @classmethod
    def read(cls, path: Path | str, data: ImageCaptions) -> HumanJudgements:
        r"""Read one file of judgements, whose layout is known by its content.

        * Flickr8K's ``ExpertAnnotations.txt`` (Hodosh et al. 2013): the mean of three experts' grades, 1..4; and its
          ``CrowdFlowerAnnotations.txt``: the share of people who said yes, 0..1. A pair without votes becomes an issue.
        * CrissCrossed Captions' ``sits_*.csv`` (Parekh et al. 2021), means of 0..5, and any CSV or TSV with columns
          ``image``, ``caption`` (ids, perhaps with a prefix that ends with a colon) and a grade: ``grade``,
          ``agg_score``, ``score``, ``rating`` or ``relevance``.
        * A judgement file as ``rungwise grade`` writes it (grades 1 to 4), or the grades of an index (0 to 1), of which
          those count that were given to a caption of the collection.

        Raises:
            UserError: If the file cannot be read, a column is missing, a line has another form (it is named), none of
                the judgements is of this collection, or most are of captions with another text.

        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "renamed.txt"
        >>> _ = file.write_text("a.jpg\ta.jpg#0\t4\t4\t3\n")
        >>> HumanJudgements.read(file, ImageCaptions(("a.jpg",), ("a dog",), np.array([0]))).grades.round(2)
        array([3.67], dtype=float32)
        """
        if is_of_people(Path(path)):
            placed = place_judgements(Path(path), data)
            shape = (len(data.image_ids), len(data.captions))
            owners, issues = data.image_of_caption, placed.issues
            return cls(placed.images, placed.captions, placed.grades, shape, image_of_caption=owners, issues=issues)
        return cls._found(Path(path), read_graded(Path(path)), data)

    @classmethod
    def eccv(cls, image_to_caption: Path | str, caption_to_image: Path | str, data: ImageCaptions) -> HumanJudgements:
        """ECCV Caption's positives (Chun et al. 2022), or CxC's in the same layout: 1, and 0 for others of a query.

        The benchmark counts the whole gallery as checked for every query that a file names, so its other pairs are 0;
        pairs of an image and a caption that both are no query are NaN.

        Args:
            image_to_caption: JSON ``{image id: [caption ids]}``.
            caption_to_image: JSON ``{caption id: [image ids]}``.
            data: COCO's images with their ``sentid`` as caption ids.
        """
        by_image, by_caption = Path(image_to_caption), Path(caption_to_image)
        of_images, of_captions = read_id_lists(by_image), read_id_lists(by_caption)
        listed = [(f"{by_image}, {key!r}", key, other, 1.0) for key, others in of_images.items() for other in others]
        listed += [
            (f"{by_caption}, {key!r}", other, key, 1.0) for key, others in of_captions.items() for other in others
        ]
        image_of, caption_of = Finder(data.image_ids), Finder(data.caption_ids)
        closed_images = [at for key in of_images if (at := image_of(key)) is not None]
        closed_captions = [at for key in of_captions if (at := caption_of(key)) is not None]
        return cls._found(by_image, listed, data, closed_images, closed_captions)

    @classmethod
    def _found(
        cls,
        path: Path,
        judgements: Iterable[JudgementRow],
        data: ImageCaptions,
        closed_images: ArrayLike = (),
        closed_captions: ArrayLike = (),
    ) -> HumanJudgements:
        image_of, caption_of = Finder(data.image_ids), Finder(data.caption_ids)
        images, captions, grades, issues = [], [], [], []
        for where, image_id, caption_id, grade in judgements:
            image, caption = image_of(image_id), caption_of(caption_id)
            if image is None:
                issues.append(Issue("judgement of an unknown image", where, repr(image_id)))
            elif caption is None:
                issues.append(Issue("judgement of an unknown caption", where, repr(caption_id)))
            elif grade is None:
                issues.append(Issue("judgement without votes", where, f"{image_id!r} with {caption_id!r}"))
            else:
                images.append(image)
                captions.append(caption)
                grades.append(grade)
        if not grades:
            first = f", such as {issues[0].detail} ({issues[0].where})" if issues else ""
            raise UserError(
                f"{path}: none of its {len(issues)} judgements is of {data.name}{first};"
                " give the collection that was judged, with its ids"
            )
        shape = (len(data.image_ids), len(data.captions))
        return cls(
            images,
            captions,
            grades,
            shape,
            closed_images=closed_images,
            closed_captions=closed_captions,
            image_of_caption=data.image_of_caption,
            issues=issues,
        )

    @property
    def own(self) -> NDArray[np.bool_]:
        """(n,) bool, the caption of each judged pair was written for its image; False where that is not known."""
        if self.image_of_caption is None:
            return np.zeros(len(self.pairs), np.bool_)
        return np.asarray(self.image_of_caption[self.pairs[:, 1]] == self.pairs[:, 0])

    def known_pairs(self) -> Positions | None:
        """The judged pairs; None where other pairs of a checked gallery are known to be 0."""
        return None if self._closed_images.any() or self._closed_captions.any() else self.pairs

    def options(self) -> Mapping[str, Any]:
        """Empty: the judgements alone decide the degrees."""
        return {}

    def hashed(self) -> Iterator[bytes]:
        """Pairs, grades, and the items whose every pair was judged."""
        for array in (self._keys, self.grades, self._closed_images, self._closed_captions):
            yield np.ascontiguousarray(array).tobytes()

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) float32 grades; NaN where no one was asked."""
        rows, columns = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        closed = self._closed_images[rows][:, None] | self._closed_captions[columns][None, :]
        out = np.where(closed, np.float32(0), np.float32(np.nan))
        if len(self._keys):
            keys = rows[:, None] * self.shape[1] + columns[None, :]
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            out = np.where(self._keys[place] == keys, self.grades[place], out)
        return out
