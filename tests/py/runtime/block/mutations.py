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
_OPERATION = re.compile(r'(?:(%\w+)(?::\d+)? = )?"xgpu\.(\w+)"\(([^)]*)\)')
_RESULT_TYPE = re.compile(r"-> (\([^)]*\)|vector<\w+>)")


def mutations(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the kernels that lack one of the operations; names count from 0 for each operation.

    What has results is replaced by its operands.
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
        after = text[end.end() :]
        if result:
            end_of_region = _end_of_region(after)
            inside, outside = after[:end_of_region], after[end_of_region:]
            taken = operands.split(", ")
            for number, operand in enumerate(taken):
                one = rf"{result}#{number}\b" if len(taken) > 1 else rf"{result}\b"
                inside = re.sub(one, operand, inside)
            after = inside + outside
        yield f"{name}-{counts[name]}", text[: match.start()] + after
        counts[name] += 1


def _end_of_region(text: str) -> int:
    """Return where the region ends that a text begins in: values of others may have the same names."""
    depth = 0
    for brace in re.finditer(r"[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if depth < 0:
            return brace.start()
    return len(text)
