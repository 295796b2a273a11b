from ._foreign_table import ForeignTable as ForeignTable
from ._no_rows import NoRows as NoRows
