"""The table that ``--mlir-timing`` and ``--timing`` print."""

from collections.abc import Sequence

_RULE = f"===-{'-' * 73}-==="


def summed(times: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the seconds of each name in all, as the kernels of a program go through the same stages and passes."""
    totals: dict[str, float] = {}
    for name, seconds in times:
        totals[name] = totals.get(name, 0.0) + seconds
    return list(totals.items())


def timing_table(times: Sequence[tuple[str, float]]) -> str:
    """Return a table of (name, seconds), in the order given, with each share of the total."""
    total = sum(seconds for _, seconds in times)
    lines = [_RULE, "... Execution time report ...".center(len(_RULE)).rstrip(), _RULE]
    lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
    for name, seconds in [*times, ("Total", total)]:
        share = 100 * seconds / total if total else 0.0
        lines.append(f"  {seconds:8.4f} ({share:5.1f}%)  {name}")
    return "\n".join(lines)
