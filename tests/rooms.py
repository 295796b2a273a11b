"""The rooms, which may import which, and what to test after a change. Needs nothing installed: start.py reads it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]

FLOORS = (
    "_exports",
    "core",
    "parts",
    "similarity",
    "losses",
    "metrics",
    "calibration",
    "data",
    "language",
    "relevance",
    "scenes",
    "encoders",
    "models",
    "evaluation",
    "training",
    "runs",
    "doctor",
    "index",
    "quality",
    "planning",
    "serving",
    "model_server",
    "grading",
    "demo",
    "integrations",
    "jobs",
    "cli",
    "__main__",
    "",  # the package itself, which nothing below may import
)
"""Rooms from the ground up; a room imports from lower ones only."""

APART = {
    "metrics": {"similarity", "losses"},
    "calibration": {"similarity", "losses"},
    "data": {"similarity", "losses", "metrics", "calibration"},
    "language": {"similarity", "losses", "metrics", "calibration", "data"},
    "relevance": {"losses", "metrics", "calibration"},
    "scenes": {"similarity", "losses", "metrics", "calibration"},
    "encoders": {"losses", "metrics", "calibration", "relevance", "scenes"},
    "models": {"losses", "metrics", "relevance", "scenes"},
    "evaluation": {"losses", "scenes", "encoders", "models"},
    "doctor": {"losses", "metrics", "calibration", "similarity", "evaluation"},
    "index": {"losses", "metrics", "relevance", "scenes", "encoders", "evaluation", "training", "runs"} | {"doctor"},
    "quality": {"losses", "scenes", "encoders", "training", "runs", "doctor"},
    "planning": {"losses", "metrics", "calibration", "language", "relevance", "scenes", "encoders", "evaluation"}
    | {"training", "runs", "doctor", "quality"},
    "serving": {"losses", "metrics", "relevance", "scenes", "encoders", "evaluation", "training", "runs", "doctor"}
    | {"quality", "planning"},
}
"""Lower rooms that are none of a room's business."""

INSIDE: dict[str, tuple[str, ...]] = {
    "calibration": (
        "judgement", "false_discovery", "logistic", "null_distribution", "rung_names", "unrelated", "f1_cut",
        "kind_comparison", "learning", "baselines", "json_file", "calibration", "list_ends", "training_queries",
    ),
    "cli": (
        "frame", "demo", "evaluate", "examine", "grade", "index", "models", "results", "serve", "train", "calibrate",
        "relevance", "search",
    ),
    "core": (
        "correlation", "digests", "errors", "output", "version", "checks", "compute", "limits", "network", "text",
        "untrusted_files", "configuration", "disk", "formats",
    ),
    "data": (
        "columns", "files", "collection", "layouts", "from_memory", "sidecars", "pictures", "splits", "inspection",
        "labelled", "scored_pairs", "folders", "own_readers", "readers",
    ),
    "encoders": (
        "fine_tuning", "heads", "precision", "preprocessing", "row_cache", "vocabulary", "sides", "untrusted",
        "feature_sides", "images", "pretrained", "texts",
    ),
    "encoders.pretrained": (
        "model_source", "patches", "towers", "weights", "preprocessing", "transformers", "open_clip",
        "sentence_transformers", "halves", "sides",
    ),
    "evaluation": (
        "inputs", "protocols", "sharding", "statistics", "judgements", "evaluation_settings", "result",
        "comparison", "evaluate", "tables", "analysis", "report", "benchmarks",
    ),
    "index": (
        "filters", "stores", "items", "query", "ranking", "answers", "update", "layout", "reader", "index", "cutoff",
        "maintenance", "search", "searcher",
    ),
    "index.stores.lance": (
        "version_file", "rows", "filters", "tables", "description", "table_rows", "mapped", "column_counts",
        "engine_search", "snapshot", "table_reader", "table_writer", "foreign", "store",
    ),
    "index.stores": (
        "addresses", "approximation", "bm25", "column_counts", "id_sampling", "vector_files", "base", "candidates",
        "engine_rows", "scan", "exact", "lance", "milvus", "factory",
    ),
    "integrations": (
        "list_cutter", "mteb", "search_place", "engines", "torchmetrics", "lightning", "trec", "sentence_transformers",
        "langchain", "llama_index", "haystack", "lancedb", "mcp",
    ),
    "jobs": (
        "terminal", "python_values", "options", "job", "models", "load", "sources", "evaluation", "training",
        "index", "searches", "calibration", "results", "studies",
    ),
    "language": (
        "model_folders", "scene_graphs", "tokenisers", "phrases", "word_vectors", "sentence_models", "stemming",
        "pair_models",
    ),
    "models": (
        "contracts", "average", "io", "lazy_model", "training_pairs", "resident_rows", "encoder_pair", "dual_encoder",
        "export", "joint", "loading", "regions", "subspace", "card_evaluation",
    ),
    "models.regions": (
        "batch_norm", "boxes", "caption_head", "config", "base", "region_reasoning", "self_attention", "alignment",
        "consensus", "scan", "vsrn",
    ),
    "models.subspace": (
        "classes", "eigenproblems", "settings", "heads", "views", "base", "methods",
    ),
    "quality": ("queries", "degrees", "check", "against", "tuning", "typed_queries"),
    "relevance": (
        "storage", "base", "caption_pairs", "captions", "human", "array", "lexical", "embedding", "precomputed",
        "scene_graph", "description", "combine", "config", "agreement",
    ),
    "runs": ("results", "finished_run", "seeds", "systems", "table_rows", "verification", "curves", "study"),
    "serving": (
        "limits", "metrics", "pages", "queues", "schemas", "access", "client", "state", "searches", "common_app",
        "workload", "routes", "app", "server",
    ),
    "training": (
        "batches", "run_folder", "distributed", "steps", "config", "pair_models", "tracking", "engine", "fit",
        "stages",
    ),
}  # fmt: skip
"""Rooms with rooms of their own: their entries from the ground up; an entry imports from earlier ones only.

A new one that none of these imports needs no place.
"""

BESIDE = {
    "configs": {"training"},  # which reads them
    "page": {"serving"},
    "deploy": {"serving", "cli"},
    "documents": set(FLOORS),  # whose commands and names the pages show
    "hostile": set(FLOORS),
}
"""Folders that are no floor: what they stand on, or belong to."""


def allowed(room: str) -> set[str]:
    """Other rooms that a room may import."""
    return set(FLOORS[: FLOORS.index(room)]) - APART.get(room, set()) - {""}


def with_those_above(rooms: set[str]) -> set[str]:
    """These rooms and all that may come to import them, through other rooms too."""
    found = set(rooms)
    for room in FLOORS:  # from the ground up, so that one pass finds what stands on what was found
        if room and allowed(room) & found:
            found.add(room)
    return found | {room for room, below in BESIDE.items() if below & found}


def rooms() -> set[str]:
    """Names of rooms: folders of the package and of the tests."""
    folders = [*(ROOT / "src" / "rungwise").iterdir(), *(ROOT / "tests").iterdir()]
    return {one.name for one in folders if one.is_dir() and not one.name.startswith((".", "_"))}


def files_of(chosen: set[str]) -> list[str]:
    """What pytest is given for some rooms: their tests, their doctests, and the tests beside the rooms."""
    folders = [ROOT / part / room for room in sorted(chosen) for part in ("tests", "src/rungwise")]
    beside = sorted((ROOT / "tests").glob("test_*.py"))
    return [str(one.relative_to(ROOT)) for one in [*folders, *beside] if one.exists()]


def changed(since: str) -> set[str] | None:
    """Rooms that differ from a commit, with those that may import them; None where a change concerns all rooms.

    Raises:
        subprocess.CalledProcessError: Git does not know the commit, or this is no clone.
    """
    touched: set[str] = set()
    for path in differing(since):
        parts = Path(path).parts
        inner = parts[2:] if parts[:2] == ("src", "rungwise") else parts[1:]
        if parts[0] in ("benchmarks", ".ci"):
            continue  # the tests beside the rooms read these, and always run
        if parts[0] == "docs" or path.endswith(".md"):
            touched.add("documents")
            continue
        if parts[0] == "deploy":
            touched.add("deploy")
            continue
        if parts[0] not in ("src", "tests"):
            return None  # the project's own settings
        if len(inner) > 1:
            touched.add(inner[0])
        elif not inner[0].startswith("test_"):
            return None  # what all tests share, or the package itself
    return with_those_above(touched | {"training"} if "configs" in touched else touched)


def files_of_the_tree() -> list[str]:
    """Paths of what is there and git follows, or would follow, sorted.

    Raises:
        OSError: There is no git.
        subprocess.CalledProcessError: This is no clone.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    return sorted(name for name in map(os.fsdecode, listed) if name and (ROOT / name).exists())


def differing(since: str) -> list[str]:
    """Paths of what git follows and differs, and of what it does not follow yet."""
    found = []
    for command in (
        ["diff", "--name-only", "--no-renames", since, "--"],
        ["ls-files", "--others", "--exclude-standard"],
    ):
        run = subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True)
        found += run.stdout.splitlines()
    return found
