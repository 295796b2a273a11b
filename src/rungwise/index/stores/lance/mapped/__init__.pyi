from ._mapped_files import UNIT as UNIT
from ._mapped_files import MappedFiles as MappedFiles
from ._mapped_files import write_files as write_files
from ._mapped_rows import MappedRows as MappedRows
from ._memory import Held as Held
from ._memory import Listed as Listed
from ._memory import StreamedTable as StreamedTable
