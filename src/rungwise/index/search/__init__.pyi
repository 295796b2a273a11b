from ._fusion import MOST_OF as MOST_OF
from ._fusion import fused as fused
from ._pipeline import groups_of as groups_of
from ._reranking import reranked as reranked
from ._state_cache import StateCache as StateCache
