"""``xgpu ops`` and ``xgpu devices``: reference texts, made from the declarations."""

import argparse

from xgpu.cli.command import Command
from xgpu.cli.process import DONE
from xgpu.device import DEVICES, KIB
from xgpu.dialects.base import documentation
from xgpu.dialects.xgpu import OPS


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def _ops(arguments: argparse.Namespace) -> int:
    print("\n".join(documentation(op) for op in OPS.values()))
    return DONE


def _devices(arguments: argparse.Namespace) -> int:
    print(f"{'name':10}{'SMs':>5}{'threads/SM':>12}{'shared KiB/block':>18}{'PTX':>6}")
    for device in DEVICES.values():
        shared, ptx = device.shared_bytes_optin // KIB, f"{device.ptx_version / 10:.1f}"
        print(f"{device.name:10}{device.sm_count:5}{device.max_threads_per_sm:12}{shared:18}{ptx:>6}")
    return DONE


OPS_COMMAND = Command("ops", "print the reference of the xgpu dialect's operations, as Markdown", _no_arguments, _ops)
DEVICES_COMMAND = Command("devices", "list the GPUs that can be compiled for", _no_arguments, _devices)
