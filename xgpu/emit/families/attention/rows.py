"""Writes the base and the divisor of each row's weights, of the program's own code, after the steps of a block."""

import functools
import math

from xgpu import ir
from xgpu.analysis.attention.factors import Factored
from xgpu.analysis.attention.places import Place
from xgpu.analysis.attention.softmax import Softmax
from xgpu.emit.families.attention.facts import AttentionTiles
from xgpu.emit.families.attention.folding import scaled, times
from xgpu.emit.families.attention.tiles import FULL
from xgpu.emit.families.attention.writing import compare
from xgpu.emit.tile_program import TileProgram
from xgpu.hlo.stablehlo_builder import convert, hlo, splat_like
from xgpu.records import dataclass
from xgpu.structure import element_of


@dataclass(frozen=True)
class RowValues:
    """The values of rows of a ``softmax``, of their ``largest`` logits without the factor that is left.

    They are tiles of rows, written by the ``program`` of a block.
    """

    softmax: Softmax
    factored: Factored | None
    largest: ir.Value
    program: TileProgram
    tiles: AttentionTiles

    def reference(self) -> ir.Value:
        """Return what weights are relative to, without the factor that is left: the largest logits, or others."""
        if self.softmax.is_plain:
            return self.largest
        value = self.softmax.largest[0]
        made = convert(self.unfolded(), element_of(value))
        self.program.make(value, lambda map_: made)
        return self.largest if self.softmax.reference is None else self._folded(self._tile(self.softmax.reference))

    def divisor(self, total: ir.Value) -> ir.Value:
        """Return what the weights' powers are divided by, whose sums are ``total``."""
        if self.softmax.divisor is None:
            return total
        value = self.softmax.total[0]
        made = convert(total, element_of(value))
        self.program.make(value, lambda map_: made)
        return self._tile(self.softmax.divisor)

    def multiplied(self, divisor: ir.Value) -> ir.Value:
        """Return what divides sums instead, with the factors that all weights of a row have."""
        factors = self.softmax.factors
        if factors.number != 1:
            divisor = times(divisor, 1 / factors.number)
        for place, divides in factors.others_along(self.tiles.attention.key, is_along=False):
            factor = self._tile(place)
            divisor = hlo.multiply(divisor, factor) if divides else hlo.divide(divisor, factor)
        return divisor

    def is_kept(self, largest: ir.Value, divisor: ir.Value) -> ir.Value | None:
        """Return which rows are not to be zero; None if none is. Rows that see nothing have no largest logit."""
        factors, kept = self.softmax.factors, list[ir.Value]()
        if self.softmax.empty_as_zero:
            kept.append(compare("NE", largest, splat_like(-math.inf, largest)))
        if factors.nan_as_zero:
            kept.append(compare("GT", divisor, splat_like(0, divisor)))
        for (value, map_), keeps in factors.conditions_along(self.tiles.attention.key, is_along=False):
            condition = self.program.tile(value, self.tiles.of_rows(map_))
            kept.append(condition if keeps else hlo.not_(condition))
        return functools.reduce(hlo.and_, kept) if kept else None

    def unfolded(self) -> ir.Value:
        """Return the largest logits as the program has them."""
        if (found := self.factored) is None:
            return self.largest
        product = scaled(self.largest, found)
        if found.condition is None:
            return product
        is_hidden = compare("EQ", self.largest, splat_like(found.hidden, self.largest))
        chosen: ir.Value = hlo.select(is_hidden, splat_like(found.hiding, self.largest), product)
        return chosen

    def _folded(self, value: ir.Value) -> ir.Value:
        """Return logits of the program without the factor that is left."""
        if (found := self.factored) is None:
            return value
        quotient = times(value, 1 / found.factor)
        if found.condition is None or math.isinf(found.hiding):
            return quotient
        is_hidden = compare("EQ", value, splat_like(found.hiding, value))
        chosen: ir.Value = hlo.select(is_hidden, splat_like(found.hidden, value), quotient)
        return chosen

    def _tile(self, place: Place) -> ir.Value:
        value, map_ = place
        return convert(self.program.tile(value, self.tiles.of_rows(map_)), FULL)
