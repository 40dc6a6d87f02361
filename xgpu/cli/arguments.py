"""The argument parser of the commands: wrong usage is one line on stderr and exit code 2."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from xgpu.cli.process import UsageError
from xgpu.errors import did_you_mean


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

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Raise `UsageError` for what is not known, before a command's own parser hands it to the parser of all."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # All begin with two dashes, which makes any two of them near.
            near = did_you_mean(unknown[0].partition("=")[0], self._option_string_actions, similarity=0.75)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`."""
        raise UsageError(f"{message}; see {self.prog} --help")
