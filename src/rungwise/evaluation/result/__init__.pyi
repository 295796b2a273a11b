from ._compact_result import compact_result as compact_result
from ._compact_result import of_compact as of_compact
from ._result import FORMAT as FORMAT
from ._result import Reranking as Reranking
from ._result import Result as Result
from ._result import verify as verify
