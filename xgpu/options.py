"""Options of a compilation."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from xgpu.errors import InvalidInput, checks_keywords, did_you_mean
from xgpu.records import dataclass

PRODUCTS = ("auto", "library", "kernels", "all")
"""The values of `Options.products`; the first is the default."""
CONTROL_FLOW = ("xla", "launches")
"""The values of `Options.control_flow`; the first is the default."""


@dataclass(frozen=True)
class Options:
    """Choices that change the compiled kernels; what ``repr`` shows is part of a kernel's identity in a cache.

    Of all kernels:

    - ``threads_per_block`` is the block size of kernels whose blocks share nothing: loops, concatenations by a walk,
      slices, scatters, updates. Others choose theirs by the shape.
    - ``max_elements_per_thread`` bounds how many consecutive elements of the widest result a thread computes; None
      leaves the choice to the kernel's family.
    - ``opt_level`` is LLVM's.
    - ``deterministic`` asks for the same bits from every run where several updates of a scatter have the same place.
      Such scatters then cost more kernels and memory, see `xgpu.passes.prepare.order_scatters`.
    - ``keep_barriers`` makes ``lax.optimization_barrier`` a boundary that no kernel crosses: its operands are stored.
      Otherwise barriers are removed where kernels compute all else.
    - ``schedules`` fixes numbers of kernels' schedules, by the names of the fusion and of the number, which ``xgpu
      explain`` shows: ``{"relu_fusion_0": {"vector": 2}}``. The other numbers are chosen.
    - ``control_flow`` says what runs loops and branches that are no kernel themselves. ``"xla"``: XLA, which also
      computes their conditions and what depends on scalars alone. ``"launches"``: a host that launches kernels and
      computes nothing, as the code of packages does (`xgpu.passes.prepare.control`).

    Of matrix products:

    - ``products`` says what computes them (`xgpu.passes.prepare.products.mark_products`). ``"auto"``: kernels where
      they are expected to be clearly faster on the GPU, with their epilogues, and XLA's libraries elsewhere.
      ``"library"``: libraries. ``"kernels"``: kernels where they are about as fast. ``"all"``: kernels, however long
      that takes, so that no library is needed. Programs of ``xgpu.jit`` on a CPU take ``"auto"`` for ``"library"``.
    - ``pad_products`` pads rows of products that are not aligned, where that makes them faster on the GPU; never in
      programs of ``xgpu.jit`` on a CPU.
    - ``autotune`` measures each product that a kernel can compute once, with what follows it, on the GPU that JAX has:
      by the library, and by kernels of several schedules. The fastest computes it, whatever ``products`` says, and is
      kept on disk with the compiled kernels; see `xgpu.driver.tuning`.

    Of attention:

    - ``fuse_attention`` makes attention one kernel where that is expected to be faster on the GPU
      (`xgpu.passes.prepare.products.find_chains`); never in programs of ``xgpu.jit`` on a CPU.
    - ``fuse_attention_gradients`` does so for its gradients, by two or three kernels.
    - ``attention_parts`` is the most parts into which the keys of attention are split among blocks, where rows are
      few; None follows expected times (`xgpu.passes.prepare.products.split_chains`).

    A cache knows a kernel's schedule, and what is a kernel, from its text: so ``schedules``, ``autotune`` and
    ``control_flow`` are not in ``repr``.
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
    control_flow: str = field(default=CONTROL_FLOW[0], repr=False)
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
        _check_word("products", self.products, PRODUCTS)
        _check_word("control_flow", self.control_flow, CONTROL_FLOW)
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


# Here, as dataclass makes it.
Options.__init__ = checks_keywords("xgpu.Options")(Options.__init__)  # type: ignore[method-assign]


def checked_options(options: Options | None) -> Options:
    """Return ``options``, the usual ones for None; raises InvalidInput for anything else."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise InvalidInput(f"options: expected an xgpu.Options, got {options!r}")
    return options


def _check_word(name: str, value: Any, words: Sequence[str]) -> None:
    if value not in words:
        near = did_you_mean(str(value), words)
        raise InvalidInput(f"option {name}: expected {', '.join(map(repr, words))}, got {value!r}{near}")


def _check(name: str, value: Any, least: int, most: int | None = None) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not (is_number and least <= value and (most is None or value <= most)):
        expected = f"a number of at least {least}" if most is None else f"a number from {least} to {most}"
        raise InvalidInput(f"option {name}: expected {expected}, got {value!r}")
