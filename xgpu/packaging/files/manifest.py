"""The manifest of a package: what is in it, and how its kernels are launched, as JSON."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

import llvmlite.binding as llvm

import xgpu
from xgpu.packaging.files.interface import Interface
from xgpu.packaging.model import (
    SCRATCH_ALIGNMENT,
    Base,
    ChoiceStep,
    CopyStep,
    GpuKernel,
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
    inner_steps,
)
from xgpu.target.nvptx.cubin import ptxas_version

PATH = "manifest.json"
SCHEMA = 1
"""Goes up when a field changes its meaning or goes away."""


def manifest_text(package: Package, files: Mapping[str, bytes], checks: Sequence[object]) -> str:
    """Return the manifest of a package that consists of these files, by their paths; ``checks`` were made of it."""
    interface = Interface(package)
    checksums = {path: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for path, data in files.items()}
    described = {
        "schema": SCHEMA,
        "kind": "xgpu package",
        "name": package.name,
        "program": package.source_name,
        "versions": _versions(),
        "sizes": list(package.size_names),
        "signatures": [_signature(interface, each) for each in package.signatures],
        "targets": [_target(each) for each in package.targets],
        "host": None if package.host is None else {"triple": package.host.triple},
        "checks": list(checks),
        "files": checksums,
    }
    return json.dumps(described, indent=1) + "\n"


def kernel_path(target: TargetCode, number: int, suffix: str) -> str:
    """Return where a package has a kernel of a target, by its number, to read."""
    return f"kernels/{target.target.name}/{number}_{target.kernels[number].name}.{suffix}"


def _versions() -> dict[str, str | None]:
    packages = {name: version(name) for name in ("jax", "jaxlib", "llvmlite")}
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    return {"xgpu": xgpu.__version__, **packages, "llvm": llvm_version, "ptxas": ptxas_version()}


def _signature(interface: Interface, signature: PackageSignature) -> dict[str, Any]:
    return {
        "sizes": dict(zip(interface.package.size_names, signature.sizes, strict=True)),
        "arguments": [_array(each) for each in signature.arguments],
        "results": [_array(each) for each in signature.results],
        "in_place": [
            {"result": signature.results[result].name, "argument": signature.arguments[argument].name}
            for result, argument in signature.in_place
        ],
        "scratch": {"bytes": signature.scratch_bytes, "alignment": SCRATCH_ALIGNMENT},
        "variants": [
            {"target": code.target.name, **_variant(signature, variant)}
            for code, variant in zip(interface.package.targets, signature.variants, strict=True)
        ],
    }


def _array(array: PackageArray) -> dict[str, Any]:
    return {
        "name": array.name,
        "called": array.source_name,
        "type": array.dtype.hlo,
        "shape": list(array.shape),
        "layout": "row-major",
        "bytes": array.bytes,
        "alignment": array.alignment,
    }


def _variant(signature: PackageSignature, variant: Variant) -> dict[str, Any]:
    return {
        "scratch_bytes": variant.scratch_bytes,
        "waits": variant.waits,
        "slots": [_place(signature, each) for each in variant.slots],
        "steps": [_step(signature, each) for each in variant.steps],
    }


def _place(signature: PackageSignature, given: StepMemory) -> str:
    if given.base is Base.SCRATCH:
        return f"scratch + {given.number}"
    if given.base is Base.SLOT:
        return f"slot {given.number}"
    arrays = signature.arguments if given.base is Base.ARGUMENT else signature.results
    return arrays[given.number].name


def _step(signature: PackageSignature, step: Step) -> dict[str, Any]:
    place = partial(_place, signature)
    inside = [[_step(signature, each) for each in steps] for steps in inner_steps(step)]
    match step:
        case LaunchStep():
            return {"launch": step.kernel, "on": [place(each) for each in step.places], "writes": list(step.written)}
        case CopyStep():
            return {"copy": place(step.source), "to": place(step.target), "bytes": step.bytes}
        case ZeroStep():
            return {"zero": place(step.target), "bytes": step.bytes}
        case SwapStep():
            return {"swap": [step.first, step.second]}
        case LoopStep():
            if step.condition is not None:
                return {"while": place(step.condition), "steps": inside[0]}
            return {"repeat": step.trips if step.count is None else place(step.count), "steps": inside[0]}
        case ChoiceStep():
            return {"if" if step.is_truth else "case": place(step.index), "branches": inside}


def _target(code: TargetCode) -> dict[str, Any]:
    kernels = [_kernel(code, k, kernel) for k, kernel in enumerate(code.kernels)]
    return {"name": code.target.name, "processor": code.target.cpu, "kernels": kernels}


def _kernel(code: TargetCode, number: int, kernel: GpuKernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "emitter": kernel.emitter,
        "grid": list(kernel.grid),
        "block": list(kernel.block),
        "cluster": list(kernel.cluster),
        "dynamic_shared_bytes": kernel.shared_bytes,
        "parameter_alignments": list(kernel.alignments),
        "resources": None if kernel.resources is None else asdict(kernel.resources),
        "ptx": kernel_path(code, number, "ptx"),
        "cubin": None if kernel.cubin is None else kernel_path(code, number, "cubin"),
    }
