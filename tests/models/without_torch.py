"""Searches with an exported model in a process that cannot import torch; run by tests, prints what was found.

Arguments: folders of the exported model, of pictures, and for the index.
"""

import sys
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

BARRED = ("torch", "torchvision", "timm", "transformers", "open_clip", "sentence_transformers")


class Without:
    """Another finder, which does not find what an exported model does without."""

    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):  # such as find_distributions
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in BARRED else self.finder.find_spec(name, path, target)


def main(model: str, pictures: str, folder: str) -> None:
    from fastapi.testclient import TestClient

    from rungwise.cli import main as command
    from rungwise.index import Index
    from rungwise.model_server import create_model_app
    from rungwise.models import load_dual_encoder
    from rungwise.serving import create_app

    first = str(sorted(Path(pictures).iterdir())[0])
    for words in (
        ("inspect", pictures),
        ("index", pictures, "--model", model, "--out", folder),
        ("search", folder, "a red square", "--k", "3", "--all"),
        ("search", folder, "--image", first, "--k", "2", "--all"),
        ("verify", folder),
        ("verify", model),
    ):
        print("$", words[0], flush=True)
        if code := command(words):
            sys.exit(code)
    page = TestClient(create_app(Index.open(Path(folder)), load_dual_encoder(model)))
    answers = (
        page.get("/search", params={"q": "blue", "k": 2}),
        page.post("/pictures", content=Path(first).read_bytes()),
        page.get(f"/images/{quote(Path(first).name)}", params={"thumb": 32}),
    )
    for answer in answers:
        print(answer.status_code, answer.headers["content-type"], len(answer.content))
    served = TestClient(create_model_app(load_dual_encoder(model)))
    for one in ("a red square", {"image": f"data:;base64,{b64encode(Path(first).read_bytes()).decode()}"}):
        answer = served.post("/v1/embeddings", json={"input": one})
        print(answer.status_code, answer.headers["content-type"], len(answer.json()["data"][0]["embedding"]))
    print("barred and loaded:", sorted(set(BARRED) & set(sys.modules)))


if __name__ == "__main__":
    sys.meta_path[:] = map(Without, sys.meta_path)
    main(*sys.argv[1:])
