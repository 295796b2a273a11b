from ._tables import COUNTS as COUNTS
from ._tables import FILES as FILES
from ._tables import Tables as Tables
