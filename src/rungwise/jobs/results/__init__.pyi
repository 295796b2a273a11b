from ._compare import Compare as Compare
from ._compare import compare as compare
from ._compare import compared_results as compared_results
from ._result_tables import TableOptions as TableOptions
from ._result_tables import made_table as made_table
from ._result_tables import table as table
