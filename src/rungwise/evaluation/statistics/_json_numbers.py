"""Numbers of results in JSON, where NaN is null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, WrapValidator

IN_FILE = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)
"""Value for ``__pydantic_config__`` of a dataclass that a file holds: types are checked strictly."""

Number = Annotated[float, WrapValidator(lambda value, read: math.nan if value is None else read(value))]
"""Number of a file; NaN where the file says null."""


def as_json(value: Any) -> Any:
    """Plain values for JSON: dataclasses as mappings of their public fields, NaN as None.

    >>> as_json({"i2t/R@1": math.nan, "gallery": (3, 4)})
    {'i2t/R@1': None, 'gallery': [3, 4]}
    """
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value) if not one.name.startswith("_")}
    return value
