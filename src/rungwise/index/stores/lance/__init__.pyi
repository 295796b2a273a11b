from ._tables import Tables as Tables
from ._version_file import COUNTS as COUNTS
from ._version_file import FILES as FILES
