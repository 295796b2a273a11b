from ._config import AnyImageSide as AnyImageSide
from ._config import AnyTextSide as AnyTextSide
from ._config import VSEConfig as VSEConfig
from ._initialisation import as_it_is as as_it_is
from ._initialisation import with_new_heads as with_new_heads
from ._initialisation import with_weights_that_fit as with_weights_that_fit
from ._joint_embedding import JointEmbedding as JointEmbedding
from ._vsepp import import_vsepp as import_vsepp
