import io

from rich.console import Console

from rungwise.demo import Bars, titles
from rungwise.demo._places import NAMES


def test_lines_now_and_then_where_there_is_no_terminal(capsys):
    moments = iter(range(0, 1000, 4))
    with Bars(titles(), Console(file=io.StringIO()), clock=lambda: next(moments)) as bars:
        for done in range(1, 9):
            for name in NAMES:
                bars.show(name, {"title": f"epoch {done}/8", "done": done, "total": 8})
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) < 2 * 16
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("with right and wrong: epoch ") for line in lines)
    assert any(line.startswith("with degrees: epoch ") for line in lines)


def test_two_bars_in_80_columns():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, color_system=None)
    with Bars(titles(), console) as bars:
        for name in NAMES:
            bars.show(name, {"title": "epoch 12/15", "done": 1234, "total": 5000})
            bars.show(name, {"rsum": 312.5})
            bars.show(name, {"title": "epoch 13/15", "done": 4321, "total": 5000})
            bars.show(name, {"what": "is not known"})
        bars._bars.refresh()
    last = screen.getvalue()
    for part in ("with right and wrong", "with degrees", "epoch 13/15", "86%", "rsum 312"):
        assert part in last
