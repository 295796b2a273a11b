from ._base import first_kept as first_kept
from ._base import in_half as in_half
