"""Tiny random models in the layouts that open_clip, transformers and sentence-transformers publish, and pictures."""

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

CAPTIONS = (
    "a dog runs over the grass",
    "Two men in a red BOAT, high above the sea!",
    "die Katze schläft auf dem Sofa " * 4,  # longer than any of these models reads
    "x",
    "一只狗在跑 zebra & it's 5% of #them",
)


def photos() -> list[bytes]:
    """JPEG and PNG files of shapes that are resized and cropped by odd numbers of pixels."""
    files = []
    for number, (height, width) in enumerate([(75, 50), (53, 97), (320, 480), (31, 200), (64, 64)]):
        rows, columns = np.mgrid[:height, :width].astype(float)
        waves = [np.sin(rows / (3 + number)) * np.cos(columns / (5 + channel)) for channel in range(3)]
        noise = np.random.default_rng(number).normal(0, 30, (height, width, 3))
        pixels = np.clip(np.stack(waves, axis=-1) * 90 + 128 + noise, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG" if number % 2 else "JPEG")
        files.append(file.getvalue())
    return files


def opened(files: list[bytes]) -> list[Image.Image]:
    """Pictures as the libraries take them."""
    return [Image.open(io.BytesIO(file)).convert("RGB") for file in files]


class Published:
    """Folders of models, each made when it is first asked for; copy one before it is changed.

    Attributes:
        home: Where they are.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        pytest.importorskip("transformers")

    @cached_property
    def clip(self) -> Path:
        """CLIP of transformers, its files as the hub has them."""
        import transformers

        folder, tokenizer = self.home / "clip", _clip_tokenizer()
        config = transformers.CLIPConfig(
            text_config=_tower(
                vocab_size=len(tokenizer),
                max_position_embeddings=16,
                bos_token_id=tokenizer.bos_token_id,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=tokenizer.pad_token_id,
            ),
            vision_config=_tower(image_size=32, patch_size=8),
            projection_dim=24,
        )
        with _same_weights():
            transformers.CLIPModel(config).save_pretrained(folder)
        seen = transformers.CLIPImageProcessor(size={"shortest_edge": 37}, crop_size={"height": 32, "width": 32})
        seen.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    @cached_property
    def siglip2(self) -> Path:
        """SigLIP 2 at a fixed resolution, with one file for the whole processor as transformers 5 writes it."""
        import transformers

        folder, tokenizer = self.home / "siglip2", _gemma_tokenizer()
        config = transformers.SiglipConfig(
            text_config=_tower(
                vocab_size=len(tokenizer), max_position_embeddings=16, pad_token_id=0, eos_token_id=1, bos_token_id=2
            ),
            vision_config=_tower(image_size=48, patch_size=8),
        )
        with _same_weights():
            transformers.SiglipModel(config).save_pretrained(folder)
        seen = transformers.SiglipImageProcessor(size={"height": 48, "width": 48})
        transformers.SiglipProcessor(seen, tokenizer).save_pretrained(folder)
        return folder

    @cached_property
    def naflex(self) -> Path:
        """SigLIP 2 for pictures of any size."""
        import transformers

        folder, tokenizer = self.home / "naflex", _gemma_tokenizer()
        config = transformers.Siglip2Config(
            text_config=_tower(
                vocab_size=len(tokenizer), max_position_embeddings=16, pad_token_id=0, eos_token_id=1, bos_token_id=2
            ),
            vision_config=_tower(num_patches=16, patch_size=16),
        )
        with _same_weights():
            transformers.Siglip2Model(config).save_pretrained(folder)
        transformers.Siglip2ImageProcessor(patch_size=16, max_num_patches=256).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    @cached_property
    def open_clip(self) -> Path:
        """A model of open_clip with its own tokenizer."""
        towers = {
            "embed_dim": 24,
            "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
            "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
        }
        return self._open_clip("open_clip", towers, {"mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]})

    @cached_property
    def open_clip_siglip(self) -> Path:
        """SigLIP 2 for open_clip: a tower of timm, and a tokenizer of transformers."""
        towers = {
            "embed_dim": 64,
            "init_logit_bias": -10,
            "custom_text": True,
            "vision_cfg": {
                "image_size": 32, "timm_model_name": "test_vit", "timm_pool": "", "timm_proj": "linear",
                "timm_model_pretrained": False,
            },
            "text_cfg": {
                "context_length": 16, "vocab_size": len(_gemma_tokenizer()),
                "hf_tokenizer_name": "timm/ViT-B-32-SigLIP2", "tokenizer_kwargs": {"clean": "canonicalize"},
                "width": 32, "heads": 2, "layers": 1,
                "no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6},
                "act_kwargs": {"approximate": "tanh"},
            },
        }  # fmt: skip
        seen = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}
        folder = self._open_clip("open_clip_siglip", towers, seen)
        _gemma_tokenizer().save_pretrained(folder)
        return folder

    @cached_property
    def open_clip_roberta(self) -> Path:
        """A text tower of transformers in a model of open_clip; its sizes stand in ``roberta`` beside it."""
        import transformers

        tokenizer = _roberta_tokenizer()
        shape = _tower(vocab_size=len(tokenizer), max_position_embeddings=40, pad_token_id=1, bos_token_id=0)
        transformers.XLMRobertaConfig(**shape, eos_token_id=2, type_vocab_size=1).save_pretrained(self.home / "roberta")
        towers = {
            "embed_dim": 24,
            "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 8},
            "text_cfg": {
                "hf_model_name": str(self.home / "roberta"), "hf_tokenizer_name": "xlm-roberta-base",
                "hf_model_pretrained": False, "hf_proj_type": "mlp", "hf_pooler_type": "mean_pooler",
                "context_length": 16,
            },
        }  # fmt: skip
        seen = {"mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]}
        folder = self._open_clip("open_clip_roberta", towers, seen)
        tokenizer.save_pretrained(folder)
        return folder

    @cached_property
    def sentence(self) -> Path:
        """As sentence-transformers saves a CLIP now."""
        pytest.importorskip("sentence_transformers")
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Transformer

        folder = self.home / "sentence"
        SentenceTransformer(modules=[Transformer(str(self.clip))]).save_pretrained(str(folder))
        return folder

    @cached_property
    def old_sentence(self) -> Path:
        """As clip-ViT-B-32 lies on the hub: a module in a folder of its own, under the name that it had."""
        folder = self.home / "old_sentence"
        shutil.copytree(self.clip, folder / "0_CLIPModel")
        module = {"idx": 0, "name": "0", "path": "0_CLIPModel", "type": "sentence_transformers.models.CLIPModel"}
        (folder / "modules.json").write_text(json.dumps([module]))
        return folder

    def _open_clip(self, name: str, towers: dict[str, Any], seen: dict[str, Any]) -> Path:
        open_clip = pytest.importorskip("open_clip")
        import torch
        from safetensors.torch import save_file

        folder = self.home / name
        folder.mkdir()
        (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": towers, "preprocess_cfg": seen}))
        custom = towers.get("custom_text") or "hf_model_name" in towers["text_cfg"]
        family = open_clip.CustomTextCLIP if custom else open_clip.CLIP
        with _same_weights():
            model = family(**{key: value for key, value in towers.items() if key != "custom_text"})
            for weight in model.parameters():
                if weight.ndim > 1:
                    torch.nn.init.normal_(weight, std=0.1)
        tensors = {key: value.contiguous() for key, value in model.state_dict().items()}
        save_file(tensors, folder / "open_clip_model.safetensors")
        return folder


@contextmanager
def _same_weights() -> Iterator[None]:
    """Within it, a model is drawn alike whatever was drawn before, and what is drawn after does not change."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def _tower(**settings: Any) -> dict[str, Any]:
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    return {**shape, **settings}


def _clip_tokenizer() -> Any:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=560, end_of_word_suffix="</w>", initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(CAPTIONS, trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    words = dict.fromkeys([*learned["vocab"], *(f"{letter}</w>" for letter in letters)])
    numbered = {word: number for number, word in enumerate([*words, "<|startoftext|>", "<|endoftext|>"])}
    merges = [tuple(one) for one in learned["merges"]]
    return transformers.CLIPTokenizer(vocab=numbered, merges=merges, model_max_length=16)


def _gemma_tokenizer() -> Any:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([caption.lower() for caption in CAPTIONS], trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    return transformers.Siglip2Tokenizer(
        vocab=learned["vocab"],
        merges=[tuple(one) for one in learned["merges"]],
        padding_side="right",
        add_bos_token=False,
        add_eos_token=True,
        model_max_length=16,
        model_input_names=["input_ids"],
    )


def _roberta_tokenizer() -> Any:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CAPTIONS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )
