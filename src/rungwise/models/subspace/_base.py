"""Common parts of fitted methods: two sides, a fit of their heads, and the settings that all of them take.

A method derives from :class:`Subspace`, names its configuration, and answers :meth:`Subspace.solve` from
:class:`~rungwise.models.subspace.Views`. Vectors are centred projections, compared by their cosine.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.core import UserError, from_plain
from rungwise.data import Issue
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig, ReadFeatures, TextFeatureConfig
from rungwise.models._contracts import EncodedImages, Pictures, Progress, Texts, Vectors
from rungwise.models._dual_encoder import TwoTower
from rungwise.models._encoder_pair import config_for_data, freeze_encoders, image_features, text_features
from rungwise.models._training_pairs import ImageInputs, Pairs
from rungwise.models.io import ModelFolder
from rungwise.models.subspace._classes import Classes, Labels
from rungwise.models.subspace._heads import Centred, KernelRows, Roots
from rungwise.models.subspace._settings import Fitted, Gaussian, SubspaceConfig
from rungwise.models.subspace._views import Directions, Positions, ViewRows, Views

_PARTS = ("backbone", "text_encoder", "image_projection", "text_projection")


class Subspace(TwoTower):
    """A dual encoder whose heads are fitted to features with class labels, not trained in steps.

    Attributes:
        reads_labels: Whether the method reads class labels at all.
        needs_labels: Whether items without a label are left out of the whole fit.
        issues: Items that the last fit left out.
    """

    is_fitted: ClassVar[bool] = True
    reads_labels: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True
    issues: tuple[Issue, ...] = ()

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "config_type" in vars(cls):  # help and documentation show what the method can be told
            asked = inspect.signature(cls.config_type).parameters.values()
            named = [one.replace(kind=one.KEYWORD_ONLY) for one in asked if one.name not in ("kind", "fitted")]
            cls.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]

    def __init__(self, config: SubspaceConfig | None = None, **settings: Any) -> None:
        """Make a method that is not fitted yet.

        ``config`` holds all settings; without it, they are given by name, such as ``dimension=10``.
        """
        super().__init__(self._configured(settings) if config is None else config)

    @classmethod
    def _configured(cls, settings: Mapping[str, Any]) -> Any:
        """A configuration from a program's values: names stand for kernels, and numpy's numbers are allowed."""
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
        return from_plain(cls.config_type, plain, cls.__name__)

    def __getattr__(self, name: str) -> Any:
        if name in _PARTS and name not in self._modules:
            raise _not_fitted(self.kind)
        return super().__getattr__(name)

    @abstractmethod
    def solve(self, views: Views) -> Directions:
        """The directions of both views, in the bases of :meth:`Views.blocks`.

        ``views`` holds only labelled items where :attr:`needs_labels`.

        Raises:
            UserError: If the items are too few or of too few classes.
        """

    @classmethod
    def create(cls, config: Any, captions: Sequence[str] | FeatureRows, features: FeatureRows | None = None) -> Self:
        """A model with its sides, whose heads :meth:`fit_views` fits.

        Where the collection has rows of features, they stand in for the encoders.

        Args:
            config: Configuration of the method.
            captions: Captions of the training split, from which a vocabulary is learnt.
            features: Rows that stand for pictures, where the collection has such.

        Raises:
            UserError: If an encoder cannot be loaded, or is one that is trained.
        """
        text = config.text
        if isinstance(captions, FeatureRows) and not isinstance(text, TextFeatureConfig):
            text = TextFeatureConfig(l2_normalise=text.l2_normalise)
        model = cls(config_for_data(replace(config, text=text, fitted=None), captions, features))
        for name, side in (("image", model.config.image), ("text", model.config.text)):
            if not side.frozen:
                raise UserError(
                    f"model.{name}: {side.kind} is trained, and a fitted model reads encoders that stay as they are;"
                    f" take {'a frozen backbone' if name == 'image' else 'transformer or bag_of_words'}, or features"
                )
        model.backbone = model.config.image.build()
        model.text_encoder = model.config.text.build(captions, model.config.dimension)
        freeze_encoders(model)
        return model

    @classmethod
    def restore(cls, config: Any, folder: ModelFolder) -> Self:
        """Read a fitted model from its folder: the encoders, and heads of the sizes that ``fitted`` names."""
        found = config.fitted
        if found is None:
            raise UserError(f"{folder.path}: model.fitted is missing in config.json; copy the folder anew")
        model = cls(config)
        model.backbone = config.image.restore(folder)
        model.text_encoder = config.text.restore(folder, config.dimension)
        widths = model.backbone.features, model.text_encoder.width
        model.image_projection, model.text_projection = (
            nn.Sequential(
                *_lift(config.roots, KernelRows(landmarks, width) if landmarks else None),
                *model.blank_head(landmarks or width, found),
            )
            for width, landmarks in zip(widths, (found.image_landmarks, found.text_landmarks), strict=True)
        )
        freeze_encoders(model)
        return model

    def fit(self, image_features: Any, text_features: Any, labels: Labels | None = None) -> Self:
        """Fit both heads to rows of features.

        Args:
            image_features: (n, D_i) array or rows of files.
            text_features: (n, D_t) array or rows of files; row k is of the same item as row k of the images.
            labels: (n,) labels, several as tuples, or an (n, classes) array of 0 and 1. None, NaN, an empty text, an
                empty tuple and a row of zeros mean that an item has no label; such items are left out of what reads
                labels, and stand in :attr:`issues`.

        Raises:
            UserError: If shapes do not go together, a number is not finite, or there are too few items or classes.
        """
        image, text = as_rows(image_features, "image_features"), as_rows(text_features, "text_features")
        if len(text.shape) != 2:
            raise UserError(f"text_features: rows of shape {text.shape[1:]}; give (n, D) numbers, a row for each item")
        own = self.config
        if not (isinstance(own.image, FeatureConfig) and isinstance(own.text, TextFeatureConfig)):
            raise UserError("fit takes rows of features, and a side of this model is an encoder; use rungwise train")
        if len(image) != len(text):
            raise UserError(
                f"image_features has {len(image)} rows and text_features has {len(text)}; give one of each for an item"
            )
        sides = replace(own.image, width=image.shape[-1]), replace(own.text, width=text.shape[-1])
        self.config = replace(own, image=sides[0], text=sides[1], fitted=None)
        self.backbone, self.text_encoder = sides[0].build(), sides[1].build(text, own.dimension)
        everything = np.arange(len(image))
        return self.fit_views(self._views(ReadFeatures(image), ReadFeatures(text), everything, labels))

    def views_of(self, pairs: Pairs) -> Views:
        """Both sides of a collection as :meth:`fit_views` reads them; several fits may share them.

        An image stands once for each of its captions, which have its labels. ``pairs`` comes from :meth:`read`.
        """
        assert pairs.text_rows is not None, "both sides are frozen"
        labels = [pairs.data.labels[image] for image in pairs.images.tolist()] if any(pairs.data.labels) else None
        of_captions = labels and [labels[image] for image in pairs.image.tolist()]
        return self._views(pairs.rows, pairs.text_rows, pairs.image, of_captions)

    def told(self, **settings: Any) -> Self:
        """The same encoders, not fitted yet, with other settings by name, such as ``regularisation=0.1``."""
        other = type(self)(self.told_of(self.config, settings))
        other.backbone, other.text_encoder = self.backbone, self.text_encoder
        return other

    @classmethod
    def told_of(cls, config: Any, settings: Mapping[str, Any]) -> Any:
        """A configuration with other settings by name, of a model that is not fitted yet."""
        return cls._configured({**vars(config), "fitted": None, **settings})

    def fit_views(self, views: Views) -> Self:
        """Fit both heads to views that this model gave, or one with the same encoders and lift."""
        own = views
        self.issues = ()
        if views.has_classes:
            missing = int((~views.classes.labelled).sum())
            if missing:
                where = f"{missing} of {len(views)} items"
                self.issues = (Issue("no label", where, f"left out of what {self.kind} reads of labels"),)
        if self.needs_labels:
            own = views.labelled
            _check_count(self.kind, len(own), "items with a label")
        for name, spread in (("image", own.moments.image), ("text", own.moments.text)):
            if not np.trace(spread) > 0:
                raise UserError(f"{name} features do not vary: every row is the same; give some that tell items apart")
        heads = self.heads(own.reduced(self.config.pca))
        first = heads[0][0]
        assert isinstance(first, Centred)
        device = next((one.device for one in self.backbone.parameters()), None)
        for name, view, head in zip(("image", "text"), (views.image, views.text), heads, strict=True):
            setattr(self, f"{name}_projection", nn.Sequential(*copy.deepcopy(view.lift), *head).to(device))
        marks = [_landmarks(view) for view in (views.image, views.text)]
        classes = own.classes if own.has_classes else None
        self.config = replace(
            self.config,
            fitted=Fitted(
                int(first.directions.shape[1]),
                () if classes is None else classes.names,
                classes is None or classes.are_single,
                *marks,
            ),
        )
        return self.eval()

    def heads(self, views: Views) -> tuple[Sequence[nn.Module], Sequence[nn.Module]]:
        """The fitted modules behind the lift of each side."""
        image, text = centred(views, _scaled(views, self.solve(views)))
        return (image,), (text,)

    def blank_head(self, width: int, found: Fitted) -> Sequence[nn.Module]:
        """One of :meth:`heads` without numbers, to be filled from a folder; ``width`` is that of lifted rows."""
        return (Centred(width, found.components),)

    @property
    def device(self) -> torch.device:
        """The device of the fitted numbers."""
        if self.config.fitted is None and next(self.parameters(), None) is None:
            raise _not_fitted(self.kind)
        return super().device

    @property
    def dimension(self) -> int:
        """Width of the common space, at most the one asked for."""
        if self.config.fitted is None:
            raise _not_fitted(self.kind)
        return int(self.config.fitted.components)

    def encode_image(
        self, pictures: Any, *, progress: Progress | None = None, cache: Path | None = None, batch: int = 64
    ) -> EncodedImages:
        """Vectors of picture files, of pictures in memory, or of rows of features, an (n, D_i) array among them."""
        rows: Pictures = as_rows(pictures, "image features") if hasattr(pictures, "__array__") else pictures
        return super().encode_image(rows, progress=progress, cache=cache, batch=batch)

    def encode_text(self, texts: Any, *, batch: int = 256) -> Vectors:
        """(n, dimension) vectors of captions or queries, or of rows of features, an (n, D_t) array among them."""
        rows: Texts = as_rows(texts, "text features") if hasattr(texts, "__array__") else texts
        return super().encode_text(rows, batch=batch)

    def _views(self, image: ImageInputs, text: ImageInputs, image_of_item: Positions, labels: Labels | None) -> Views:
        classes = None if labels is None else Classes.of(labels)
        items = len(image_of_item)
        _check_count(self.kind, items, "items")
        if classes is not None and len(classes) != items:
            raise UserError(f"labels: {len(classes)} of them for {items} rows of features; give one for each")

        def of_images(items: Positions) -> Tensor:
            return image_features(self, image.take(image_of_item[items]))

        def of_texts(items: Positions) -> Tensor:
            return text_features(self, text.take(items))

        sides = (of_images, self.backbone.features), (of_texts, self.text_encoder.width)
        first, second = (self._view(rows, width, items) for rows, width in sides)
        return Views(first, second, np.arange(items), classes)

    def _view(self, rows: Callable[[Positions], Tensor], width: int, items: int) -> ViewRows:
        """One side with its lift; the kernel's landmarks are drawn from the items."""
        view = ViewRows(rows, width, nn.Sequential(*_lift(self.config.roots, None)))
        kernel = self.config.kernel
        if not isinstance(kernel, Gaussian):
            return view
        drawn = np.random.default_rng(kernel.seed).permutation(items)[: kernel.landmarks]
        mapped = KernelRows.fitted(view.read(np.sort(drawn)), kernel)
        return ViewRows(rows, len(drawn), nn.Sequential(*_lift(self.config.roots, mapped)))


def _not_fitted(kind: str) -> UserError:
    return UserError(f"a model of kind {kind!r} that is not fitted yet; call fit first")


def _check_count(kind: str, items: int, what: str) -> None:
    if items < 2:
        raise UserError(f"{kind} is fitted to at least two {what}, got {items}; give more")


def _lift(roots: bool, mapped: KernelRows | None) -> list[nn.Module]:
    """The modules before centring: square roots and the kernel's map, where asked for."""
    return [*([Roots()] if roots else []), *([mapped] if mapped is not None else [])]


def centred(views: Views, found: Directions) -> tuple[Centred, Centred]:
    """Heads that centre rows and project them on the directions, which are given in the bases of ``views``."""
    sides: list[NDArray[np.float64]] = [found.image, found.text]
    if views.bases is not None:
        sides = [basis @ side for basis, side in zip(views.bases, sides, strict=True)]
    return Centred.fitted(views.means[0], sides[0]), Centred.fitted(views.means[1], sides[1])


def _scaled(views: Views, found: Directions) -> Directions:
    """Directions with the same cosines, scaled to projections of about length 1: float32 would lose very small ones."""
    sides = (found.image, views.moments.image), (found.text, views.moments.text)
    sizes = [math.sqrt(float(np.vdot(side, spread @ side))) or 1.0 for side, spread in sides]
    return Directions(found.image / sizes[0], found.text / sizes[1])


def as_rows(features: Any, what: str) -> FeatureRows:
    """Rows of features from an (n, D) or (n, regions, D) array; rows of features are passed through."""
    if isinstance(features, FeatureRows):
        return features
    try:
        array = np.asarray(features)
    except ValueError:
        raise UserError(f"{what}: rows of several lengths; give (n, D) numbers, a row for each item") from None
    if array.dtype.kind in "biu":
        array = array.astype(np.float32)
    if array.ndim not in (2, 3) or array.dtype.kind != "f":
        raise UserError(
            f"{what}: an array of shape {array.shape} and type {array.dtype}; give (n, D) numbers, a row for each item"
        )
    return FeatureRows(array)


def _landmarks(view: ViewRows) -> int:
    return next((len(one.landmarks) for one in view.lift if isinstance(one, KernelRows)), 0)
