from ._compare import Compare as Compare
from ._compare import compare as compare
from ._compare import compared_results as compared_results
from ._table import Table as Table
from ._table import made_table as made_table
from ._table import table as table
