"""Make a user of Milvus for rungwise, with no more rights than it needs.

    MILVUS_TOKEN=root:Milvus python deploy/milvus_user.py milvus://HOST:19530 rungwise PASSWORD
    MILVUS_TOKEN=root:Milvus python deploy/milvus_user.py milvus://HOST:19530 reader PASSWORD --read-only

The user who indexes may make, fill and remove collections; one who searches and serves may only read them. A server
without authorization ignores users: switch it on (common.security.authorizationEnabled: true), and give root another
password first.
"""

from __future__ import annotations

READ = {
    "Global": ["DescribeCollection", "DescribeAlias", "ShowCollections"],
    "Collection": ["Load", "GetLoadState", "Query", "Search"],
}
"""Rights by kind of object, for whoever searches and serves."""
WRITE = {
    "Global": ["CreateCollection", "DropCollection", "CreateAlias", "DropAlias", "ListAliases"],
    "Collection": ["Insert", "Upsert", "Delete", "Flush", "CreateIndex", "IndexDetail"],
}
"""Further rights, for whoever indexes."""
