from ._local_search import Found as Found
from ._local_search import found as found
from ._local_search import open_index as open_index
from ._local_search import search as search
from ._options import Search as Search
from ._options import check as check
from ._server_search import Served as Served
from ._server_search import ask_server as ask_server
