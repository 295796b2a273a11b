from ._standard import SHARE_OF_BEST as SHARE_OF_BEST
from ._standard import UNJUDGED_BOUNDARIES as UNJUDGED_BOUNDARIES
from ._standard import Standard as Standard
from ._standard import checked_unrelated as checked_unrelated
from ._unrelated_texts import OTHER_UNRELATED as OTHER_UNRELATED
from ._unrelated_texts import UNRELATED as UNRELATED
from ._unrelated_texts import UNRELATED_PHRASES as UNRELATED_PHRASES
