"""``xgpu cache``: what is kept on disk."""

import argparse

from xgpu.cli.command import Command
from xgpu.cli.process import DONE


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove all of them")


def _run(arguments: argparse.Namespace) -> int:
    from xgpu.driver.cache import kernel_cache

    kernels = kernel_cache()
    if kernels.folder is None:
        print("nothing is kept: XGPU_CACHE or XGPU_CACHE_DIR turns it off")
    elif arguments.clear:
        print(f"{kernels.folder}: {kernels.clear()} entries removed")
    else:
        files = kernels.entries()
        print(f"{kernels.folder}: {len(files)} entries, {sum(size for _, size in files):,} bytes")
    return DONE


CACHE = Command("cache", "show or clear the kernels and measurements kept on disk", _add_arguments, _run)
