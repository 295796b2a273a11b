from ._segments import DESCRIPTION as DESCRIPTION
from ._store import ExactStore as ExactStore
