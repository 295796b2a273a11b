"""The model card that every saved model carries."""

from __future__ import annotations

from typing import Any

import yaml


def model_card(facts: dict[str, Any]) -> str:
    """Markdown with a YAML header, as model hubs read it.

    Args:
        facts: About the model's make-up, data, training and results; printed as they are given.

    >>> "similarity: cosine" in model_card({"model": {"kind": "vse", "similarity": "cosine"}, "data": "scenes"})
    True
    """
    header = yaml.safe_dump(
        {
            "library_name": "rungwise",
            "pipeline_tag": "image-feature-extraction",
            "tags": ["image-text-retrieval"],
        }
    )
    return f"""---
{header}---

# Image-text retrieval model

Scores how well texts fit images. Made with rungwise:

```python
from pathlib import Path
from rungwise.models import load

model = load("this folder")
scores = model.block([Path("picture.jpg")], ["two dogs running through snow"])
```

Rankings reflect the training data: its language, its subjects, and its blind spots.

```yaml
{yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)}```
"""
