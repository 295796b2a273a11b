from ._mcp_server import INSTRUCTIONS as INSTRUCTIONS
from ._mcp_server import PATH as PATH
from ._mcp_server import SearchServer as SearchServer
from ._mcp_server import create_mcp_app as create_mcp_app
from ._mcp_server import local_client as local_client
from ._mcp_tools import MOST_PREVIEWS as MOST_PREVIEWS
