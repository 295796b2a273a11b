"""A Milvus server for tests, started from its package, with ports of its own."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from tests.ports import free_ports, held


class LocalMilvus:
    """A standalone server, which can be stopped and started again with what it holds."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        from milvus import MilvusServer, MilvusServerConfig

        config = MilvusServerConfig()
        # Left to itself the package counts up from its usual ports: two servers that start at once would find the same.
        names = [name for name in config.configurable_items if name.endswith("_port")]
        peer, web, *ports = free_ports(2 + len(names))
        config.update(**dict(zip(names, ports, strict=True)))
        # And it would move a server that comes again to the next port, as long as the system remembers connections.
        config.try_bind_port = held
        self.port, client = config.configs["proxy_port"], config.configs["etcd_port"]
        config.set("proxy.timeTickInterval", 50)  # what was written is seen by others after as many milliseconds
        for name, value in settings.items():
            config.set(name, value)
        # The server would take port 2380 for its etcd in any case, which lets one of them run on a machine.
        etcd = folder / "etcd.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        etcd.write_text(
            f"name: default\ndata-dir: {folder}/etcd\n"
            f"listen-client-urls: http://127.0.0.1:{client}\nadvertise-client-urls: http://127.0.0.1:{client}\n"
            f"listen-peer-urls: http://127.0.0.1:{peer}\ninitial-advertise-peer-urls: http://127.0.0.1:{peer}\n"
            f"initial-cluster: default=http://127.0.0.1:{peer}\n"
        )
        self._etcd = etcd
        self._server = MilvusServer(config)
        self._server.set_base_dir(str(folder))
        self._server.webservice_port = web
        self._server.show_startup_banner = False
        self._server.wait_for_started = False  # the package gives up after three minutes

    def start(self) -> None:
        before = os.environ.get("ETCD_CONFIG_PATH")
        os.environ["ETCD_CONFIG_PATH"] = str(self._etcd)
        try:
            with redirect_stdout(StringIO()):
                self._server.start()
                self._server.wait_started(timeout=math.inf)
        finally:
            if before is None:
                del os.environ["ETCD_CONFIG_PATH"]
            else:
                os.environ["ETCD_CONFIG_PATH"] = before

    def stop(self) -> None:
        if (process := self._server.server_proc) is None:
            return  # it has not started
        with suppress(subprocess.TimeoutExpired):  # of the package, for a server that it has killed
            self._server.stop()
        process.wait()
        self._server.stop()  # closes its files where the first call gave up

    @property
    def process(self) -> int:
        return int(self._server.server_proc.pid)

    @property
    def address(self) -> str:
        return f"milvus://127.0.0.1:{self.port}"


@contextmanager
def local_milvus(folder: Path, **settings: Any) -> Iterator[LocalMilvus]:
    server = LocalMilvus(folder, **settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()
