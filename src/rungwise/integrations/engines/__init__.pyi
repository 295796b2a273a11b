from ._address import ENGINES as ENGINES
from ._address import open_engine as open_engine
from ._elasticsearch import ElasticsearchEngine as ElasticsearchEngine
from ._elasticsearch import OpenSearchEngine as OpenSearchEngine
from ._faiss import FaissEngine as FaissEngine
from ._lancedb import LanceDBEngine as LanceDBEngine
from ._pgvector import PgvectorEngine as PgvectorEngine
from ._qdrant import QdrantEngine as QdrantEngine
