"""Programs of which a test asks first what kernels there are: to name them in options, with which it compiles them."""

from functools import partial

from xgpu.device import DEFAULT_DEVICE
from xgpu.interface.api import compile_to

TARGET = DEFAULT_DEVICE.device

# No function of its own: programs without a name have that of the function that asks.
planned = partial(compile_to, None)
"""Takes a function, types of its arguments, a device and options; compiles no kernel before its code is asked for."""
