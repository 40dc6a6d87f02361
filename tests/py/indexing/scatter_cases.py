"""Scatters drawn at random, and what they mean: StableHLO's words, with windows dropped as a whole as in XLA."""

import random
from math import prod

import numpy as np

INDEX_TYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]


class Case:
    """A scatter of integers. Its region combines them in a way that depends on their order, or adds them."""

    def __init__(self, rng: random.Random, adds: bool = False):
        self.factor = 1 if adds else 2
        self.shape = tuple(rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(0, 3)))
        dims = list(range(len(self.shape)))
        roles = [rng.choice(["batch", "inserted", "window", "window"]) for _ in dims]
        self.batching = [i for i in dims if roles[i] == "batch"]
        self.inserted = [i for i in dims if roles[i] == "inserted"]
        window = [i for i in dims if roles[i] == "window"]
        others = [i for i in dims if i not in self.batching]
        self.targets = rng.sample(others, rng.randint(0, len(others)))
        # Dimensions of the indices but the vector's: free ones and those of the batches, in any order.
        free = [rng.choice([1, 2, 2, 3]) for _ in range(rng.randint(0, 2))]
        places = [*[(None, size) for size in free], *[(i, self.shape[i]) for i in self.batching]]
        rng.shuffle(places)
        self.batches = [size for _, size in places]
        in_updates = [next(j for j, (i, _) in enumerate(places) if i == dim) for dim in self.batching]
        self.vector_dim = rng.randint(0, len(self.batches))
        self.indices_batching = [j + (j >= self.vector_dim) for j in in_updates]
        if len(self.targets) == 1 and rng.random() < 0.3:
            self.vector_dim, self.indices_batching = len(self.batches), in_updates
            self.indices_shape = list(self.batches)
        else:
            self.indices_shape = [*self.batches]
            self.indices_shape.insert(self.vector_dim, len(self.targets))
        self.window_sizes = [rng.choice([self.shape[i], rng.randint(1, self.shape[i])]) for i in window]
        self.window = window
        rank = len(self.batches) + len(window)
        self.window_dims = sorted(rng.sample(range(rank), len(window)))
        batches, sizes = iter(self.batches), iter(self.window_sizes)
        self.update_shape = [next(sizes) if i in self.window_dims else next(batches) for i in range(rank)]
        self.operand = np.arange(prod(self.shape), dtype=np.int32).reshape(self.shape)
        self.updates = np.arange(100, 100 + prod(self.update_shape), dtype=np.int32).reshape(self.update_shape)
        dtype = rng.choice(INDEX_TYPES)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        drawn = [rng.choice([rng.randint(max(-2, low), 5), rng.randint(0, 2), low, high]) for _ in range(self._count())]
        self.indices = np.array(drawn, dtype).reshape(self.indices_shape)

    def _count(self) -> int:
        return prod(self.indices_shape)

    @property
    def text(self) -> str:
        """The operation, with %0 to %2 for its operands."""
        numbers = {
            "update_window_dims": self.window_dims,
            "inserted_window_dims": self.inserted,
            "input_batching_dims": self.batching,
            "scatter_indices_batching_dims": self.indices_batching,
            "scatter_dims_to_operand_dims": self.targets,
        }
        lists = ", ".join(f"{name} = {values}" for name, values in numbers.items() if values)
        vector = f"{lists}{', ' * bool(lists)}index_vector_dim = {self.vector_dim}"
        return f"""
          "stablehlo.scatter"(%0, %1, %2) <{{scatter_dimension_numbers = #stablehlo.scatter<{vector}>}}> ({{
          ^bb0(%a: tensor<i32>, %b: tensor<i32>):
            %two = stablehlo.add %a, %a : tensor<i32>
            %new = stablehlo.add {"%a" if self.factor == 1 else "%two"}, %b : tensor<i32>
            stablehlo.return %new : tensor<i32>
          }})"""

    def expected(self) -> np.ndarray:
        """The result by StableHLO's words, with windows dropped as a whole as in XLA."""
        result = self.operand.copy()
        for batch in np.ndindex(*self.batches):
            start = dict.fromkeys(range(len(self.shape)), 0)
            where = list(batch)
            if len(self.indices_shape) > len(self.batches):
                where.insert(self.vector_dim, slice(None))
            for target, index in zip(self.targets, np.atleast_1d(self.indices[tuple(where)]), strict=True):
                start[target] = int(index)
            for dim, position in zip(self.batching, self.indices_batching, strict=True):
                start[dim] = where[position]
            sizes = dict.fromkeys(range(len(self.shape)), 1) | dict(zip(self.window, self.window_sizes, strict=True))
            if any(not 0 <= start[i] <= size - sizes[i] for i, size in enumerate(self.shape)):
                continue
            for offset in np.ndindex(*self.window_sizes):
                place = [start[i] + dict(zip(self.window, offset, strict=True)).get(i, 0) for i in start]
                batches, offsets = iter(batch), iter(offset)
                update = [next(offsets) if i in self.window_dims else next(batches) for i in range(self.updates.ndim)]
                result[tuple(place)] = self.factor * result[tuple(place)] + self.updates[tuple(update)]
        return result
