"""Builds programs of C, C++ and Rust that call exported packages, to be run where there is a GPU and no compiler.

The folder that it writes has executables, data from JAX, and ``run.sh``, which says of each program whether its results
are JAX's: from several threads, and under graph capture. Then it measures what a call takes beside cuLaunchKernel, and
a plain matrix product beside the same loops by nvcc. With ``--host`` it runs on this machine, without a GPU.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import xgpu
from xgpu.tools.shipping.build import FILES, LANGUAGES, build, kernels_of, run_command
from xgpu.tools.shipping.programs import PROGRAMS

_SIZE = 1024
"""Rows and columns of the plain matrix product."""
_RUN = """#!/bin/sh
# Runs all programs; exits with 1 if one is wrong. With a word, such as compute-sanitizer, that word is put before each.
cd "$(dirname "$0")"
failed=0
for data in data/*; do
  for language in {languages}; do
    case=$(basename "$data")
    printf '%s, %s: ' "$case" "$language"
    "$@" "bin/${{case}}_$language" "$data" || failed=1
  done
done
{measurements}
exit $failed
"""


_CALLS = """for data in data/*; do
  printf 'a call of %s: ' "$(basename "$data")"
  "bin/$(basename "$data")_c" "$data" time
done"""


def main(argv: Sequence[str] | None = None) -> int:
    """Build what the words given choose, or all."""
    parser = argparse.ArgumentParser("shipping", description=__doc__)
    parser.add_argument("words", nargs="*", help="only programs whose name contains one of these")
    parser.add_argument("-o", dest="to", type=Path, required=True, metavar="DIR", help="the folder to write")
    parser.add_argument("--host", action="store_true", help="for this machine's processor")
    parser.add_argument("--target", default="sm_90a", help="the GPU to have kernels for")
    arguments = parser.parse_args(argv)
    to = arguments.to.resolve()
    for name in ("bin", "data", "build"):
        shutil.rmtree(to / name, ignore_errors=True)
    for program in PROGRAMS:
        if not arguments.words or any(word in program.name for word in arguments.words):
            print(program.name, flush=True)
            build(program, to, arguments.host, arguments.target)
    measurements = (
        "" if arguments.host else "\n".join((*_launch_cost(to), *_plain_product(to, arguments.target), _CALLS))
    )
    (to / "run.sh").write_text(_RUN.format(languages=" ".join(LANGUAGES), measurements=measurements))
    (to / "run.sh").chmod(0o755)
    return 0


def _launch_cost(to: Path) -> list[str]:
    """Build what times a call of a package of one kernel, and return the command."""
    case, folder = "bias_relu_0", to / "build" / "bias_relu"
    if not folder.exists():
        return []
    (kernel,) = kernels_of(to, "bias_relu")
    numbers = {name: ", ".join(map(str, kernel[name])) for name in ("grid", "block")}
    header = f'#define KERNEL "{kernel["name"]}"\n#define GRID {numbers["grid"]}\n#define BLOCK {numbers["block"]}\n'
    here = folder / case
    (here / "launch.h").write_text(f"{header}#define SHARED_BYTES {kernel['dynamic_shared_bytes']}\n")
    includes = f"-I{here}", f"-I{FILES}", f"-I{folder / 'package' / 'include'}"
    objects = here / "package.o", here / "harness.o"
    libraries = "-ldl", "-lpthread", "-lm"
    run_command(
        "cc",
        "-std=c11",
        "-O2",
        *includes,
        FILES / "launch_cost.c",
        *objects,
        *libraries,
        "-o",
        to / "bin" / "launch_cost",
    )
    shutil.copy(folder / "package" / kernel["ptx"], to / "bin" / "bias_relu.ptx")
    return [f"bin/launch_cost data/{case} bin/bias_relu.ptx"]


def _plain_product(to: Path, target: str) -> list[str]:
    """Build what times a matrix product in plain loops, ours and nvcc's; nothing where there is no nvcc."""
    nvcc, example = shutil.which("nvcc"), FILES.parents[2] / "examples" / "loops" / "matrix_product.te"
    if nvcc is None:
        return []
    (kernel,) = xgpu.compile(example, *[f"f32[{_SIZE},{_SIZE}]"] * 2, target=target).kernels
    (to / "bin" / "ours.ptx").write_text(kernel.ptx)
    size = f"-DSIZE={_SIZE}"
    flags = "-O3", f"-arch={target}", "-cubin", size
    run_command(nvcc, *flags, FILES / "product.cu", "-o", to / "bin" / "product.cubin")
    sources = "-DSIZE=1024", f"-I{FILES}", FILES / "kernel_time.c", FILES / "harness.c"
    run_command("cc", "-std=gnu11", "-O2", *sources, "-ldl", "-lpthread", "-lm", "-o", to / "bin" / "kernel_time")
    ours = " ".join(map(str, (kernel.name, *kernel.grid, *kernel.block)))
    blocks = ((16, 16), (32, 8), (32, 4), (32, 32), (128, 1), (256, 1))
    theirs = [f"product {_SIZE // x} {_SIZE // y} 1 {x} {y} 1" for x, y in blocks]
    return [
        f"bin/kernel_time bin/ours.ptx {ours}",
        *(f"bin/kernel_time bin/product.cubin {each}" for each in theirs),
    ]


def run(to: Path) -> str:
    """Run what was built, and return what it prints; raises CalledProcessError if a result is wrong."""
    return subprocess.run([to / "run.sh"], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
