"""The LanceDB store, in a folder or in an object store."""
