"""What planning asks again and again is found once: counted, so that it does not depend on the machine."""

from collections import Counter

import jax
import jax.numpy as jnp

from xgpu.costs.recomputation import MOST_VISITED, Costs
from xgpu.driver.compiler import plan_program
from xgpu.frontend.load import Source, load_source
from xgpu.fusion.grouping.merging import row_programs
from xgpu.fusion.grouping.shared_values import _Round


def _layers() -> Source:
    """Norms and products, with gradients: row programs."""

    def loss(weights, x):
        for w in weights:
            x = x + jnp.tanh(jax.nn.standardize(x) @ w) * jax.nn.softmax(x)
        return jnp.sum(x * x)

    return load_source(jax.grad(loss, (0, 1)), ([jax.ShapeDtypeStruct((256, 256), "float32")] * 4, "f32[512,256]"))


def _alignment() -> Source:
    """Cells of which each needs three others, with gradients: values that kernels of several levels need."""

    def best(costs):
        above = [jnp.zeros(())] * 7
        for row in costs:
            cells = [jnp.zeros(())]
            for i, cost in enumerate(row):
                cells.append(cost - jax.nn.logsumexp(-jnp.stack([above[i], above[i + 1], cells[-1]])))
            above = cells
        return above[-1]

    return load_source(jax.grad(best), ("f32[6,6]",))


def test_the_cost_of_a_value_is_found_once_in_a_round(monkeypatch):
    asked, found = Counter[object](), Counter[object]()
    cost, of = _Round._cost, Costs.of

    def asking(self, value, level, most=MOST_VISITED):
        asked[id(self._stored_at), value, level, most] += 1
        return cost(self, value, level, most)

    def finding(self, value, stored_at, level, most=MOST_VISITED, is_known=None, has_tiles=True):
        if is_known is None:
            kept.append(stored_at)
            found[id(stored_at), value, level, most] += 1
        return of(self, value, stored_at, level, most, is_known, has_tiles)

    kept: list[object] = []
    monkeypatch.setattr(_Round, "_cost", asking)
    monkeypatch.setattr(Costs, "of", finding)
    plan_program(_alignment().module)
    assert max(asked.values()) > 1
    assert max(found.values()) == 1


def test_what_kernels_read_is_found_again_if_more_is_stored_alone(monkeypatch):
    """Row programs grow by one kernel after the other, and each of them asks what all that it has so far read."""
    asked, found = Counter[object](), dict[object, list[object]]()
    read = row_programs.RowPrograms.read

    def asking(self, group):
        key = self, group, tuple(self._levels.values()), tuple(self._stored_at.values())
        asked[key] += 1
        found.setdefault(key, []).append(read(self, group))
        return found[key][-1]

    monkeypatch.setattr(row_programs.RowPrograms, "read", asking)
    plan_program(_layers().module)
    assert max(asked.values()) > 1
    assert all(each is results[0] for results in found.values() for each in results)
