"""The model card that every saved model carries."""

from __future__ import annotations

from typing import Any

import yaml

from rungwise.core.configuration import to_plain
from rungwise.encoders.preprocessing import Preprocessing
from rungwise.models.config import ModelConfig


def model_card(config: ModelConfig, preprocessing: Preprocessing, provenance: dict[str, Any]) -> str:
    """Markdown with a YAML header, as model hubs read it.

    Args:
        config: The model's make-up.
        preprocessing: What its pictures go through.
        provenance: Facts about data, training and results, printed as they are given.

    >>> "cosine" in model_card(ModelConfig(), Preprocessing(), {"data": "scenes"})
    True
    """
    header = yaml.safe_dump(
        {
            "library_name": "rungwise",
            "pipeline_tag": "image-feature-extraction",
            "tags": ["image-text-retrieval"],
        }
    )
    facts = {"model": to_plain(config), "preprocessing": to_plain(preprocessing), **provenance}
    return f"""---
{header}---

# Joint image-text embedding

Images and captions in one space of {config.dimension} dimensions, compared by {config.similarity}. Made with rungwise:

```python
from rungwise.models import load

model = load("this folder")
vectors = model.encode_text(["two dogs running through snow"])
```

Rankings reflect the training data: its language, its subjects, and its blind spots.

```yaml
{yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)}```
"""
