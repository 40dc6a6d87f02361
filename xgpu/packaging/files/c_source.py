"""The C header and source of a package: templates, and tables of the program's steps and kernels."""

from collections.abc import Iterator, Sequence

from xgpu.packaging.files.filling import filled, table
from xgpu.packaging.files.interface import Interface, aliasing, described_arrays
from xgpu.packaging.model import (
    ChoiceStep,
    CopyStep,
    LaunchStep,
    LoopStep,
    Package,
    PackageArray,
    PackageSignature,
    Step,
    StepMemory,
    SwapStep,
    TargetCode,
    Variant,
    ZeroStep,
    all_steps,
    inner_steps,
    places_of,
)
from xgpu.target.host.context import ALIGNMENT, FRAME_ALIGNMENT, SHARED, UNWRITTEN_BYTE, offset_of

_BYTES_PER_LINE = 32
_WAITS = {False: "none waits for the GPU", True: "only to run waits for the GPU"}
_ADDS = {
    False: "Adds the program to a stream.",
    True: "Adds the program to a stream. What comes next in it depends on values that it computes: the call waits for\n"
    " * the stream to read them, so that all but the last part has been done when it returns;\n"
    " * it cannot be captured.",
}
"""The header's sentences, by whether a call waits."""


def c_files(interface: Interface) -> dict[str, str]:
    """Return the header, the source, and the source's own header with the kernels of all targets, by their paths."""
    package = interface.package
    values = interface.values | _values(interface)
    parts = {name.upper(): filled(f"{name}.c", values) for name in ("host", "gpu")}
    return {
        f"include/xgpu/{package.name}.h": filled("header.h", values),
        f"src/{package.name}.c": filled("program.c", values | parts),
        f"src/{package.name}_kernels.h": _kernels_header(package.targets),
    }


def _parameters(interface: Interface, names: Sequence[str]) -> str:
    """Return the declarations of a call's sizes and arrays, which have these names, each on a line."""
    sizes = [f"int64_t {name}" for name in interface.package.size_names]
    types = [f"const {interface.type_of(each).c}" for each in interface.arguments]
    types += [interface.type_of(each).c for each in interface.results]
    arrays = [f"{type_} *{name}" for type_, name in zip(types, names, strict=True)]
    return "".join(f"    {each},\n" for each in (*sizes, *arrays))


def _values(interface: Interface) -> dict[str, str]:
    package = interface.package
    sizes = "".join(f"int64_t {name}, " for name in package.size_names)
    # In the source they have other names than in the header, so that none is that of a type or a table there.
    pointers = [f"in_{number}" for number in range(len(interface.arguments))]
    pointers += [f"out_{number}" for number in range(len(interface.results))]
    places = [len(step.places) for each in package.signatures for step in _launches(each)]
    return {
        "TYPES": "".join(f"{each.c_declaration}\n\n" for each in interface.declared),
        "EXTENTS": "\n".join(f"  size_t {each.name};" for each in interface.arrays) or "  /* no arrays */",
        "SIZES": sizes,
        "PARAMETERS": _parameters(interface, [each.name for each in interface.arrays]),
        "UNNAMED_PARAMETERS": _parameters(interface, pointers),
        "ARRAYS": "\n".join(f" *   {line}" for line in described_arrays(interface)) or " *   (no arrays)",
        "ALIASES": "\n".join(f" * {line}" for line in aliasing(interface)) + "\n",
        "SIZE_ROOM": str(max(len(package.size_names), 1)),
        "SIZE_COUNT": str(len(package.size_names)),
        "ARGUMENTS": str(len(interface.arguments)),
        "RESULTS": str(len(interface.results)),
        "SIGNATURE_COUNT": str(len(package.signatures)),
        "TARGET_COUNT": str(len(package.targets)),
        "MOST_PLACES": str(max([2, *places])),
        "MOST_SLOTS": str(max([1, *(len(variant.slots) for each in package.signatures for variant in each.variants)])),
        "WAITS": _WAITS[package.waits],
        "ADDS": _ADDS[package.waits],
        "TABLES": "\n\n".join(_tables(interface)),
        "FIND": _find_signature(interface),
        "COLLECT_SIZES": _collect_sizes(package),
        "FILL_EXTENTS": "\n".join(
            f"  extents->{each.name} = of->arrays[{number}].extent;" for number, each in enumerate(interface.arrays)
        ),
        "POINTERS": "".join(f"{name}, " for name in pointers),
        "HOST_TABLES": _host_tables(package) if package.host is not None else _NO_HOST,
        "CONTEXT_ALIGNMENT": str(ALIGNMENT),
        "SHARED": str(SHARED),
        "UNWRITTEN": str(UNWRITTEN_BYTE),
        "DIVERGED": str(offset_of("diverged")),
        "FRAME_ALIGNMENT": str(FRAME_ALIGNMENT),
    }


_NO_HOST = '#error "this package was exported without a host library"\nstatic const kernel kernels[1];'


def _launches(signature: PackageSignature) -> Iterator[LaunchStep]:
    for variant in signature.variants:
        yield from (step for step in all_steps(variant.steps) if isinstance(step, LaunchStep))


def _tables(interface: Interface) -> Iterator[str]:
    package = interface.package
    names = [f'"{each.name}"' for each in interface.arrays]
    yield table("char *const array_names", [*names, "NULL"])
    for number, signature in enumerate(package.signatures):
        for target, variant in enumerate(signature.variants):
            yield from _variant_tables(variant, f"{number}_{target}")
        rows = [f"{{{_variant_row(variant, f'{number}_{t}')}}}" for t, variant in enumerate(signature.variants)]
        yield table(f"variant variants_{number}", rows)
        extents = [interface.type_of(each).count(each) for each in signature.arrays]
        arrays = zip(signature.arrays, extents, strict=True)
        yield table(f"array arrays_{number}", [_array_row(each, extent) for each, extent in arrays])
        yield table(f"in_place pairs_{number}", [f"{{{r}, {a}}}" for r, a in signature.in_place])
    yield table("signature signatures", [_signature_row(each, n) for n, each in enumerate(package.signatures)])


def _array_row(array: PackageArray, extent: int) -> str:
    return f"{{{array.bytes}, {array.alignment}, {extent}}}"


def _signature_row(signature: PackageSignature, number: int) -> str:
    sizes = ", ".join(map(str, signature.sizes)) or "0"
    pairs = f"pairs_{number}, {len(signature.in_place)}"
    return f"{{{{{sizes}}}, arrays_{number}, {pairs}, {signature.scratch_bytes}, variants_{number}}}"


def _variant_row(variant: Variant, key: str) -> str:
    slots = f"slots_{key}, {len(variant.slots)}, {str(variant.waits).lower()}"
    return f"steps_{key}, {sum(1 for _ in _rows(variant.steps, []))}, places_{key}, {slots}"


def _variant_tables(variant: Variant, key: str) -> Iterator[str]:
    places: list[StepMemory] = []
    steps = list(_rows(variant.steps, places))
    yield table(f"place places_{key}", list(map(_place, places)))
    yield table(f"place slots_{key}", list(map(_place, variant.slots)))
    yield table(f"step steps_{key}", steps)


def _place(place: StepMemory) -> str:
    return f"{{{place.base.name}, {place.number}}}"


def _rows(steps: Sequence[Step], places: list[StepMemory]) -> Iterator[str]:
    """Yield the rows of steps, each before those of the steps inside it; their ``places`` are appended."""
    for step in steps:
        its, first = places_of(step), len(places)
        places += its
        inside = [list(_rows(each, places)) for each in inner_steps(step)]
        if isinstance(step, ChoiceStep):
            inside = [[f"{{BRANCH, 0, 0, 0, {len(rows)}, 0}}", *rows] for rows in inside]
        number = step.kernel if isinstance(step, LaunchStep) else len(inside)
        rows = [row for each in inside for row in each]
        yield f"{{{_what(step)}, {number}, {first}, {len(its)}, {len(rows)}, {_amount(step)}}}"
        yield from rows


def _what(step: Step) -> str:
    if isinstance(step, LoopStep):
        return "REPEAT" if step.condition is None else "WHILE"
    return {LaunchStep: "LAUNCH", CopyStep: "COPY", ZeroStep: "ZERO", SwapStep: "SWAP", ChoiceStep: "CHOOSE"}[
        type(step)
    ]


def _amount(step: Step) -> int:
    if isinstance(step, CopyStep | ZeroStep):
        return step.bytes
    if isinstance(step, LoopStep):
        return step.trips or 0
    return (1 if step.is_truth else 4) if isinstance(step, ChoiceStep) else 0


def _find_signature(interface: Interface) -> str:
    name = interface.name
    head = f"static {name}_status find_signature(const int64_t *sizes, const signature **found) {{"
    if not interface.package.size_names:
        return f"{head}\n  (void)sizes;\n  *found = &signatures[0];\n  return {name.upper()}_OK;\n}}"
    given = ", ".join(f"{each} = %lld" for each in interface.package.size_names)
    values = ", ".join(f"(long long)sizes[{n}]" for n in range(len(interface.package.size_names)))
    return f"""{head}
  for (unsigned n = 0; n < SIGNATURES; n++) {{
    *found = &signatures[n];
    if (memcmp(signatures[n].sizes, sizes, sizeof signatures[n].sizes) == 0) return {name.upper()}_OK;
  }}
  return fail({name.upper()}_UNKNOWN_SIZE, "no kernels for {given}; there are for {interface.known_sizes}", {values});
}}"""


def _collect_sizes(package: Package) -> str:
    if not package.size_names:
        return "  const int64_t *sizes = NULL;"
    return f"  const int64_t sizes[SIZES] = {{{', '.join(package.size_names)}}};"


def _host_tables(package: Package) -> str:
    assert package.host is not None
    declarations, rows = [], []
    for kernel, gpu in zip(package.host.kernels, package.targets[0].kernels, strict=True):
        declarations.append(f"extern blocks_function {kernel.symbol}__blocks;")
        make = f"{kernel.symbol}__make" if kernel.is_coroutine else "NULL"
        if kernel.is_coroutine:
            declarations.append(f"extern make_function {make};")
        numbers = kernel.clusters, kernel.cluster_blocks, kernel.threads, kernel.frames, kernel.shared_bytes
        rows.append(f'{{"{gpu.name}", {kernel.symbol}__blocks, {make}, {", ".join(map(str, numbers))}}}')
    return "\n".join([*declarations, "", table("kernel kernels", rows)])


def _kernels_header(targets: tuple[TargetCode, ...]) -> str:
    parts = ["/* The kernels, as PTX and as machine code. */"]
    most = max(len(code.kernels) for code in targets)
    parts.append(f"enum {{ MOST_KERNELS = {max(most, 1)} }};")
    target_rows = []
    for t, code in enumerate(targets):
        rows = []
        for k, kernel in enumerate(code.kernels):
            parts.append(_bytes_table(f"ptx_{t}_{k}", kernel.ptx.encode() + b"\0"))
            cubin = "NULL"
            if kernel.cubin is not None:
                cubin = f"cubin_{t}_{k}"
                parts.append(_bytes_table(cubin, kernel.cubin))
            grid, block = (", ".join(map(str, each)) for each in (kernel.grid, kernel.block))
            rows.append(f'{{"{kernel.name}", ptx_{t}_{k}, {cubin}, {{{grid}}}, {{{block}}}, {kernel.shared_bytes}}}')
        parts.append(table(f"kernel kernels_{t}", rows))
        cpu = code.target.cpu
        suits = {"a": "ALONE", "f": "FAMILY"}.get(cpu[-1], "ANY")
        capability = code.target.compute_capability
        target_rows.append(f'{{"{code.target.name}", {capability}, {suits}, {len(rows)}, kernels_{t}}}')
    parts.append(table("target targets", target_rows))
    parts.append(f'static const char target_names[] = "{", ".join(code.target.name for code in targets)}";')
    return "\n\n".join(parts) + "\n"


def _bytes_table(name: str, data: bytes) -> str:
    """Return a table of bytes, aligned as ELF files are."""
    lines = [",".join(map(str, data[i : i + _BYTES_PER_LINE])) for i in range(0, len(data), _BYTES_PER_LINE)]
    return f"static const unsigned char {name}[] __attribute__((aligned(16))) = {{\n" + ",\n".join(lines) + "};"
