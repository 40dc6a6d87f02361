"""LLVM modules in process: parsing, verifying and running LLVM's standard passes (llvmlite)."""

import re
from functools import cache

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from xgpu.errors import CompilerError


@cache
def set_options() -> None:
    """Set LLVM's options, which are those of the process: all code to be kept needs them, in whatever order it is made.

    Machine code for processors depends on them, too, though they are for GPUs.
    """
    # Straight-line strength reduction, which the back ends of GPUs alone run, asks of each sum what others it could be
    # made of: three quarters of the time of a kernel that derives random numbers, whose PTX stays the same.
    llvm.set_option("", "--opt-disable=slsr")
    # The back end would move what a branch's result is used for behind all later branches: of many sines, each with a
    # call for large arguments, it keeps the operands of all in registers, across the calls, instead of each result.
    # LLVM's passes before it have already moved into a branch what only that one needs.
    llvm.set_option("", "--disable-machine-sink")


def parse_llvm_ir(llvm_ir: str) -> llvm.ModuleRef:
    """Return a verified LLVM module in a context of its own; raises CompilerError with the offending line."""
    try:
        module = llvm.parse_assembly(llvm_ir, context=llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompilerError(_diagnosis(str(error), llvm_ir)) from error
    return module


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt_level: int, vectorize: bool = False) -> None:
    """Run LLVM's standard pipeline of a level on a module, in place."""
    options = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    # LLVM 22.1's loop vectoriser takes an access at b*d + t mod d (d a power of two) for a consecutive one, and reads
    # past the end of an array; see tests/py/target/host/test_host_loops.py.
    options.loop_vectorization = False
    options.slp_vectorization = vectorize
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    try:
        passes.run(module, builder)
    finally:
        _free(passes)


def drop_unreached(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Erase blocks that nothing reaches, in place; without optimisation, each part of a coroutine has all of them."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sccp_pass()
    try:
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    finally:
        _free(passes)


def _free(passes: NewPassManager) -> None:
    # The class of a module's has two bases, of which the first hides the second one's method: close() frees nothing.
    NewPassManager._dispose(passes)
    passes.detach()


def _diagnosis(message: str, llvm_ir: str) -> str:
    """Return LLVM's message with the line of the text that it is about, where it names one."""
    place = re.search(r"<string>:(\d+):(\d+): error: ([^\n]*)", message)
    if place is None:
        return f"LLVM refused the exported IR: {message.strip()}"
    line, column, reason = int(place[1]), int(place[2]), place[3]
    lines = llvm_ir.splitlines()
    text = lines[line - 1].strip() if line <= len(lines) else ""
    return f"LLVM refused the exported IR at line {line}, column {column}: {reason}\n  {text}"
