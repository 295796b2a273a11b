from ._store import MilvusStore as MilvusStore
