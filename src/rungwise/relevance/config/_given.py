"""Configurations of the sources whose degrees were given by people: labels and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.relevance._base import Degrees
from rungwise.relevance.config._base import Building, SourceConfig
from rungwise.relevance.human import Degree


@dataclass(frozen=True)
class LabelsConfig(SourceConfig):
    """Class labels in common.

    Attributes:
        degree: 1 where a label is shared (any), or shared labels by labels of either (jaccard).
    """

    kind: Literal["labels"] = field(default="labels", init=False)
    degree: Degree = "any"

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.human import Labels

        if not data.labels:
            raise UserError(f"{data.name}: has no class labels; give a table with a column 'label' or 'labels'")
        return Labels(data.labels, data.image_of_caption, degree=self.degree)


@dataclass(frozen=True)
class HumanConfig(SourceConfig):
    """People's judgements.

    Attributes:
        judgements: CSV of image, caption, grade (CxC's too), Flickr8K's judgements under any name, what "rungwise
            grade" wrote, the grades of an index, or ECCV Caption's two JSON files, image-to-caption first.
    """

    NEEDS: ClassVar[Mapping[str, str]] = {"judgements": "a CSV, Flickr8K's file, or ECCV Caption's two JSON files"}
    kind: Literal["human"] = field(default="human", init=False)
    judgements: tuple[Path, ...] = ()

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.human import HumanJudgements

        match self.judgements:
            case (file,):
                return HumanJudgements.read(file, data)
            case (by_image, by_caption):
                return HumanJudgements.eccv(by_image, by_caption, data)
        raise UserError(
            f"human: {len(self.judgements)} files under {building.option('judgements')}; give one, or ECCV Caption's"
            " two JSON files"
        )
