from ._cache import HEADER as HEADER
from ._cache import CachedSource as CachedSource
from ._cache import KeptFolder as KeptFolder
