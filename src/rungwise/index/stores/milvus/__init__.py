"""The Milvus store, on a server that several processes share."""
