"""Options of a compilation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from xgpu.errors import InvalidInput, did_you_mean

PRODUCTS = ("auto", "library", "kernels", "all")
"""What computes matrix products; the first if nobody says otherwise."""


@dataclass(frozen=True)
class Options:
    """Choices that change the compiled kernels; what ``repr`` shows is part of a kernel's identity in a cache.

    ``threads_per_block`` is the block size of kernels whose blocks share nothing: loops, concatenations by a walk,
    slices, scatters, updates. Others choose theirs by the shape. ``max_elements_per_thread`` bounds how many
    consecutive elements of the widest result a thread computes; None leaves the choice to the kernel's family.
    ``opt_level`` is LLVM's.
    ``deterministic`` asks for the same bits from every run where several updates of a scatter have the same place; it
    costs such scatters more kernels and memory, see `xgpu.passes.prepare.order_scatters`. ``keep_barriers`` makes
    ``lax.optimization_barrier`` a boundary that no kernel crosses: what it takes is stored. Without it, barriers are
    removed where kernels compute all else.
    ``products`` says what computes matrix products: ``"auto"`` takes kernels where they are expected to be clearly
    faster on the GPU, with what follows the products, else XLA's libraries; these ``"library"`` takes for all;
    ``"kernels"`` are taken where they are about as fast; or ``"all"`` are kernels', however long that takes, so that
    none needs a library (`xgpu.passes.prepare.products.mark_products`). Programs of ``xgpu.jit`` that run on a CPU have
    those of ``"auto"`` by libraries.
    ``pad_products`` has rows of products padded where they are not aligned and that makes them faster on the GPU;
    programs of ``xgpu.jit`` that run on a CPU have none padded, whatever it says.
    ``fuse_attention`` has attention computed by one kernel where that is expected to be faster on the GPU
    (`xgpu.passes.prepare.products.find_chains`), and never in programs of ``xgpu.jit`` that run on a CPU. With
    ``fuse_attention_gradients`` its gradients are computed so, too, by two or three kernels. ``attention_parts`` is in
    how many parts at most the keys of attention are split, of which blocks compute one each where rows are few; None
    leaves that to the times that are expected (`xgpu.passes.prepare.products.split_chains`).
    ``autotune`` has each product that a kernel can compute measured once, on the GPU that JAX has, with what follows
    it: by the library, and by kernels of several schedules. What is fastest computes it, whatever ``products`` says,
    and is kept on disk with the compiled kernels; see `xgpu.driver.tuning`.
    ``schedules`` fixes numbers of kernels' schedules, by the names of the fusion and of the number:
    ``{"relu_fusion_0": {"vector": 2}}``. ``xgpu explain`` shows both. What is not fixed is chosen. A cache knows a
    kernel's schedule from its text, and so what ``autotune`` chose.
    """

    threads_per_block: int = 128
    max_elements_per_thread: int | None = None
    opt_level: int = 3
    deterministic: bool = False
    keep_barriers: bool = False
    products: str = PRODUCTS[0]
    pad_products: bool = True
    fuse_attention: bool = True
    fuse_attention_gradients: bool = True
    attention_parts: int | None = None
    autotune: bool = field(default=False, repr=False)
    schedules: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidInput for what no kernel can have."""
        for switch in (
            "deterministic",
            "keep_barriers",
            "pad_products",
            "fuse_attention",
            "fuse_attention_gradients",
            "autotune",
        ):
            if not isinstance(getattr(self, switch), bool):
                raise InvalidInput(f"option {switch}: expected True or False, got {getattr(self, switch)!r}")
        if self.products not in PRODUCTS:
            near = did_you_mean(str(self.products), PRODUCTS)
            expected = ", ".join(map(repr, PRODUCTS))
            raise InvalidInput(f"option products: expected {expected}, got {self.products!r}{near}")
        _check("threads_per_block", self.threads_per_block, 1, 1024)
        _check(
            "max_elements_per_thread", 1 if self.max_elements_per_thread is None else self.max_elements_per_thread, 1
        )
        _check("attention_parts", 1 if self.attention_parts is None else self.attention_parts, 1)
        _check("opt_level", self.opt_level, 0, 3)
        if not isinstance(self.schedules, Mapping):
            raise InvalidInput(f"option schedules: expected numbers by name for each fusion, got {self.schedules!r}")
        for name, numbers in self.schedules.items():
            if not isinstance(numbers, Mapping):
                raise InvalidInput(f"option schedules: expected numbers by name for fusion '{name}', got {numbers!r}")


def checked_options(options: Options | None) -> Options:
    """Return ``options``, the usual ones for None; raises InvalidInput for anything else."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise InvalidInput(f"options: expected an xgpu.Options, got {options!r}")
    return options


def _check(name: str, value: Any, least: int, most: int | None = None) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not (is_number and least <= value and (most is None or value <= most)):
        expected = f"a number of at least {least}" if most is None else f"a number from {least} to {most}"
        raise InvalidInput(f"option {name}: expected {expected}, got {value!r}")
