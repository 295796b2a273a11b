"""What papers print of a system's settings, beside what its presets do.

``printed_settings.csv`` has a line for each setting that a paper prints: paper, method, name, value and place. Here is
what becomes of each line: a setting of the presets that stand for rows of that method, or a reason why there is none.
What no paper prints, and the presets choose, stands at the end.
"""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rungwise.evaluation.tables import PAPERS, TODAY, matching
from rungwise.training.config import Preset, TrainConfig, presets

PRINTED = Path(__file__).with_name("printed_settings.csv")
TITLES = {"vsepp": "VSE++", "ladder_loss": "Ladder loss", "sam": "SAM", "cmal2r": "CMAL2R", "convse": "ConVSE"}
assert set(TITLES) == set(PAPERS) - {TODAY}

Value = Callable[[Preset], Any]


def stages(preset: Preset) -> dict[str, TrainConfig]:
    """Configurations of a preset's stages by name; one without stages is its own ``base``."""
    config = preset.config
    assert isinstance(config, TrainConfig)
    return dict(config.stage_configs()) or {"base": config}


def at(path: str, stage: str = "") -> Value:
    """Value of a setting by its path, in a stage by name, else in the last one."""

    def value(preset: Preset) -> Any:
        found: Any = stages(preset).get(stage) if stage else list(stages(preset).values())[-1]
        for name in path.split("."):
            found = getattr(found, name, None)
        return getattr(found, "kind", found)

    return value


def both(*values: Value) -> Value:
    """Several settings together."""
    return lambda preset: tuple(value(preset) for value in values)


def of_row(value: Value, paper: str, fact: str, meaning: Callable[[str], Any], usual: Any) -> Value:
    """Whether a setting is what each row says that a preset stands for, and the usual one where a row says nothing."""

    def agrees(preset: Preset) -> bool:
        rows = [row.facts for one in preset.reproduces if one["paper"] == paper for row in matching(one)]
        found = value(preset)
        return all(found == (meaning(row[fact]) if row.get(fact) else usual) for row in rows)

    return agrees


@dataclass(frozen=True)
class Line:
    """What becomes of a printed line, or of a choice that no paper prints.

    Attributes:
        ours: Words for what the presets do.
        value: Setting of a preset; None where no setting is meant, and ``ours`` says why.
        wanted: Printed values of the setting; a preset with another one must declare it.
        declared: Words that the assumptions of a preset hold where it does not do as printed.
        program: Words for what the authors' program does, where that is known and differs.
        systems: Systems that are meant, where these are not all that stand for a row of the method.
        papers: Words for what the papers say of a choice that their lists of settings leave out.
    """

    ours: str
    value: Value | None = None
    wanted: tuple[Any, ...] = ()
    declared: str = ""
    program: str = ""
    systems: tuple[str, ...] = ()
    papers: str = "nothing"


def elsewhere(why: str, program: str = "") -> Line:
    """A line that no preset could set."""
    return Line(why, program=program)


def choice(ours: str, declared: str, program: str = "", systems: tuple[str, ...] = (), papers: str = "nothing") -> Line:
    """A choice that no single setting shows, and that every preset declares."""
    return Line(ours, lambda _: None, ("printed",), declared, program, systems, papers)


VSE = ("vsepp", "vse0", "uvs", "order0", "orderpp")
CONVSE = ("convse", "convsepp", "mvn")
DATA = "pictures are the data's own; which split, and how many are in it, is printed when training begins"
MEASURE = "a measure, not a setting: "
RV = at("data.join_restval", "base")
RATES = both(at("learning_rates", "base"), at("epochs", "base"))
IMAGE = "model.image."

BACKBONES = {"VGG19": "vgg19.tv_in1k", "ResNet152": "resnet152.tv_in1k"}
CROPS = {"1C": None, "RC": "RC", "RC+rV": "RC", "10C+rV": "10C"}
SAMPLING = {"RS": "random", "HN": "hardest", "SN": "softest"}
YES = "yes"

RESULT = "a result of the authors' model, which is not published"


def with_restval(preset: Preset) -> bool:
    """Whether COCO's restval pictures train, too."""
    return preset.dataset != "coco" or RV(preset)


def cascade_threshold(preset: Preset) -> float | None:
    """Degree from which the cascade of a preset asks its model of pairs; None without a cascade."""
    relevance = preset.settings["data"]["relevance"]
    return relevance["threshold"] if isinstance(relevance, dict) else None


def all_epochs(preset: Preset) -> int:
    """Number of epochs of the first stage, at all of its rates."""
    return sum(at("epochs", "base")(preset))


def as_many_rungs(preset: Preset) -> bool:
    """Whether as many rungs weigh something as the rows say."""
    rungs = sum(weight > 0 for weight in at("loss.weights")(preset))
    return all(int(row["L"]) == rungs for row in preset.reproduces if "L" in row)


def third_threshold(preset: Preset) -> bool:
    """Whether a ladder of three rungs has the paper's second threshold."""
    return len(at("loss.margins")(preset)) < 3 or at("loss.thresholds")(preset)[1:] == (0.56,)


def bounds(preset: Preset) -> tuple[float, ...]:
    """What cuts the rungs of a ladder: shares of the candidates, else thresholds."""
    found: tuple[float, ...] = at("loss.shares")(preset) or at("loss.thresholds")(preset)
    return found


def beta_2(preset: Preset) -> bool:
    """Whether the second rung weighs what the rows say: their beta 2, nothing for one rung, else 0.25."""
    said = [row for row in preset.reproduces if row["paper"] == "ladder_loss"]
    wanted = {float(row["beta2"]) if "beta2" in row else 0.0 if row.get("L") == "1" else 0.25 for row in said}
    return wanted == {at("loss.weights")(preset)[1]}


LETTER: dict[tuple[str, str, str], Line] = {
    # VSE++
    ("vsepp", "VSE++", "similarity"): Line("cosine", at("model.similarity"), ("cosine",), systems=("vsepp",)),
    ("vsepp", "VSE++", "loss"): Line("max of hinges", at("loss"), ("max_of_hinges",), systems=("vsepp",)),
    ("vsepp", "VSE++", "projections"): Line(
        "a linear layer for pictures; of captions the last state of the GRU as it is",
        both(at("model.image_head", "base"), at("model.text_head", "base")),
        (("linear", "linear"),),
        "No layer stands above the GRU",
        "a linear layer for pictures alone",
    ),
    ("vsepp", "VSE0", "loss"): Line("sum of hinges", at("loss"), ("sum_of_hinges",), systems=("vse0",)),
    ("vsepp", "VSE0", "note"): Line("sum of hinges", at("loss"), ("sum_of_hinges",), systems=("vse0", "uvs")),
    ("vsepp", "all", "image_encoders"): Line(
        "the backbone that the row names",
        of_row(at(IMAGE + "backbone", "base"), "vsepp", "backbone", BACKBONES.__getitem__, "vgg19.tv_in1k"),
        (True,),
    ),
    ("vsepp", "all", "image_feature_layer"): Line(
        "what the backbone gives its classifier", at(IMAGE + "pool", "base"), ("backbone",)
    ),
    ("vsepp", "all", "D_phi_vgg19"): elsewhere("4096, which the backbone vgg19 has"),
    ("vsepp", "all", "D_phi_resnet152"): elsewhere("2048, which the backbone resnet152 has"),
    ("vsepp", "all", "resize"): Line(
        "to 256 x 256, before the crop of 224",
        both(
            at(IMAGE + "resize", "base"),
            lambda preset: round(at(IMAGE + "size", "base")(preset) / at(IMAGE + "crop", "base")(preset)),
        ),
        (("square", 256),),
        program="the short side to 256",
    ),
    ("vsepp", "all", "crop"): Line("224", at(IMAGE + "size", "base"), (224,)),
    **{
        ("vsepp", "all", crops): Line(
            "as the row says",
            of_row(at(IMAGE + "crops", "base"), "vsepp", "train_set", CROPS.__getitem__, None),
            (True,),
        )
        for crops in ("1C", "10C", "RC")
    },
    ("vsepp", "all", "gru_dim_D_psi"): Line(
        "1024, the width of the joint space",
        both(at("model.text.width", "base"), at("model.dimension", "base")),
        ((None, 1024),),
    ),
    ("vsepp", "all", "joint_dim_D"): Line("1024", at("model.dimension", "base"), (1024,)),
    ("vsepp", "all", "word_dim"): Line("300", at("model.text.word_dimension", "base"), (300,)),
    ("vsepp", "VSE++", "normalise_image"): Line("yes", at("model.similarity"), ("cosine",), systems=("vsepp",)),
    ("vsepp", "VSE++", "normalise_caption"): Line("yes", at("model.similarity"), ("cosine",), systems=("vsepp",)),
    ("vsepp", "VSE0", "normalise_image"): Line(
        "no", at("model.similarity"), (), "Image vectors are not normalised", systems=("vse0",)
    ),
    ("vsepp", "VSE0", "normalise_caption"): Line("yes", at("model.similarity"), ("inner",), systems=("vse0", "uvs")),
    ("vsepp", "all", "coco_train_images"): elsewhere(DATA),
    ("vsepp", "all", "coco_val_images"): elsewhere(DATA),
    ("vsepp", "all", "coco_test_images"): elsewhere(DATA),
    ("vsepp", "all", "coco_rV_images"): Line(
        "as the row says", of_row(RV, "vsepp", "train_set", lambda text: "rV" in text, False), (True,)
    ),
    ("vsepp", "all", "coco_train_plus_rV"): Line(
        "as the row says", of_row(RV, "vsepp", "train_set", lambda text: "rV" in text, False), (True,)
    ),
    ("vsepp", "all", "flickr30k_train_images"): choice(
        "29,000, which the split has", "The Karpathy split has 29,000|COCO", "29,000", VSE
    ),
    ("vsepp", "all", "flickr30k_val_images"): choice(
        "1,014, which the split has", "1,014 for validation|COCO", "the first 1,000 of 1,014", VSE
    ),
    ("vsepp", "all", "flickr30k_test_images"): elsewhere("the protocol flickr30k-1k, which rows are read under"),
    ("vsepp", "all", "captions_per_image"): choice(
        "all that a picture has",
        "six or seven captions|Karpathy split",
        "all in training, the first five in evaluation",
        VSE,
    ),
    ("vsepp", "all", "split"): elsewhere(
        "Karpathy's, where the data come in his files; the split of other layouts is theirs"
    ),
    ("vsepp", "all", "eval_1K"): elsewhere("the protocol coco-1k-5fold, which rows are read under"),
    ("vsepp", "all", "eval_5K"): elsewhere("the protocol coco-5k, which rows are read under"),
    ("vsepp", "all", "optimizer"): Line("Adam", at("optimizer", "base"), ("adam",)),
    ("vsepp", "all", "max_epochs"): Line("30", all_epochs, (30,)),
    ("vsepp", "all", "lr"): Line(
        "2e-4 for 15 epochs, then 2e-5 for 15",
        RATES,
        (((2e-4, 2e-5), (15, 15)),),
        systems=("vsepp", "vse0", "uvs", "orderpp"),
    ),
    ("vsepp", "all", "finetune_start"): Line(
        "a stage that follows 30 epochs with a fixed backbone, where the row says it",
        of_row(
            lambda preset: at(IMAGE + "frozen", "fine_tune")(preset) is False, "vsepp", "finetuned", YES.__eq__, False
        ),
        (True,),
    ),
    ("vsepp", "all", "finetune_epochs"): Line("15", at("epochs", "fine_tune"), (None, (15,))),
    ("vsepp", "all", "finetune_lr"): Line("2e-5", at("learning_rates", "fine_tune"), (None, (2e-5,))),
    ("vsepp", "all", "margin"): Line("0.2", at("loss.margin"), (0.2,), systems=("vsepp", "vse0", "uvs", "orderpp")),
    ("vsepp", "all", "batch_size"): Line("128", at("batch_size"), (128,)),
    ("vsepp", "all", "selection"): Line("the best rsum of the validation split", at("snapshot.measure"), ("rsum",)),
    ("vsepp", "VSE++", "MH_warmup_epochs_flickr_RC"): Line(
        "an observation; no row is warmed up", at("warm_up_epochs"), (0,), systems=("vsepp",)
    ),
    ("vsepp", "VSE++", "curriculum_SH_then_MH"): elsewhere(
        "the variant vsepp/flickr30k:vgg19-rc-curriculum; the paper prints no row of it"
    ),
    ("vsepp", "VSE++", "negative_set_sizes"): Line(
        "all negatives of a batch; the variants negatives-2 to -512 draw so many",
        at("loss.negative_set"),
        (None,),
        systems=("vsepp",),
    ),
    ("vsepp", "VSE++", "best_negative_set_size_flickr30k"): Line(
        "the batch of 128", at("batch_size"), (128,), systems=("vsepp",)
    ),
    ("vsepp", "Order0/Order++", "similarity"): Line(
        "as printed; the variants root take the root",
        both(at("model.similarity"), at("model.similarity.root")),
        (("order", False),),
        "The root is that of VSE",
        "the root of it",
        ("order0", "orderpp"),
    ),
    ("vsepp", "Order0/Order++", "train_set"): Line(
        "ten crops, with restval pictures",
        both(at(IMAGE + "crops"), RV),
        (("10C", True),),
        systems=("order0", "orderpp"),
    ),
    ("vsepp", "Order0", "lr"): Line(
        "1e-3 for 15 epochs, then 1e-4 for 15",
        RATES,
        (((1e-3, 1e-4), (15, 15)),),
        systems=("order0",),
    ),
    ("vsepp", "Order0", "margin"): Line("0.05", at("loss.margin"), (0.05,), systems=("order0",)),
    ("vsepp", "Order0", "absolute_value_of_embeddings"): Line(
        "yes", at("model.similarity.absolute"), (True,), systems=("order0",)
    ),
    ("vsepp", "Order++", "lr"): Line(
        "2e-4 for 15 epochs, then 2e-5 for 15",
        RATES,
        (((2e-4, 2e-5), (15, 15)),),
        systems=("orderpp",),
    ),
    ("vsepp", "Order++", "margin"): Line("0.2", at("loss.margin"), (0.2,), systems=("orderpp",)),
    ("vsepp", "Order++", "absolute_value_of_embeddings"): Line(
        "no", at("model.similarity.absolute"), (False,), systems=("orderpp",)
    ),
    ("vsepp", "VSE++", "M_for_90th_percentile_below_1pct"): elsewhere(
        "45 by exact arithmetic: rungwise.losses.sampling_analysis; the paper's exponent is M"
    ),
    ("vsepp", "VSE++", "M_for_99.9th_percentile_below_1pct"): elsewhere(
        "4604 by exact arithmetic, and 6906 for 0.1 %, which the paper's number is of"
    ),
    ("vsepp", "VSE++", "probability"): elsewhere("what rungwise.losses.sampling_analysis computes"),
    # Ladder loss
    ("ladder_loss", "CVSE++", "relevance_model"): Line(
        "rc-bert: a published cross-encoder trained on STS-B; else cosines of a sentence model",
        at("data.relevance"),
        (),
        "all-MiniLM-L6-v2",
        "averaged word vectors, or a sentence-BERT",
    ),
    ("ladder_loss", "CVSE++", "bert_sts_b_val_pearson"): elsewhere(RESULT),
    ("ladder_loss", "CVSE++", "similarity"): Line("cosine", at("model.similarity"), ("cosine",)),
    ("ladder_loss", "CVSE++", "ladder_sets"): Line(
        "as printed",
        lambda preset: len(at("loss.margins")(preset)) == len(bounds(preset)) + 1,
        (True,),
    ),
    ("ladder_loss", "CVSE++", "terms_l"): Line(
        "pairs of N_l-1 with N_l:L; rc-authors takes all levels above a threshold",
        at("loss.levels"),
        ("single",),
        "The paper takes the single level",
        "all levels above the threshold, the pair among them",
    ),
    ("ladder_loss", "CVSE++", "directions"): elsewhere("both, added: the loss has no other form"),
    ("ladder_loss", "CVSE++", "sampling"): choice(
        "hard contrastive, with the second margin on the second rung",
        "Eq. 8 prints the first margin",
        "each rung with its own margin",
    ),
    ("ladder_loss", "CVSE++", "CS_criterion"): elsewhere(MEASURE + "CS@K is tau-b of values", "tau-b of values"),
    ("ladder_loss", "all", "flickr30k_images"): elsewhere(DATA),
    ("ladder_loss", "all", "coco_images"): elsewhere(DATA),
    ("ladder_loss", "all", "captions_per_image"): choice(
        "all that a picture has", "six or seven captions|Karpathy split", "cut or padded to five", ("cvsepp",)
    ),
    ("ladder_loss", "all", "flickr30k_val_images"): choice(
        "1,014, which the split has", "1,014 for validation|COCO", "1,000 of its own split", ("cvsepp",)
    ),
    ("ladder_loss", "all", "flickr30k_test_images"): elsewhere(
        "the protocols one-caption-per-image and flickr30k-1k, which rows are read under"
    ),
    ("ladder_loss", "all", "flickr30k_train_images"): choice(
        "29,000, which the split has", "29,000 training pictures|COCO", "the rest of its own split", ("cvsepp",)
    ),
    ("ladder_loss", "all", "coco_val_images"): elsewhere(DATA),
    ("ladder_loss", "all", "coco_test_images"): elsewhere(DATA),
    ("ladder_loss", "all", "coco_train_images"): Line(
        "restval pictures train, too",
        with_restval,
        (True,),
        systems=("cvsepp", "vsepp"),
    ),
    ("ladder_loss", "all", "coco_rV_images"): Line(
        "restval pictures train, too",
        with_restval,
        (True,),
        systems=("cvsepp", "vsepp"),
    ),
    ("ladder_loss", "all", "image_encoders"): Line(
        "the backbone that the row names",
        of_row(at(IMAGE + "backbone", "base"), "ladder_loss", "backbone", BACKBONES.__getitem__, "vgg19.tv_in1k"),
        (True,),
        systems=("cvsepp", "vsepp"),
    ),
    ("ladder_loss", "all", "image_feature_layer"): Line(
        "what the backbone gives its classifier", at(IMAGE + "pool", "base"), ("backbone",)
    ),
    ("ladder_loss", "all", "image_feature_dim_vgg19"): elsewhere("4096, which the backbone vgg19 has"),
    ("ladder_loss", "all", "image_feature_dim_resnet152"): elsewhere("2048, which the backbone resnet152 has"),
    ("ladder_loss", "all", "resize"): Line(
        "to 256 x 256, before the crop of 224", at(IMAGE + "resize", "base"), ("square",)
    ),
    ("ladder_loss", "all", "crop"): Line("224", at(IMAGE + "size", "base"), (224,)),
    ("ladder_loss", "all", "random_crops"): Line(
        "one random crop on each visit", at(IMAGE + "crops", "base"), (), "random crops", systems=("cvsepp", "vsepp")
    ),
    ("ladder_loss", "all", "sentence_encoder"): Line("GRU", at("model.text"), ("gru",)),
    ("ladder_loss", "all", "gru_dim"): Line("1024, the width of the joint space", at("model.dimension"), (1024,)),
    ("ladder_loss", "all", "joint_dim"): Line("1024", at("model.dimension"), (1024,)),
    ("ladder_loss", "all", "word_dim"): Line("300", at("model.text.word_dimension"), (300,)),
    ("ladder_loss", "all", "optimizer"): Line("Adam", at("optimizer", "base"), ("adam",)),
    ("ladder_loss", "all", "lr"): Line(
        "2e-4 for 15 epochs, then 2e-5 for 15",
        RATES,
        (((2e-4, 2e-5), (15, 15)),),
        systems=("cvsepp", "vsepp"),
    ),
    ("ladder_loss", "all", "epochs"): Line("30", all_epochs, (30,), systems=("cvsepp", "vsepp")),
    ("ladder_loss", "all", "batch_size"): Line("128", at("batch_size"), (128,)),
    ("ladder_loss", "all", "framework"): elsewhere("PyTorch"),
    ("ladder_loss", "CVSE++", "cbow_vectors"): Line(
        "rc-bert: a file of GloVe",
        at("data.relevance"),
        (),
        "averaged word vectors choose|Without bert|GloVe",
        "spaCy's vectors, nouns doubled",
    ),
    ("ladder_loss", "CVSE++", "cbow_threshold"): Line("rc-bert: 0.8", cascade_threshold, (0.8,), "all-MiniLM-L6-v2"),
    ("ladder_loss", "CVSE++", "coarse_to_fine_sts_b_pearson"): elsewhere(RESULT),
    ("ladder_loss", "CVSE++", "bert_pairs_per_second_titan_xp"): elsewhere(RESULT),
    ("ladder_loss", "CVSE++", "L"): Line("2, or as the row says", as_many_rungs, (True,)),
    ("ladder_loss", "CVSE++", "theta_1"): Line(
        "rc-bert: 0.63; else the value that 1 % of the candidates reach",
        lambda preset: not at("loss.shares")(preset) and bounds(preset)[0],
        (0.63,),
        "the first rung holds 1 % of the candidates",
        "0.63 with averaged word vectors, 0.40 with a sentence-BERT",
    ),
    ("ladder_loss", "CVSE++", "alpha_1"): Line("0.2", lambda preset: at("loss.margins")(preset)[0], (0.2,)),
    ("ladder_loss", "CVSE++", "alpha_2"): Line("0.01", lambda preset: at("loss.margins")(preset)[1], (0.01,)),
    ("ladder_loss", "CVSE++", "beta_1"): Line("1", lambda preset: at("loss.weights")(preset)[0], (1.0,)),
    ("ladder_loss", "CVSE++", "beta_2"): Line("0.25, or as the row says", beta_2, (True,)),
    ("ladder_loss", "CVSE++", "hc_sampling"): Line("yes", at("loss.sampling"), ("hard_contrastive",)),
    ("ladder_loss", "CVSE++", "hyperparameter_selection"): elsewhere("the printed values are taken as they are"),
    ("ladder_loss", "CVSE++", "CS_K_1000_test"): elsewhere(MEASURE + "CS@100 and CS@1000"),
    ("ladder_loss", "CVSE++", "finetune"): Line(
        "VSE++'s schedule", at("epochs", "fine_tune"), (None,), "The schedule of fine-tuning is VSE"
    ),
    ("ladder_loss", "VSE++", "baseline"): choice(
        "the preset of VSE++", "its own new program of VSE", systems=("vsepp",)
    ),
    ("ladder_loss", "CVSE++", "CS_K_5000_test"): elsewhere(MEASURE + "CS@500 and CS@5000"),
    ("ladder_loss", "CVSE++", "hyperparameters"): Line(
        "as for COCO", lambda preset: at("loss.weights")(preset)[0], (1.0,)
    ),
    ("ladder_loss", "CVSE++", "beta_2_sweep"): Line("as the row says", beta_2, (True,)),
    ("ladder_loss", "CVSE++", "beta_1_in_sweep"): Line("1", lambda preset: at("loss.weights")(preset)[0], (1.0,)),
    ("ladder_loss", "CVSE++", "L_in_sweep"): Line(
        "2",
        lambda preset: len(at("loss.margins")(preset)) if any("beta2" in one for one in preset.reproduces) else 2,
        (2,),
    ),
    ("ladder_loss", "CVSE++", "L_sweep"): Line(
        "as the row says; one rung is two of which the second weighs nothing",
        as_many_rungs,
        (True,),
    ),
    ("ladder_loss", "CVSE++", "theta_2"): Line(
        "rc-three-bert: 0.56; rc-three: the value that another 3 % reach",
        third_threshold,
        (True,),
        "another 3 % of the candidates",
    ),
    ("ladder_loss", "CVSE++", "alpha_3"): Line(
        "0.01", lambda preset: (*at("loss.margins")(preset), None)[2], (None, 0.01)
    ),
    ("ladder_loss", "CVSE++", "beta_3"): Line(
        "0.125", lambda preset: (*at("loss.weights")(preset), None)[2], (None, 0.125)
    ),
    ("ladder_loss", "CVSE++", "CS_K_in_sweep"): elsewhere(MEASURE + "CS@100, CS@200 and CS@1000"),
}


SAM_ROWS = ("sam-cvse", "sam-sgr", "sam-vsrn")
BASES = ("cvse", "sgr", "vsrn")

LETTER |= {
    # SAM
    ("sam", "NCS/SR", "captions_per_image"): elsewhere(MEASURE + "SR takes m, or the query's own captions"),
    ("sam", "NCS/SR", "coco_5K_test_images"): elsewhere("the protocol coco-5k"),
    ("sam", "NCS/SR", "coco_5K_test_sentences"): elsewhere("the protocol coco-5k"),
    ("sam", "NCS/SR", "N_ij"): elsewhere(MEASURE + "degrees by CIDEr-D or SPICE over all captions of an image"),
    ("sam", "NCS/SR", "NCS"): elsewhere(
        MEASURE + "NCS@K as the paper's tables have it, NCS@K(m=..) with Eq. 5's intersection",
        "without the intersection",
    ),
    ("sam", "NCS/SR", "recall_variants"): elsewhere(
        MEASURE + "Recall@K (Eq. 1) and R@K (Eq. 2); the paper's tables print Eq. 2"
    ),
    ("sam", "NCS", "crisscrossed_judgement_pairs"): elsewhere(DATA),
    ("sam", "NCS", "crisscrossed_gt_pairs"): elsewhere(DATA),
    ("sam", "NCS", "likert_points"): elsewhere(DATA),
    ("sam", "NCS", "phi_eval"): elsewhere(
        "rungwise relevance spice; a row by SPICE stands beside degrees by SPICE alone"
    ),
    ("sam", "SAM", "margin"): choice(
        "each direction by its own negative", "the wrong way round", "not published", SAM_ROWS
    ),
    ("sam", "SAM", "tau_role"): Line("divides the margin", at("loss"), ("semantic_adaptive_margin",), systems=SAM_ROWS),
    ("sam", "SAM", "joint_with_original_triplet"): Line(
        "as the row says",
        of_row(at("loss.with_triplet"), "sam", "original_triplet", YES.__eq__, True),
        (True,),
        systems=SAM_ROWS,
    ),
    ("sam", "SAM", "phi_train"): Line(
        "CIDEr-D", at("data.relevance"), (), "CIDEr is CIDEr-D", "not published", SAM_ROWS
    ),
    ("sam", "SAM", "phi_eval"): elsewhere(
        "rungwise relevance spice; a row by SPICE stands beside degrees by SPICE alone"
    ),
    ("sam", "SAM", "base_model_hyperparameters"): choice(
        "those of the programs of CVSE, SGRAF and VSRN",
        "(CVSE|SGRAF|VSRN)'s (program|instructions)",
        systems=(*SAM_ROWS, *BASES),
    ),
    ("sam", "SAM", "ensembles"): elsewhere("one model a run; rungwise evaluate average:A,B is asked for by name"),
    ("sam", "SAM", "implementation_details"): choice(
        "tau 10, the least similar negative, the triplet loss kept", "supplement", systems=SAM_ROWS
    ),
    ("sam", "SR", "cutoff"): elsewhere(MEASURE + "SR@5(m=..) and SR@5(m=..,any), with non_gt"),
    ("sam", "SR", "models"): elsewhere(
        "presets vsepp, scan, vsrn, cvse, sgr, saf; the paper draws the figure and prints no numbers"
    ),
    ("sam", "SAM", "flickr30k_train_images"): elsewhere(DATA),
    ("sam", "SAM", "coco_train_images"): Line(
        "restval pictures train, too",
        with_restval,
        (True,),
        systems=(*SAM_ROWS, *BASES),
    ),
    **{
        ("sam", "SAM", name): Line(
            f"the variants share-{share}",
            of_row(at("data.share"), "sam", "train_set", lambda text: float(text[:-1]) / 100, 1.0),
            (True,),
            systems=("cvse", "sgr", "sam-cvse", "sam-sgr"),
        )
        for name, share in (("flickr30k_10pct", 10), ("flickr30k_25pct", 25), ("coco_3pct", 3), ("coco_5pct", 5))
    },
    ("sam", "SAM", "test_set"): elsewhere("rows of Table 2 are read under the protocols coco-1k and flickr30k-1k"),
    ("sam", "SAM", "tau_sweep"): Line(
        "as the row says", of_row(at("loss.temperature"), "sam", "tau", float, 10.0), (True,), systems=SAM_ROWS
    ),
    ("sam", "SAM", "sampling"): Line(
        "as the row says",
        of_row(at("loss.negatives"), "sam", "sampling", SAMPLING.__getitem__, "softest"),
        (True,),
        systems=SAM_ROWS,
    ),
    ("sam", "SAM", "original_triplet"): Line(
        "as the row says",
        of_row(at("loss.with_triplet"), "sam", "original_triplet", YES.__eq__, True),
        (True,),
        systems=SAM_ROWS,
    ),
    ("sam", "SAM", "base_model"): Line("CVSE for Tables 4 and 5", at("model"), ("cvse",), systems=("sam-cvse",)),
    ("sam", "SAM", "preferred_sampling"): Line(
        "SN, or as the row says",
        of_row(at("loss.negatives"), "sam", "sampling", SAMPLING.__getitem__, "softest"),
        (True,),
        systems=SAM_ROWS,
    ),
    ("sam", "SAM", "sums_over_k"): elsewhere(MEASURE + "rsum and Nsum"),
    ("sam", "SAM", "NCS_variants"): elsewhere(MEASURE + "Nsum and Nsum(non_gt)"),
    # CMAL2R
    ("cmal2r", "CMAL2R", "similarity"): Line("as printed", at("model.similarity"), ("shifted_cosine",)),
    ("cmal2r", "CMAL2R", "branches"): Line(
        "two layers a side",
        lambda preset: [len(at(f"model.{side}_head.hidden")(preset)) + 1 for side in ("image", "text")],
        ([2, 2],),
    ),
    ("cmal2r", "CMAL2R", "output_norm"): Line("length 1", at("model.similarity"), ("shifted_cosine",)),
    ("cmal2r", "CMAL2R", "loss"): Line(
        "as printed, the relevant item among the sum as in Eq. 4 and 7", at("loss"), ("adaptive_listwise",)
    ),
    ("cmal2r", "CMAL2R", "phi"): elsewhere("as printed: the loss has no other form"),
    ("cmal2r", "CMAL2R", "margin_m_k"): elsewhere("as printed: the loss has no other form; two candidates have 3/4"),
    ("cmal2r", "CMAL2R", "margin_range"): Line("1/4 to 3/4", at("loss.margins"), ((0.75, 0.25),)),
    ("cmal2r", "CMAL2R", "margin_of_positive"): elsewhere("0: the loss has no other form"),
    ("cmal2r", "CMAL2R", "sampling"): Line(
        "T queries a side, with K irrelevant items each", at("sampler"), ("label_lists",)
    ),
    ("cmal2r", "CMAL2R", "batch"): Line(
        "T queries a side, with K irrelevant items each", at("sampler"), ("label_lists",)
    ),
    ("cmal2r", "CMAL2R", "regulariser"): Line(
        "lambda / 2 of all weight matrices", lambda preset: at("weight_decay")(preset) > 0, (True,)
    ),
    **{
        ("cmal2r", "CMAL2R", name): choice(ours, "The paper prints neither widths")
        for name, ours in (
            ("T", "64"),
            ("K", "5"),
            ("lambda", "1e-3"),
            ("hidden_dim", "512"),
            ("embedding_dim_d", "64"),
            ("activation", "ReLU"),
            ("optimizer", "Adam"),
            ("lr", "1e-3"),
            ("epochs", "24"),
        )
    },
    ("cmal2r", "CMAL2R", "map_cutoff"): elsewhere(MEASURE + "MAP over the full list"),
    **{
        ("cmal2r", "CMAL2R", name): choice(
            "those of the data", "The features are the published ones|whoever has other features"
        )
        for name in (
            "wikipedia_pairs",
            "wikipedia_categories",
            "wikipedia_train",
            "wikipedia_test",
            "wikipedia_image_features",
            "wikipedia_text_features",
            "pascal_raw_train",
            "pascal_raw_test",
            "pascal_classes",
            "pascal_train",
            "pascal_test",
            "pascal_image_features",
            "pascal_text_features",
        )
    },
    ("cmal2r", "CMAL2R", "alpha"): Line("0.4; uni: 1", at("loss.i2t_weight"), (0.4,), "Uni-directional means"),
    ("cmal2r", "CMAL2R", "beta"): Line("0.5", at("loss.sharpness"), (0.5,)),
    ("cmal2r", "CMAL2R", "metric"): Line("MAP", at("snapshot.measure"), ("MAP",)),
    # ConVSE
    ("convse", "all", "flickr30k_images"): elsewhere(DATA),
    ("convse", "all", "flickr30k_train_images"): elsewhere(DATA),
    ("convse", "all", "flickr30k_val_images"): choice(
        "1,014, which the split has", "1,014 for validation|COCO", systems=CONVSE
    ),
    ("convse", "all", "flickr30k_test_images"): elsewhere("the protocol flickr30k-1k, which rows are read under"),
    ("convse", "all", "coco_train_images"): Line("restval pictures train, too", with_restval, (True,), systems=CONVSE),
    ("convse", "all", "coco_val_images"): elsewhere(DATA),
    ("convse", "all", "coco_test_images"): elsewhere(DATA),
    ("convse", "all", "captions_per_image"): choice(
        "all that a picture has", "six or seven captions|Karpathy split", systems=CONVSE
    ),
    ("convse", "all", "eval"): elsewhere("the protocol coco-1k-5fold, which rows are read under"),
    ("convse", "all", "R@sum"): elsewhere(MEASURE + "rsum"),
    ("convse", "base", "image_encoder"): Line("ResNet152", at(IMAGE + "backbone", "base"), ("resnet152.tv_in1k",)),
    ("convse", "base", "resize"): Line("to 256 x 256", at(IMAGE + "resize", "base"), ("square",)),
    ("convse", "base", "crop"): Line(
        "random, 224", both(at(IMAGE + "crops", "base"), at(IMAGE + "size", "base")), (("RC", 224),)
    ),
    ("convse", "base", "image_feature_dim"): elsewhere("2048, which the backbone has"),
    ("convse", "base", "image_fc_dim"): Line("1024", at("model.dimension", "base"), (1024,)),
    ("convse", "base", "text_encoder"): Line("GRU", at("model.text", "base"), ("gru",)),
    ("convse", "base", "word_vectors"): Line(
        "300 numbers that begin at random", at("model.text.word_vectors", "base"), (), "word2vec"
    ),
    ("convse", "base", "gru_dim"): Line(
        "1024", lambda preset: at("model.text.width", "base")(preset) or at("model.dimension", "base")(preset), (1024,)
    ),
    ("convse", "base", "loss"): Line(
        "max of hinges", at("loss", "base"), ("max_of_hinges",), systems=(*CONVSE, "vsepp")
    ),
    ("convse", "ConVSE/ConVSE++", "projection_head"): Line(
        "as printed, with a ReLU", at("model.text_head.hidden"), ((2048,),), systems=CONVSE
    ),
    **{
        ("convse", "ConVSE/ConVSE++", name): Line(
            "1024, or as the row says", of_row(at("model.dimension"), "convse", "d", int, 1024), (True,), systems=CONVSE
        )
        for name in ("joint_dim_d", "d_sweep", "d")
    },
    ("convse", "ConVSE/ConVSE++", "similarity"): Line("cosine", at("model.similarity"), ("cosine",), systems=CONVSE),
    ("convse", "base", "frozen_epochs"): Line("30", all_epochs, (30,)),
    ("convse", "base", "lr"): Line("2e-4 for 15 epochs, then 2e-5", at("learning_rates", "base"), ((2e-4, 2e-5),)),
    ("convse", "base", "finetune_epochs"): Line("15", at("epochs", "fine_tune"), ((15,),)),
    ("convse", "base", "finetune_lr"): Line("2e-5", at("learning_rates", "fine_tune"), ((2e-5,),)),
    ("convse", "base", "batch_size"): Line("128", at("batch_size", "base"), (128,)),
    ("convse", "ConVSE/ConVSE++", "init"): Line(
        "the stages before", lambda preset: list(stages(preset)), (["base", "fine_tune", "heads"],), systems=CONVSE
    ),
    ("convse", "ConVSE/ConVSE++", "epochs"): Line("30", at("epochs"), ((30,),), systems=CONVSE),
    ("convse", "ConVSE/ConVSE++", "lr"): Line("2e-5", at("learning_rates"), ((2e-5,),), systems=CONVSE),
    ("convse", "ConVSE/ConVSE++", "image_encoder"): Line("frozen", at(IMAGE + "frozen"), (True,), systems=CONVSE),
    ("convse", "ConVSE/ConVSE++", "batch_size"): Line("256", at("batch_size"), (256,), systems=CONVSE),
    **{
        ("convse", "ConVSE/ConVSE++", name): Line(
            "0.1, or as the row says",
            of_row(at("loss.temperature"), "convse", "tau", float, 0.1),
            (True,),
            systems=CONVSE,
        )
        for name in ("tau_sweep", "tau")
    },
    ("convse", "ConVSE/ConVSE++", "margin_alpha"): Line("0.2", at("loss.margin"), (0.2,), systems=("convsepp",)),
    ("convse", "ConVSE/ConVSE++", "optimizer"): Line("Adam", at("optimizer"), ("adam",), systems=CONVSE),
    ("convse", "ConVSE/ConVSE++", "runs"): elsewhere("--seeds 0 1 2 3 4"),
    ("convse", "ConVSE/ConVSE++", "reported_run"): elsewhere(
        "rungwise table sets the median run beside Tables III and IV; of ConVSE++ on COCO they print run 4"
    ),
    ("convse", "ConVSE", "loss"): Line("as printed", at("loss"), ("contrastive_sum",), systems=("convse",)),
    ("convse", "ConVSE", "negatives_per_anchor"): Line(
        "all others of the batch", at("loss.extra_positives"), ("keep",), systems=("convse",)
    ),
    ("convse", "ConVSE++", "loss"): Line("as printed", at("loss"), ("contrastive_max",), systems=("convsepp",)),
    ("convse", "MVN", "negatives_per_anchor"): Line(
        "those of both modalities", at("loss"), ("multi_modal_nce",), systems=("mvn",)
    ),
}

NOT_PRINTED: dict[str, Line] = {
    "other captions of the picture in a batch": Line(
        "negatives; the variants mask leave them out",
        lambda preset: {getattr(one.loss, "extra_positives", None) for one in stages(preset).values()},
        ({"keep"},),
        program="negatives",
        papers="VSE++, section 2.1, and ConVSE, Eq. 7: negatives",
        systems=(*VSE, *CONVSE, "cvsepp", "scan", "sgr", "saf", "vsrn", "cvse", "sam-cvse", "sam-sgr", "sam-vsrn"),
    ),
    "reduction over a batch": choice(
        "the sum; the mean for ConVSE's heads",
        "summed over the batch|sum over the batch|sums over the batch",
        "the sum",
        (*VSE, *CONVSE, "cvsepp", "sgr", "vsrn", "cvse", *SAM_ROWS),
        "a mean: VSE++, Eq. 4; ConVSE, Algorithm 1",
    ),
    "clipping of gradients": choice("2.0", "clip", "2.0", (*VSE, *CONVSE, "cvsepp", "sgr", "vsrn", "cvse", *SAM_ROWS)),
    "vocabulary": choice(
        "words seen four times in the training captions",
        "at least four times|vocabulary, first weights",
        "four times with the captions of other splits; five times in the ladder's",
        (*VSE, *CONVSE, "cvsepp", "sgr", "vsrn", "cvse", *SAM_ROWS),
    ),
    "features of the backbone": choice(
        "length 1", "length 1 before the linear layer", "length 1", (*VSE, *CONVSE, "cvsepp")
    ),
    "weights of the backbone, and resizing": choice(
        "torchvision's for ImageNet, bilinear", "torchvision's", "torchvision's", (*VSE, *CONVSE, "cvsepp")
    ),
    "mirrored random crops": Line(
        "mirrored at random, where crops are random",
        lambda preset: at(IMAGE + "crops", "base")(preset) == "RC",
        (False,),
        "mirrored at random",
        "mirrored at random",
        (*VSE, *CONVSE, "cvsepp"),
    ),
    "batch norm of a backbone that is trained": Line(
        "the statistics of each batch",
        lambda preset: (
            at(IMAGE + "frozen", "fine_tune")(preset) is False and "resnet" in at(IMAGE + "backbone", "base")(preset)
        ),
        (False,),
        "batch norm takes the statistics",
        "the statistics of each batch, until the first validation within an epoch",
        (*VSE, *CONVSE, "cvsepp"),
    ),
    "length of vectors before order similarity": choice("1", "Both vectors get length 1", "1", ("order0", "orderpp")),
    "weight of SAM beside the triplet loss": choice("1 and 1", "the same weight", "not published", SAM_ROWS),
    "weights of CVSE's losses": choice("3, 5, 1 and 2", "3, 5, 1 and 2", "3, 5, 1 and 2", ("cvse", "sam-cvse")),
    "similarity of CVSE's evaluation": Line(
        "0.95 fused and 0.05 consensus",
        at("model.consensus_share"),
        (0.05,),
        program="0.95 fused and 0.05 consensus",
        systems=("cvse", "sam-cvse"),
    ),
    "concepts of CVSE's texts in training": Line(
        "those of all captions of the picture",
        at("model.training_concepts"),
        ("picture",),
        program="those of all captions of the picture",
        systems=("cvse", "sam-cvse"),
    ),
    "concepts of CVSE's texts in evaluation": choice(
        "those of the text",
        "completes the labels",
        "completed from other test captions",
        ("cvse", "sam-cvse"),
    ),
    "irrelevant items of CMAL2R": choice(
        "those that share no label",
        "Irrelevant is what shares",
        systems=("cmal2r",),
        papers="those of other labels, and every other item (Eq. 3)",
    ),
    "sum over irrelevant items of CMAL2R": choice(
        "with the relevant one",
        "Eq. 10 and 11 print",
        systems=("cmal2r",),
        papers="without it in Eq. 10 and 11, with it in Eq. 4 and 7",
    ),
    "mode of a frozen backbone": choice(
        "evaluation",
        "A frozen backbone is in evaluation mode",
        "training, until the first validation within an epoch",
        ("vsepp", "vse0", "cvsepp", *CONVSE),
    ),
    "vocabulary of a share of the pictures": Line(
        "that of the share",
        lambda preset: at("data.share")(preset) == 1,
        (True,),
        "are of the share",
        "that of all training captions",
        ("cvse", "sgr", "sam-cvse", "sam-sgr"),
    ),
    "best epoch of ConVSE's stages": choice("the best rsum", "best epoch of every stage", systems=CONVSE),
    "levels of CVSE that carry SAM": choice("all three", "on all three levels", "not published", ("sam-cvse",)),
    "what is random in a Random row": choice(
        "a network with its first weights", "does not say what is random", systems=("random",)
    ),
}


def printed_lines() -> Iterator[tuple[tuple[str, str, str], str, str]]:
    """Key, value and place of every printed setting."""
    with PRINTED.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file):
            yield (cells["paper"], cells["method"], cells["name"]), cells["value"], cells["where"]


def standing_for(paper: str) -> tuple[Preset, ...]:
    """Trainings that stand for a row of a paper."""
    return tuple(
        one
        for one in presets()
        if isinstance(one.config, TrainConfig) and any(row["paper"] == paper for row in one.reproduces)
    )


def meant(line: Line, paper: str) -> tuple[Preset, ...]:
    """The presets that a line is about: of a paper, or of all papers where it is empty."""
    papers = (paper,) if paper else tuple(TITLES)
    found = {one.name: one for name in papers for one in standing_for(name)}
    own = {"vsepp": VSE, "ladder_loss": ("cvsepp",), "cmal2r": ("cmal2r",), "convse": CONVSE}.get(paper, ())
    return tuple(one for one in found.values() if one.system in (line.systems or own))


def verdict(line: Line, paper: str) -> str:
    """How the presets stand to a line; an AssertionError names a preset that neither does it nor declares it."""
    if line.value is None:
        return "no setting"
    about = meant(line, paper)
    assert about, f"no preset is meant by {line}"
    printed = [line.value(one) in line.wanted for one in about]
    for preset, as_printed in zip(about, printed, strict=True):
        declared = bool(line.declared) and re.search(line.declared, " ".join(preset.assumes))
        assert as_printed or declared, f"{preset.name}: {line.value(preset)!r} is undeclared; {line}"
    if not paper:
        return "done" if all(printed) else "declared"
    return "as printed" if all(printed) else "assumed" if not any(printed) else "as printed or assumed"


def letter_table() -> str:
    """The page's tables: each paper's lines, then what no paper prints."""
    parts = []
    for paper, title in TITLES.items():
        rows = [
            (name if method in ("all", title) else f"{name} ({method})", value, where, LETTER[key], paper)
            for key, value, where in printed_lines()
            for (one, method, name) in [key]
            if one == paper
        ]
        parts.append(f"## {title}\n\n" + _table("the paper prints", rows))
    rows = [(name, line.papers, "", line, "") for name, line in NOT_PRINTED.items()]
    return "\n\n".join([*parts, "## Beside the lists of settings\n\n" + _table("the papers say", rows)])


def _table(printed: str, rows: list[tuple[str, str, str, Line, str]]) -> str:
    lines = [f"| setting | verdict | {printed} | the presets |", "| --- | --- | --- | --- |"]
    for name, value, where, line, paper in rows:
        place = f" ({where})" if where else ""
        systems = sorted({one.system for one in meant(line, paper)}) if line.value is not None else []
        ours = line.ours + (f" ({', '.join(f'`{one}`' for one in systems)})" if systems else "")
        ours += f". The authors' program: {line.program}" if line.program else ""
        cells = [name.replace("_", " "), verdict(line, paper), value + place, ours]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
