from ._features import CAPTIONED as CAPTIONED
from ._fitting import FEWEST_QUERIES as FEWEST_QUERIES
from ._fitting import checked_pairs as checked_pairs
from ._fitting import learn as learn
from ._supervised import Supervised as Supervised
