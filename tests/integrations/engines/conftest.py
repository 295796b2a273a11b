"""One small collection of vectors, which every engine holds."""

from typing import NamedTuple

import numpy as np
import pytest

from rungwise.quality import Engine


class Held(NamedTuple):
    """Vectors and ids that an engine holds."""

    ids: list[str]
    vectors: np.ndarray

    def expected(self, query: np.ndarray, k: int, metric: str = "cosine") -> tuple[list[str], list[float]]:
        """Ids and similarities of the k nearest, one product at a time."""
        scores = []
        for row in self.vectors.tolist():
            product = sum(a * b for a, b in zip(row, query.tolist(), strict=True))
            distance = sum((a - b) ** 2 for a, b in zip(row, query.tolist(), strict=True))
            length = np.linalg.norm(row) * np.linalg.norm(query)
            scores.append({"cosine": product / length, "inner": product, "l2": -distance}[metric])
        best = sorted(range(len(scores)), key=lambda place: -scores[place])[:k]
        return [self.ids[place] for place in best], [scores[place] for place in best]

    def check(self, engine: Engine, metric: str = "cosine", unit: str = "") -> None:
        """Ask a few queries and compare."""
        assert engine.count() == len(self.ids)
        for query in np.random.default_rng(1).normal(size=(5, self.vectors.shape[1])).astype(np.float32):
            ids, scores = self.expected(query, 7, metric)
            found, values = engine.search(query, 7)
            assert list(found) == ids
            if unit == "root":
                scores = [-((-score) ** 0.5) for score in scores]
            np.testing.assert_allclose(values, scores, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="session")
def held() -> Held:
    vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    return Held([f"photo {number}.jpg" for number in range(60)], vectors)
