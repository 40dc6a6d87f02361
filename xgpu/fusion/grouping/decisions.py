"""The planner's decisions and their reasons: records that it returns with the plan, text on request."""

from collections.abc import Iterable, Mapping
from enum import Enum

from xgpu import ir
from xgpu.hlo.source_location import source_of
from xgpu.reasons import Reason
from xgpu.records import dataclass


class Verdict(Enum):
    """The outcome of a decision."""

    STORED = "stored"
    RECOMPUTED = "computed again where it is read"
    DROPPED = "not stored after all"
    MERGED = "one kernel"
    APART = "two kernels"
    EMITTED = "emitter"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision on ``value``, or on the kernels of ``value`` and ``other``, with the rule that it follows.

    Costs that were compared are parts of the reason, in bytes of traffic that take as long.
    """

    verdict: Verdict
    value: ir.Value
    reason: Reason
    other: ir.Value | None = None


def merged(value: ir.Value, other: ir.Value, reason: Reason) -> Decision:
    """Return the decision that one kernel computes both ``value`` and ``other``."""
    return Decision(Verdict.MERGED, value, reason, other)


def apart(value: ir.Value, other: ir.Value, reason: Reason) -> Decision:
    """Return the decision that different kernels compute ``value`` and ``other``."""
    return Decision(Verdict.APART, value, reason, other)


def emitted(value: ir.Value, emitter: str, why: Reason) -> Decision:
    """Return the decision on the emitter of the kernel that computes ``value``."""
    return Decision(Verdict.EMITTED, value, Reason("{}: {}", (emitter, why)))


def stored(reasons: Mapping[ir.Value, Reason]) -> list[Decision]:
    """Return the decisions to store values, for these ``reasons``."""
    return [Decision(Verdict.STORED, value, reason) for value, reason in reasons.items()]


def describe(decisions: Iterable[Decision], kernels: Mapping[ir.Value, str]) -> list[str]:
    """Return a line for each of ``decisions``; ``kernels`` names the kernel of each value that is stored in the end."""
    return [_line(each, kernels) for each in decisions if each.verdict != Verdict.STORED or each.value in kernels]


def _line(decision: Decision, kernels: Mapping[ir.Value, str]) -> str:
    name = kernels.get(decision.value) if decision.verdict == Verdict.STORED else None
    other = "" if decision.other is None else f" and {_named(decision.other)}"
    by = "" if name is None else f" by {name}"
    return f"{_named(decision.value)}{other}: {decision.verdict.value}{by}: {decision.reason}"


def _named(value: ir.Value) -> str:
    owner = value.owner
    name = f"argument {ir.BlockArgument(value).arg_number}" if isinstance(owner, ir.Block) else owner.operation.name
    source = source_of(value)
    return f"{name} of type {value.type}" + ("" if source is None else f" ({source.file}:{source.line})")
