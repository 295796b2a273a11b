"""Make a user of Milvus for rungwise, with no more rights than it needs.

    MILVUS_TOKEN=root:PASSWORD python deploy/milvus_user.py HOST:19530 indexer
    MILVUS_TOKEN=root:PASSWORD python deploy/milvus_user.py HOST:19530 searcher --read-only

It asks for the password of the new user, or takes it from the variable NEW_PASSWORD; rungwise then gets
MILVUS_TOKEN=indexer:PASSWORD. Who indexes may make, fill and remove collections; who searches and serves may only read
them. Rights count a few seconds after they were granted.

A server without authorization asks nobody for a password: switch it on (common.security.authorizationEnabled: true, or
COMMON_SECURITY_AUTHORIZATIONENABLED=true in the environment of its container), and give root another password than
Milvus, with which it comes.
"""

from __future__ import annotations

import argparse
import getpass
import os

from pymilvus import MilvusClient

READ = {"Global": ("DescribeCollection", "DescribeAlias"), "Collection": ("Load", "Query", "Search")}
"""Rights by kind of object, for whoever searches and serves."""
WRITE = {
    "Global": ("ShowCollections", "CreateCollection", "DropCollection", "CreateAlias"),
    "Collection": ("Insert", "Upsert", "Delete", "Flush", "GetFlushState", "CreateIndex", "IndexDetail"),
}
"""Further rights, for whoever indexes."""


def make_user(client: MilvusClient, name: str, password: str, rights: list[dict[str, tuple[str, ...]]]) -> None:
    """Make a user, and a role of the same name with these rights; those that are there stay."""
    if name not in client.list_users():
        client.create_user(name, password)
    if name not in client.list_roles():
        client.create_role(name)
    for one in rights:
        for kind, some in one.items():
            for right in some:
                client.grant_privilege(name, kind, right, "*")
    client.grant_role(name, name)


def main() -> None:
    """Make the user that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", metavar="HOST:PORT")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--read-only", action="store_true")
    asked = parser.parse_args()
    password = os.environ.get("NEW_PASSWORD") or getpass.getpass(f"password of {asked.name}: ")
    scheme = "https" if os.environ.get("MILVUS_TLS") else "http"
    client = MilvusClient(uri=f"{scheme}://{asked.server}", token=os.environ.get("MILVUS_TOKEN", ""))
    make_user(client, asked.name, password, [READ] if asked.read_only else [READ, WRITE])
    print(f"{asked.name}: may {'read' if asked.read_only else 'read and write'}")


if __name__ == "__main__":
    main()
