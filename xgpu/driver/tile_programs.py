"""Programs given as one kernel of level ``tiles``, such as block programs."""

from xgpu.device import Device
from xgpu.dialects.input_checks import input_problems
from xgpu.driver.compiler import Launch, Program
from xgpu.driver.kernel import ProgramKernel, Times
from xgpu.errors import CompilerError, InvalidInput
from xgpu.frontend.signature import Source
from xgpu.hlo.source_location import source_of
from xgpu.options import Options

LEVEL = "tiles"


def tile_program(source: Source, target: Device, options: Options, times: Times) -> Program:
    """Return the kernel of a module of level ``tiles``, and its launch.

    Raises InvalidInput for a kernel whose tiles threads cannot compute as they are.
    """
    # What a person decides stands in attributes, as in text that comes from outside.
    for problem in input_problems(source.module):
        raise InvalidInput(f"kernel {source.name}: {problem.message}", source_of(problem.op))
    kernel = ProgramKernel(source.name, target, options, times, {LEVEL: source.module})
    try:
        kernel.check()
    except CompilerError as error:
        # What passes refuse is what the writer decided.
        raise InvalidInput(f"kernel {source.name}: {error.message}", error.location) from error
    count = len(source.arguments)
    outputs = tuple(range(count, count + len(source.results)))
    launch = Launch(kernel, tuple(range(count)), outputs)
    return Program((kernel,), (launch,), (*source.arguments, *source.results), outputs)
