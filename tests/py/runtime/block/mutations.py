"""Kernels that each lack one operation of a correct one: a wait, an arrival, a fence or the end of a group."""

import re
from collections import Counter
from collections.abc import Iterator

NEEDED = (
    *("async_commit", "async_wait", "bulk_commit", "bulk_wait", "acquire_tensor_map", "fence", "named_barrier"),
    *("mbarrier_init", "mbarrier_expect", "mbarrier_arrive", "mbarrier_arrive_remote", "mbarrier_wait"),
    *("cluster_arrive", "cluster_wait", "warpgroup_fence", "warpgroup_commit", "warpgroup_wait"),
)
_BARRIER = re.compile(r"gpu\.barrier")
_OPERATION = re.compile(r'(%\w+ = )?"xgpu\.(\w+)"\(([^)]*)\)')
_RESULT_TYPE = re.compile(r"-> (\(\)|vector<\w+>)")


def mutations(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the kernels that lack one of the operations; names count from 0 for each operation.

    What has a result is replaced by its operand.
    """
    counts: Counter[str] = Counter()
    for match in _BARRIER.finditer(text):
        yield f"barrier-{counts['barrier']}", text[: match.start()] + text[match.end() :]
        counts["barrier"] += 1
    for match in _OPERATION.finditer(text):
        result, name, operands = match.groups()
        if name not in NEEDED:
            continue
        end = _RESULT_TYPE.search(text, match.end())
        assert end is not None
        changed = text[: match.start()] + text[end.end() :]
        if result:
            changed = re.sub(rf"{result.removesuffix(' = ')}\b", operands, changed)
        yield f"{name}-{counts[name]}", changed
        counts[name] += 1
