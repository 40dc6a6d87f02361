"""Requirements of a fusion by the emitter that its plan names: its heroes, its results and what it updates in place.

A requirement returns what was expected where a fusion is something else, and None where it is right. The planner makes
only fusions that are right; a person who edits its plan, or writes one, may not.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.root_indices import KernelWalk, overwritten_where_read
from xgpu.dialects.attributes import ALIASES
from xgpu.emit.base import Fusion
from xgpu.hlo.accumulator_types import check_accumulators
from xgpu.indexing.access import shape_of

Requirement = Callable[[Fusion], str | None]
"""Returns what a fusion was expected to be, where it is not that."""


def outside(fusion: Fusion) -> str | None:
    """Require results with elements, and aliases that are parameters of their types.

    Raises `Unsupported` for a reduction whose initial value is of another type than its elements.
    """
    if not fusion.results or any(not math.prod(shape_of(value)) for value in fusion.results):
        return "expected results, each with elements"
    if len(list(fusion.body.owner.regions[0].blocks)) != 1:
        return "expected a function of one block"
    for op in fusion.body.operations:
        check_accumulators(op.operation)
    if not fusion.aliases:
        return None
    if len(fusion.aliases) != len(fusion.results):
        return f"expected one number in {ALIASES} for each of its {len(fusion.results)} results"
    updated = [number for number in fusion.aliases if number >= 0]
    if max(updated, default=-1) >= len(fusion.body.arguments) or len(set(updated)) != len(updated):
        return f"expected {ALIASES} to be different numbers of its {len(fusion.body.arguments)} parameters, or -1"
    for number, result in zip(fusion.aliases, fusion.results, strict=True):
        if number >= 0 and fusion.body.arguments[number].type != result.type:
            return f"expected {ALIASES} to be parameters of their results' types"
    return None


def results_of_one_shape(fusion: Fusion) -> str | None:
    """Require results of one shape."""
    shapes = {shape_of(value) for value in fusion.results}
    return None if len(shapes) == 1 else "expected results of one shape"


def any_results(fusion: Fusion) -> str | None:
    """Require nothing."""
    return None


def results_follow(fusion: Fusion) -> str | None:
    """Require that each result follows the heroes, element by element, or has their shape."""
    followers, shape = fusion.facts.followers, shape_of(fusion.heroes[0].results[0])
    if any(value not in followers and shape_of(value) != shape for value in fusion.results):
        return "expected each of its results to follow the heroes element by element"
    return None


def results_follow_or_beside(fusion: Fusion) -> str | None:
    """Require that each result follows the heroes, or has their shape or as many elements as their operands."""
    followers, hero = fusion.facts.followers, fusion.heroes[0]
    shape, elements = shape_of(hero.results[0]), math.prod(shape_of(hero.operands[0]))
    others = [shape_of(value) for value in fusion.results if value not in followers]
    if any(each != shape and math.prod(each) != elements for each in others):
        return "expected each of its results to follow the heroes, or to be of their shape or of their operands' size"
    return None


def results_follow_or_operands(fusion: Fusion) -> str | None:
    """Require that each result follows the heroes or has the shape of their result or operand."""
    followers, hero = fusion.facts.followers, fusion.heroes[0]
    shapes = (shape_of(hero.results[0]), shape_of(hero.operands[0]))
    if any(value not in followers and shape_of(value) not in shapes for value in fusion.results):
        return "expected each of its results to follow the heroes, or to be of their operands' shape"
    return None


def without_packed(requirement: Requirement) -> Requirement:
    """Require that no elements of results share a byte, besides ``requirement``."""

    def both(fusion: Fusion) -> str | None:
        if any(map(is_packed, fusion.results)):
            return "expected results whose elements do not share bytes"
        return requirement(fusion)

    return both


def hero_results(fusion: Fusion) -> str | None:
    """Require the heroes' results, in order."""
    made = [value for hero in fusion.heroes for value in hero.results]
    return None if fusion.results == made else "expected the heroes' results, in order"


def of_heroes(fusion: Fusion) -> str | None:
    """Require results of the heroes, each once, in any order."""
    made = [value for hero in fusion.heroes for value in hero.results]
    is_own = all(value in made for value in fusion.results) and len(set(fusion.results)) == len(fusion.results)
    return None if is_own else "expected results of its heroes, each once"


def no_aliases(fusion: Fusion) -> str | None:
    """Require that nothing is updated in place."""
    return f"expected no {ALIASES}, as this emitter updates nothing in place" if any_alias(fusion) else None


def any_alias(fusion: Fusion) -> bool:
    """Tell whether a result takes over a parameter's memory."""
    return any(number >= 0 for number in fusion.aliases)


def own_elements(fusion: Fusion) -> str | None:
    """Require of what is updated in place that each thread reads its own elements alone."""
    return _own_elements(fusion, KernelWalk(fusion.results))


def walked_elements(fusion: Fusion) -> str | None:
    """Require the same where threads reduce the fusion's heroes together."""
    return _own_elements(fusion, KernelWalk(fusion.results, fusion.heroes))


def _own_elements(fusion: Fusion, walk: KernelWalk) -> str | None:
    if not any_alias(fusion):
        return None
    overwritten = [fusion.body.arguments[number] if number >= 0 else None for number in fusion.aliases]
    kept = overwritten_where_read([walk], overwritten, lambda value: False)
    updated = [value for value in overwritten if value is not None]
    # What is returned as it is, is written where others would have to read it first.
    is_own = all(value in kept for value in updated) and not any(value in fusion.results for value in updated)
    return None if is_own else f"expected {ALIASES} to be of inputs that are read element by element alone"


def heroes_operands(fusion: Fusion) -> str | None:
    """Require that each result takes over the memory of the operand that its hero updates, read by nothing else."""
    operands = [value for hero in fusion.heroes for value in list(hero.operands)[: len(hero.results)]]
    parameters: Sequence[ir.Value] = list(fusion.body.arguments)
    uses = Counter(value for value in operands)
    if any(uses[value] > 1 or value not in parameters or len(list(value.uses)) > 1 for value in operands):
        return "expected the arrays that its heroes update to be parameters that nothing else reads"
    numbers = tuple(parameters.index(value) for value in operands)
    return None if tuple(fusion.aliases) == numbers else f"expected {ALIASES} = {list(numbers)}, what its heroes update"
