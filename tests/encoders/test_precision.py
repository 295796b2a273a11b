import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rungwise.core import UserError
from rungwise.encoders import PictureSide, Preprocessing, computed_in, computing, native_bfloat16
from rungwise.encoders import _precision as inference
from rungwise.encoders._precision import PROBE, Computing
from rungwise.encoders.images import Backbone, ImageConfig

SMALL = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)


def pictures(count: int = PROBE) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


class Side(PictureSide):
    """Features that differ between the precisions by a given angle, and take a given time."""

    preprocessing = Preprocessing(size=32)
    features = 2

    def __init__(self, cosine: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.cosine = cosine

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.tensor([[1.0, 0.0]]).repeat(len(rows), 1)

    def inference(self, half: bool):  # type: ignore[no-untyped-def]
        away = torch.tensor([[self.cosine, math.sqrt(1 - self.cosine**2)]])
        return lambda rows: away.repeat(len(rows), 1) if half else self(rows)

    def fingerprint(self) -> str:
        return f"of cosine {self.cosine}"


def both(side: Side) -> tuple[Side, Callable[[bool], Callable[[Tensor], Tensor]]]:
    return side, side.inference


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The probe runs as always; its times are those of this list, in turn."""
    times: list[float] = []
    real = inference._timed
    monkeypatch.setattr(inference, "native_bfloat16", lambda device: True)
    monkeypatch.setattr(inference, "_timed", lambda encode, some: (real(encode, some)[0], times.pop(0)))
    return times


@pytest.mark.parametrize(
    ("cosine", "times", "chosen"),
    [
        (0.9995, [2.0, 1.0], True),
        (0.9985, [2.0, 1.0], False),
        (0.9995, [1.0, 1.0], False),
        (math.nan, [2.0, 1.0], False),
    ],
)
def test_auto_takes_bfloat16_where_it_pays_and_stays_close(
    cosine: float, times: list[float], chosen: bool, timed: list[float]
) -> None:
    timed += times
    lines: list[str] = []
    asked: list[int] = []

    def sample() -> torch.Tensor:
        asked.append(1)
        return pictures()

    with computed_in("auto", say=lines.append) as now:
        side = Side(cosine)
        assert now.in_half(side, side.inference, sample) is chosen
        assert now.in_half(side, side.inference, sample) is chosen
    assert len(asked) == 1, "the probe is made once"
    assert [line.partition("; cosine to float32 at least 0.99")[0] for line in lines] == (
        ["pictures are encoded in bfloat16, 2.0 x as fast as in float32 here"] if chosen else []
    ), "what is as ever needs no words"
    assert computing().precision == "float32"


def test_the_least_cosine_is_a_setting(timed: list[float]) -> None:
    timed += [2.0, 1.0]
    assert Computing("auto", least_cosine=0.99).in_half(*both(Side(0.995)), pictures)
    with pytest.raises(UserError, match="least_cosine: must be at most 1"):
        Computing("auto", least_cosine=2)


def test_auto_keeps_to_float32_where_the_processor_has_no_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "native_bfloat16", lambda device: False)
    assert not Computing("auto").in_half(*both(Side(1.0)), pictures)


def test_few_pictures_are_not_probed(timed: list[float]) -> None:
    now = Computing("auto")
    assert not now.in_half(*both(Side(1.0)), lambda: pictures(PROBE - 1))
    timed += [2.0, 1.0]
    assert now.in_half(*both(Side(1.0)), pictures), "many are, later"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_asked_for_is_done(precision: str) -> None:
    def never() -> torch.Tensor:
        raise AssertionError("no probe")

    assert Computing(precision).in_half(*both(Side(0.0)), never) is (precision == "bfloat16")  # type: ignore[arg-type]


def test_a_backbone_in_either_precision_is_close_to_itself() -> None:
    torch.manual_seed(0)
    side = Backbone(SMALL).eval()
    some = pictures(4)
    with torch.inference_mode():
        expected = side(some)
        exact, half = side.inference(False)(some), side.inference(True)(some)
        generic = PictureSide.inference(side, True)(some)
    torch.testing.assert_close(exact, expected, rtol=1e-4, atol=1e-5)
    for one in (half, generic):
        assert one.dtype == torch.float32
        assert not torch.equal(one, expected)
        assert torch.cosine_similarity(one, expected).min() > 0.99
    assert next(side.parameters()).dtype == torch.float32


def test_native_bfloat16_is_what_the_processor_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, expected in (({"avx512_bf16": True}, True), ({"avx512_f": True}, False), ({"amx_bf16": True}, True)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda said=said: said)
        assert native_bfloat16(torch.device("cpu")) is expected
    assert not native_bfloat16(torch.device("meta"))
