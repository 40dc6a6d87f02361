"""Products written in another order give the same numbers, for any dimension numbers, and are no worse."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgpu import ir
from xgpu.fusion import fallback
from xgpu.passes.prepare.layouts.choose_product_layouts import ChooseProductLayouts

CONTEXT = ir.make_context()


@pytest.fixture(autouse=True, scope="module")
def _no_product_is_small() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fallback, "_FEW_PRODUCTS", 0)
        patch.setattr(fallback, "FEW_TERMS", 0)
        yield


def _shuffled(rng: random.Random, values: Any) -> list[int]:
    return rng.sample(list(values), len(values))


def _type(shape: Any) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


class _Program:
    """A product of two arguments, or of what is computed from them, whose operands and result may be transposed."""

    def __init__(self, rng: random.Random):
        batch, contracted = rng.randint(0, 2), rng.randint(0, 2)
        free = [rng.randint(0, 3 if not batch or not contracted else 2) for _ in range(2)]
        labels = iter("abcdefghijkl")
        shared = [[next(labels) for _ in range(count)] for count in (batch, contracted)]
        own = [[next(labels) for _ in range(count)] for count in free]
        self.sizes = {label: rng.choice([1, 2, 2, 3, 8]) for label in "abcdefghijkl"}
        self.lines: list[str] = []
        self.terms, self.shapes, operands, numbers = [], [], [], []
        for side in range(2):
            term = _shuffled(rng, [*shared[0], *shared[1], *own[side]])
            self.terms.append("".join(map(str, term)))
            self.shapes.append([self.sizes[label] for label in self.terms[-1]])
            value = f"%arg{side}"
            if rng.random() < 0.6:
                value = self._apply("negate", value, term, f": {_type(self.shapes[-1])}")
            if rng.random() < 0.4:
                value, term = self._transpose(value, term, _shuffled(rng, range(len(term))))
            operands.append((value, term))
            numbers.append(([term.index(i) for i in shared[0]], [term.index(i) for i in shared[1]]))
        free_labels = [[label for label in term if label in own[side]] for side, (_, term) in enumerate(operands)]
        result = [*shared[0], *free_labels[0], *free_labels[1]]
        batching, contracting = (f"{numbers[0][i]} x {numbers[1][i]}" for i in range(2))
        types = ", ".join(self._type(term) for _, term in operands)
        self.lines.append(
            f"%p = stablehlo.dot_general {operands[0][0]}, {operands[1][0]}, batching_dims = {batching},"
            f" contracting_dims = {contracting}, precision = [HIGH, HIGHEST] : ({types}) -> {self._type(result)}"
        )
        value = "%p"
        if rng.random() < 0.7:
            value, result = self._transpose(value, result, _shuffled(rng, range(len(result))))
        if rng.random() < 0.5:
            value = self._apply("negate", value, result, f": {self._type(result)}")
        self.result = "".join(map(str, result))
        self.sign = (-1) ** sum("negate" in line for line in self.lines)
        arguments = ", ".join(f"%arg{i}: {_type(shape)}" for i, shape in enumerate(self.shapes))
        body = "\n".join([*self.lines, f"return {value} : {self._type(result)}"])
        self.text = f"func.func @main({arguments}) -> {self._type(result)} {{\n{body}\n}}"

    def _type(self, term: Any) -> str:
        return _type([self.sizes[label] for label in term])

    def _apply(self, name: str, value: str, term: Any, rest: str) -> str:
        new = f"%v{len(self.lines)}"
        self.lines.append(f"{new} = stablehlo.{name} {value} {rest}")
        return new

    def _transpose(self, value: str, term: Any, permutation: list[int]) -> tuple[str, list[Any]]:
        moved = [term[i] for i in permutation]
        rest = f", dims = {permutation} : ({self._type(term)}) -> {self._type(moved)}"
        return self._apply("transpose", value, term, rest), moved


def _rewritten(text: str) -> ir.Module:
    module = ir.Module.parse(text, CONTEXT)
    with module.context, ir.Location.unknown():
        ChooseProductLayouts().apply(module)
    module.operation.verify()
    return module


def _evaluated(module: ir.Module, arrays: list[np.ndarray]) -> np.ndarray:
    """Return what StableHLO's interpreter gives."""
    with module.context, ir.Location.unknown():
        attributes = [ir.DenseElementsAttr.get(each) for each in arrays]
        (result,) = ir.stablehlo.eval_module(module, attributes)
    return np.array(result)


@given(st.binary(min_size=16, max_size=16))
def test_any_order_gives_the_same_numbers(drawn: bytes) -> None:
    rng = random.Random(drawn)
    program = _Program(rng)
    arrays = [
        np.array([rng.randint(-4, 4) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)
        for shape in program.shapes
    ]
    expected = program.sign * np.einsum(f"{program.terms[0]},{program.terms[1]}->{program.result}", *arrays)
    module = _rewritten(program.text)
    np.testing.assert_array_equal(_evaluated(module, arrays), expected, f"{program.text}\n{module}")


@given(st.binary(min_size=16, max_size=16))
def test_what_is_written_is_not_improved_again(drawn: bytes) -> None:
    once = str(_rewritten(_Program(random.Random(drawn)).text))
    assert str(_rewritten(once)).count("transpose") <= once.count("transpose")


def _product(text: str) -> str:
    """Return the line of the product of a rewritten function."""
    (line,) = (line for line in str(_rewritten(text)).splitlines() if "dot_general" in line)
    return line


def test_precisions_stay_with_their_operands() -> None:
    line = _product("""
      func.func @main(%x: tensor<8x4xf32>, %y: tensor<4x16xf32>) -> tensor<16x8xf32> {
        %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [HIGH, HIGHEST]
          : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
        %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
        return %t : tensor<16x8xf32>
      }""")
    assert "%arg1, %arg0, contracting_dims = [0] x [1], precision = [HIGHEST, HIGH]" in line


def test_a_product_with_an_algorithm_stays() -> None:
    text = """
      func.func @main(%x: tensor<8x4xf32>, %y: tensor<4x16xf32>) -> tensor<16x8xf32> {
        %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT],
          algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32,
          lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1,
          allow_imprecise_accumulation = false> : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
        %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
        return %t : tensor<16x8xf32>
      }"""
    assert str(_rewritten(text)) == str(ir.Module.parse(text, CONTEXT))


@pytest.mark.parametrize("second", ["%t", "%u", "%x"])
def test_a_product_of_an_array_and_its_transpose(second: str) -> None:
    text = f"""
      func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
        %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
        %u = stablehlo.transpose %t, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
        %p = stablehlo.dot_general %t, {second}, contracting_dims = [1] x [0], precision = [HIGH, HIGHEST]
          : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        return %p : tensor<4x4xf32>
      }}"""
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    module = _rewritten(text)
    np.testing.assert_array_equal(_evaluated(module, [x]), x.T @ (x.T if second == "%t" else x))
