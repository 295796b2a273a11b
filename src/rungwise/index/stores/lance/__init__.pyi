from ._foreign_table import ForeignTable as ForeignTable
from ._foreign_table import NoRows as NoRows
from ._tables import Tables as Tables
from ._version_file import COUNTS as COUNTS
from ._version_file import FILES as FILES
