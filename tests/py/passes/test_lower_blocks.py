"""What lower-tiles refuses of kernels written on tiles: decisions that are missing, or that do not fit, and why."""

from collections.abc import Callable

import pytest

from tests.py.block.programs import Linear, normalised_linear, softmax_of_product
from xgpu import ir
from xgpu.cli.opt.main import main as xgpu_opt_main
from xgpu.dialects import attributes
from xgpu.errors import CompilerError
from xgpu.levels.pipeline import LOWER_TILES
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.structure import walk

_PLANNING = ",".join(each.format(target="sm_90a") for each, _ in LOWER_TILES[:-2])
_LINEAR = Linear((64, 64, 96), (32, 32, 32)).text
_DOT, _TILE, _STEPS, _FUNCTION = "stablehlo.dot_general", "xgpu.tile", "xgpu.steps", "func.func"


def _refusal(text: str, change: Callable[[dict[str, ir.Operation]], None], target: str = "sm_90a") -> str:
    """Return why a kernel is refused whose plan was changed.

    ``change`` gets the first operation of each name: of steps, if these have one.
    """
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(module, parse_pipeline(_PLANNING))
        found = sorted(walk(module.operation), key=lambda op: op.parent is None or op.parent.name != _STEPS)
        first = {op.name: op for op in reversed(found)}
        change(first)
        with pytest.raises(CompilerError) as caught:
            run(module, parse_pipeline(f"lower-tiles{{target={target}}}"))
        assert caught.value.location is not None
        return caught.value.message


def _without(op: str, name: str) -> Callable[[dict[str, ir.Operation]], None]:
    def change(first: dict[str, ir.Operation]) -> None:
        del first[op].attributes[name]

    return change


def _with(op: str, name: str, text: str) -> Callable[[dict[str, ir.Operation]], None]:
    def change(first: dict[str, ir.Operation]) -> None:
        first[op].attributes[name] = ir.Attribute.parse(text)

    return change


@pytest.mark.parametrize(
    ("op", "name", "message"),
    [
        (_DOT, attributes.PLACE, "attribute 'xgpu.place': expected where its tile is, got none"),
        (_STEPS, attributes.PLACE, "attribute 'xgpu.place': expected one for each tile, got none"),
        (_DOT, attributes.WARPS, "attribute 'xgpu.warps': expected warps down and across, of 4 in all, got none"),
        (_TILE, attributes.LAYOUT, "expected one stride for each dimension of tensor<32x32xbf16>, got none"),
        (_TILE, attributes.OFFSET, "expected where tensor<32x32xbf16> begins, got none"),
        (_TILE, attributes.COPY, "attribute 'xgpu.copy': expected plain or async, got none"),
        (_STEPS, attributes.STAGES, "attribute 'xgpu.stages': expected a number of buffers, got none"),
        (_FUNCTION, attributes.SCHEDULE, "expected xgpu.schedule with the numbers threads, got none"),
        (_FUNCTION, attributes.GRID, "attribute 'xgpu.grid': expected (4, 1, 1), as its schedule says, got none"),
    ],
)
def test_a_decision_that_is_missing(op: str, name: str, message: str) -> None:
    assert message in _refusal(_LINEAR(), _without(op, name))


@pytest.mark.parametrize(
    ("op", "name", "value", "message"),
    [
        (
            _DOT,
            attributes.WARPS,
            "array<i64: 2, 1>",
            "expected warps down and across, of 4 in all, got array<i64: 2, 1>",
        ),
        (_DOT, attributes.PLACE, '"computed"', "expected shared or fragments for a product, got computed"),
        (_TILE, attributes.PLACE, '"fragments"', "expected fragments only for what follows a product"),
        (_TILE, attributes.LAYOUT, "array<i64: 32>", "expected one stride for each dimension"),
        (_TILE, attributes.LAYOUT, "array<i64: 1, 33>", "expected plain where no 4 bytes lie side by side in both"),
        (_TILE, attributes.SWIZZLE, "array<i64: 3, 3, 3>", "attribute 'xgpu.swizzle': expected a shift above the base"),
        (_TILE, attributes.OFFSET, "300000 : i64", "all that sm_90a has for a block, got 30"),
        (_STEPS, attributes.PLACE, '["computed"]', "expected what steps carry to be in shared or fragments"),
        (
            _FUNCTION,
            attributes.SCHEDULE,
            "#xgpu.schedule<threads = 100>",
            "threads = 100: expected a multiple of 32",
        ),
    ],
)
def test_a_decision_that_does_not_fit(op: str, name: str, value: str, message: str) -> None:
    assert message in _refusal(_LINEAR(), _with(op, name, value))


def test_boxes_begin_at_patterns_of_their_swizzle() -> None:
    def change(first: dict[str, ir.Operation]) -> None:
        first[_TILE].attributes[attributes.COPY] = ir.StringAttr.get(attributes.BULK)
        first[_TILE].attributes[attributes.OFFSET] = ir.Attribute.parse("65664 : i64")

    message = _refusal(_LINEAR(), change)
    assert "TMA cannot copy the tile: expected one that begins at a multiple of 512 bytes, got 65664" in message


def test_the_limit_is_that_of_the_device() -> None:
    change = _with(_TILE, attributes.OFFSET, "150000 : i64")
    assert "all that sm_89 has for a block, got 15" in _refusal(_LINEAR(), change, "sm_89")


def test_elements_that_other_threads_hold() -> None:
    """A reduction of what threads hold in registers needs a copy in shared memory, which is planned elsewhere."""

    def change(first: dict[str, ir.Operation]) -> None:
        reduce = first["stablehlo.reduce"]
        reduce.operands[0] = first[_STEPS].results[0]

    message = _refusal(softmax_of_product(), change)
    assert "expected it in shared memory, as other elements of it are read than a thread holds" in message


def test_what_steps_yield_elsewhere() -> None:
    """A tile in shared memory is to be written where the next step finds it."""

    def change(first: dict[str, ir.Operation]) -> None:
        first[_STEPS].attributes[attributes.OFFSET] = ir.Attribute.parse("array<i64: -1, 65536>")

    assert "expected what steps yield to be written in the place and layout" in _refusal(normalised_linear(), change)


def test_an_order_that_cannot_be() -> None:
    message = _refusal(_LINEAR(), lambda first: first["stablehlo.add"].move_before(first[_DOT]))
    assert "'stablehlo.add': expected what it reads to be made before it" in message


def test_a_tile_of_an_output() -> None:
    text = _LINEAR()
    assert '"xgpu.tile"(%i2, %b1)' in text
    wrong = text.replace('"xgpu.tile"(%i2, %b1)', '"xgpu.tile"(%a0, %b1)').replace(
        "-> (d0 * 32 + s0), d0 in [0, 1], s0 in [0, 31]>} : (tensor<64xf32>, index)",
        "-> (d0 * 32 + s0, 0), d0 in [0, 1], s0 in [0, 31]>} : (tensor<64x64xf32>, index)",
    )
    assert "expected a tile of an input of the kernel" in _refusal(wrong, lambda _: None)


def test_commands_take_the_text(tmp_path: "object", capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/kernel.mlir"
    with open(path, "w") as file:
        file.write(_LINEAR())
    assert xgpu_opt_main([path, "-p", f"{_PLANNING},lower-tiles"]) == 0
    assert "xgpu.mma" in capsys.readouterr().out
