"""The argument parser of the commands: wrong usage is one line on stderr and exit code 2."""

import argparse
from typing import NoReturn

from xgpu.cli.process import UsageError


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` and accepts no abbreviated options; its help keeps line breaks."""

    def __init__(self, prog: str, description: str, epilog: str | None = None, add_help: bool = True):
        super().__init__(
            prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=add_help,
        )

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`."""
        raise UsageError(f"{message}; see {self.prog} --help")
