"""Shared parts of the C, C++ and Rust interfaces of a package: parameters, sizes, and descriptions of arrays."""

from collections.abc import Iterator
from functools import cached_property

import xgpu
from xgpu.packaging.files.element_types import CElementType, declared_types, element_type
from xgpu.packaging.model import SCRATCH_ALIGNMENT, Package, PackageArray
from xgpu.records import dataclass

_HOST_NOTE = (
    "The library xgpu_{}_host has the same functions\n"
    " * for arrays in the memory of the processor, and ignores streams."
)


@dataclass(frozen=True)
class Interface:
    """A package as its functions show it. Signatures differ in sizes alone, so the first one's arrays name all."""

    package: Package

    @property
    def name(self) -> str:
        """The prefix of the package's functions."""
        return self.package.name

    @property
    def title(self) -> str:
        """A line that says what the package is."""
        arguments, results = (", ".join(map(self.text_of, each)) for each in (self.arguments, self.results))
        return f"{self.name}: ({arguments}) -> ({results})"

    @property
    def version(self) -> str:
        """The version of the compiler."""
        return xgpu.__version__

    @property
    def arguments(self) -> tuple[PackageArray, ...]:
        """The arguments, of the first sizes."""
        return self.package.signatures[0].arguments

    @property
    def results(self) -> tuple[PackageArray, ...]:
        """The results, of the first sizes."""
        return self.package.signatures[0].results

    @property
    def arrays(self) -> tuple[PackageArray, ...]:
        """Arguments, then results."""
        return (*self.arguments, *self.results)

    @property
    def values(self) -> dict[str, str]:
        """The values that every template may name."""
        host = self.package.host
        return {
            "P": self.name,
            "U": self.name.upper(),
            "TITLE": self.title,
            "VERSION": self.version,
            "SOURCE": self.package.source_name,
            "ARCHITECTURE": "none" if host is None else host.architecture,
            "SCRATCH_ALIGNMENT": str(SCRATCH_ALIGNMENT),
            "HOST_BUILD": self._host_build,
            "HOST_NOTE": _HOST_NOTE.format(self.name) if host is not None else "It has no kernels for the processor.",
            "FOR_SIZES": " for these sizes" if self.package.size_names else "",
        }

    @property
    def _host_build(self) -> str:
        host, name = self.package.host, self.name
        if host is None:
            return "There are no\nkernels for the processor in this package."
        compile_ = f"`cc -c -O2 -Iinclude -D{name.upper()}_HOST src/{name}.c`"
        return f"For the processor:\n{compile_}, and link with\n`{host.object_path(name)} -lm`."

    def type_of(self, array: PackageArray) -> CElementType:
        """Return the type that an array's pointer points to."""
        return element_type(array.dtype, self.name)

    @cached_property
    def declared(self) -> list[CElementType]:
        """The types that the languages lack."""
        return declared_types(self.arrays, self.name)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {array.name: number for number, array in enumerate(self.arrays)}

    def text_of(self, array: PackageArray) -> str:
        """Return name, type and shape of an array, with the names of sizes where signatures differ."""
        return f"{array.name}: {array.dtype.hlo}[{', '.join(self._sizes_of(array))}]"

    def _sizes_of(self, array: PackageArray) -> list[str]:
        position = self._positions[array.name]
        shapes = [signature.arrays[position].shape for signature in self.package.signatures]
        known = {
            tuple(signature.sizes[number] for signature in self.package.signatures): name
            for number, name in enumerate(self.package.size_names)
        }
        sizes = []
        for dimension in zip(*shapes, strict=True):
            one = str(dimension[0]) if len(set(dimension)) == 1 else known.get(dimension)
            sizes.append(one or " or ".join(map(str, dimension)))
        return sizes

    @property
    def in_place(self) -> list[tuple[PackageArray, PackageArray]]:
        """Pairs of a result and an argument that may be one memory, in every signature."""
        first, *others = (set(signature.in_place) for signature in self.package.signatures)
        pairs = sorted(first.intersection(*others))
        return [(self.results[result], self.arguments[argument]) for result, argument in pairs]

    @property
    def known_sizes(self) -> str:
        """The sizes for which there are kernels, as text."""
        each = [
            ", ".join(f"{name} = {size}" for name, size in zip(self.package.size_names, signature.sizes, strict=True))
            for signature in self.package.signatures
        ]
        return "; ".join(each)


def described_arrays(interface: Interface) -> Iterator[str]:
    """Yield a line for each array: name, type, shape, alignment, and whether it is read or written."""
    for number, each in enumerate(interface.arrays):
        does = "read" if number < len(interface.arguments) else "written"
        yield f"{interface.text_of(each)}, aligned to {each.alignment} bytes, {does}"


def aliasing(interface: Interface) -> Iterator[str]:
    """Yield lines that say which arrays may be the same memory."""
    pairs = [f"{result.name} may be {argument.name}" for result, argument in interface.in_place]
    yield "Arguments may share memory with each other. Results, and scratch, may share it with no other array" + (
        "." if not pairs else ", but"
    )
    if pairs:
        yield f"{', and '.join(pairs)}, which is updated in place then."
