from ._options import Search as Search
from ._options import check as check
from ._search import Found as Found
from ._search import found as found
from ._search import open_index as open_index
from ._search import search as search
