"""Decides whether values that kernels share are materialized or recomputed.

Grouping stores what must be stored; all other values are recomputed by each consumer, and once for each index at which
it reads them. That cost is compared with the cost to store the value, in one of two ways:

- Where kernels of several levels need a value, the first of them may store it for the others. No level changes:
  kernels of a higher level read it, those of the same level still recompute it.
- Where one kernel computes it many times over, all wait for another kernel that stores it, and levels are recomputed.

So the work of a plan is bounded: an operation is recomputed only if that takes less time than memory takes for the
value, or than one more launch. Chains of which each step reads the one before at several indices would otherwise take
time exponential in their length.
"""

import math
from collections.abc import Mapping, Sequence, Set
from functools import cached_property, partial

from xgpu import ir
from xgpu.costs.evaluations import ONLY, Evaluations, Members, Need
from xgpu.costs.long_elements import long_elements
from xgpu.costs.recomputation import LOAD, MOST_MOVES, MOST_VISITED, Cost, Costs
from xgpu.costs.time import bytes_per_instruction, launch_bytes
from xgpu.costs.values import elements
from xgpu.device import Device
from xgpu.fusion.grouping import decisions
from xgpu.fusion.grouping.across import read_across
from xgpu.fusion.grouping.block_facts import BlockFacts
from xgpu.fusion.grouping.decisions import Decision, Verdict
from xgpu.fusion.grouping.families import Families
from xgpu.fusion.grouping.grouper import group_block
from xgpu.fusion.grouping.groups import MOST_OPERATIONS, Group, Grouping, WaitCounts
from xgpu.fusion.grouping.joined_updates import joined_updates
from xgpu.fusion.grouping.known_values import Known, may_be_stored
from xgpu.fusion.grouping.long_epilogues import long_epilogues
from xgpu.fusion.grouping.separate_moves import separate_moves
from xgpu.indexing.access import shape_of
from xgpu.numbered_block import Number, NumberedBlock
from xgpu.reasons import Reason
from xgpu.records import dataclass

type _Choice = dict[Number, int]
"""Values to store, each with the level of the kernel that does."""
type _Needed = Sequence[Need[Group]]
"""The number of times that each kind of kernel computes a value."""
type _Given = tuple[frozenset[tuple[Number, int]], frozenset[Number]]
"""The choice before a round, and the values that are waited for."""

_ROUNDS = 3
"""Iteration limit. Costs and the stored values depend on each other; two iterations mostly reach the fixed point."""
_MOST_GROWTH = 4
"""The factor by which a round may let kernels compute more: beyond it, it is no step towards the fixed point."""
_READ_BY_THREAD = 16
"""Elements that a thread of a reduction reads, about."""
_HIDDEN_MOVES = 2
"""Times as much as what is saved that it must be worth to store what only moves: its loads hide a part of its work."""
_MOST_INSTRUCTIONS_OF_MOVES = LOAD * MOST_MOVES
"""Instructions that finding an element's origin takes at most."""
_MOST_INSTRUCTIONS = 20 * MOST_VISITED
"""Instructions that exceed every estimate, as a value's slice is followed no further than `MOST_VISITED`."""
_MANY = "computed {} times for each element otherwise; storing it pays from {} instructions on, and it takes more"
_FEW = "computed {} times for each element; storing it would pay from {} instructions on, and it takes fewer"
_CHEAP = "computed {} times for each element, in less time than storing it takes, whatever it is computed from"
_COSTS = "to recompute it takes the time of {:,.0f} bytes of traffic (kernels: {}), to store and read it {:,.0f}"
"""Texts of reasons."""
_LONG = Reason("one thread would compute an element of what is computed from it for many launches otherwise")
_GROUPINGS = 8
"""Limit of rebuilding the groups: values that kernels wait for change levels, which may make more values wait."""


def group_operations(
    operations: Sequence[ir.Operation],
    results: Sequence[ir.Value],
    families: Families,
    target: Device,
    scalars_fall_back: bool,
) -> tuple[Grouping, Sequence[Decision]]:
    """Return the groups of a block, with all values stored that are cheaper to store on ``target``, and the decisions.

    ``operations`` are those of the block but for its terminator, ``results`` those that are stored in any case.
    ``families`` are those of the kernels that there may be; ``scalars_fall_back`` is passed on to `group_block`.
    """
    facts = BlockFacts(operations, results, families, target)
    block = NumberedBlock(operations)
    costs, evaluations = Costs(block), Evaluations[Group](block)
    candidates = may_be_stored(block)
    awaited: dict[ir.Value, Reason] = {}
    choice: _Choice = {}
    for _ in range(_GROUPINGS):
        grouping = group_block(facts, scalars_fall_back, awaited)
        known = Known.of(grouping, block, candidates)
        # What was chosen for the groups before is nearly what will be for these.
        expected = {value: level for value, level in choice.items() if value not in known.stored_at}
        choice, more, why = _choose(known, families, costs, evaluations, target, expected)
        chosen = {block.values[value]: (level, why[value].reason) for value, level in reversed(choice.items())}
        planned, separated = separate_moves(grouping.storing(chosen, families), target)
        reasons = {block.values[value]: why[value].reason for value in more}
        if not reasons:
            # Only what no rule stores is one thread's work.
            by_kernels = [op for number, op in enumerate(operations) if number not in known.falling_back]
            stored = grouping.stored_at.keys() | chosen.keys()
            reasons = dict.fromkeys(long_elements(by_kernels, stored, evaluations, target), _LONG)
            reasons = reasons or read_across(by_kernels, planned, families, target)
            reasons = reasons or long_epilogues(planned, target)
            reasons = reasons or joined_updates(by_kernels, planned, evaluations, target)
        if not reasons:
            break
        awaited |= reasons
    recomputed = [each for each in reversed(why.values()) if each.verdict == Verdict.RECOMPUTED]
    return planned, [*decisions.stored(planned.why_stored), *recomputed, *separated]


def _choose(
    known: Known,
    families: Families,
    costs: Costs,
    evaluations: Evaluations[Group],
    target: Device,
    choice: _Choice,
) -> tuple[_Choice, Set[Number], dict[Number, Decision]]:
    """Return the values to store at their first kernel's level, those that kernels are to wait for, and decisions.

    ``choice`` has those that are expected to be stored. A round follows from what is stored before it, so the same one
    is not made twice: many choices alternate between two.
    """
    awaited: Set[Number] = set()
    why: dict[Number, Decision] = {}
    has_moves, most = False, math.inf
    rounds: dict[tuple[_Given, bool], _Round] = {}
    for stores_moves in (False, True):
        for _ in range(_ROUNDS):
            before = choice, awaited
            given = frozenset(choice.items()), frozenset(awaited)
            this = rounds.get((given, stores_moves)) or _that_stores_no_move(rounds.get((given, False)))
            if this is None:
                stored_at = {**known.read_at, **choice, **dict.fromkeys(awaited, -1)}
                this = _Round(known, families, costs, evaluations, target, stored_at, stores_moves)
                this.choose(most)
            if this.needs > most:
                # Values of a chain were stored, which makes each look cheap: without them kernels compute the chain.
                break
            rounds[given, stores_moves] = this
            choice, awaited, has_moves = this.choice, this.awaited, this.has_moves
            why = this.decisions_with_moves if stores_moves else this.decisions
            most = _MOST_GROWTH * this.needs
            if (choice, awaited) == before:
                break
        if awaited or not has_moves:
            break
    return choice, awaited, why


def _that_stores_no_move(before: "_Round | None") -> "_Round | None":
    """Return a round that put moves off, if it would store none of them: then one that decides on them is the same."""
    is_same = before is not None and all(each.verdict != Verdict.STORED for each in before.moves.values())
    return before if is_same else None


@dataclass(frozen=True)
class _PutOff:
    """A question about a value that only moves: whether to recompute it takes more than ``most`` instructions.

    It is ``computed`` so many times for each element; ``decision`` is what is decided until the question is answered.
    """

    most: float
    computed: float
    decision: Decision


class _Round:
    """One backward pass over the program, in which all consumers of a value are known when it is reached.

    Its producers are not decided on yet: they are taken to be as in the round before. ``stored_at`` has the level of
    the kernel that stores each value in memory. What only moves is stored if ``stores_moves``, once it is known which
    kernels are left to read it: how often it is moved depends on where all else is computed. Before, it is put off.
    """

    def __init__(
        self,
        known: Known,
        families: Families,
        costs: Costs,
        evaluations: Evaluations[Group],
        target: Device,
        stored_at: Mapping[Number, int],
        stores_moves: bool,
    ):
        self._known = known
        self._block = known.block
        self._families = families
        self._costs = costs
        self._evaluations = evaluations
        self._target = target
        self._launch = launch_bytes(target)
        self._stored_at = stored_at
        self._stores_moves = stores_moves
        self.choice: _Choice = {}
        """The values to store, last ones first."""
        self.awaited = set[Number]()
        """Those to wait for."""
        self.needs = 0
        """The number of kinds of kernels that compute a value, for all values together."""
        self._waiting = WaitCounts()
        self._bytes_of_instructions: dict[Group, float] = {}
        self._found: dict[tuple[Number, int, int], Cost] = {}
        self._most: dict[Number, float] = {}
        self.decisions: dict[Number, Decision] = {}
        self._put_off: dict[Number, _PutOff] = {}
        self.has_moves = False

    def choose(self, most: float) -> None:
        """Choose the values to store, and those to wait for, unless ``needs`` become more than so many."""
        evaluations, results, stored_at = self._evaluations, self._block.results, self._known.stored_at
        evaluations.start()
        for group in self._known.grouping.groups:
            kernel, member = (group, ONLY) if group.heroes else self._waiting.loop(group)
            for root in group.roots:
                evaluations.want(self._block.numbers[root], kernel, member)
        for number, is_candidate in self._known.backwards:
            computing: dict[Group, Members] = {}
            for value in results[number]:
                needed: _Needed = evaluations.of(value)
                self.needs += len(needed)
                if needed and is_candidate:
                    needed = self._consider(value, needed)
                # Kernels compute what no lower one stores, up to the first that is chosen to.
                last = min(stored_at.get(value, math.inf), self.choice.get(value, math.inf))
                for group, members, *_ in needed:
                    if group.level <= last:
                        computing[group] = computing.get(group, 0) | members
            if computing:
                evaluations.compute(number, computing)
            if self.needs > most:
                return
            if self._most:
                self._bound_operands(number)

    def _bound_operands(self, number: int) -> None:
        """Note that what a value is computed from takes no more instructions than the value does."""
        bounds = [self._most[value] for value in self._block.results[number] if value in self._most]
        if bounds and (most := min(bounds)) < math.inf:
            for operand in self._block.reads[number]:
                # What is stored was loaded, however many instructions it takes itself.
                if operand not in self._stored_at:
                    self._most[operand] = min(most, self._most.get(operand, math.inf))

    def _consider(self, value: Number, needed: _Needed) -> _Needed:
        """Decide on a value, of which each kernel of ``needed`` computes so many elements.

        It is stored if that is cheaper. Returns the kernels that compute it after the decision.
        """
        before, size = self._known.stored_at.get(value), self._block.elements(value)
        if before is None and len(needed) == 1 and needed[0].kernels == 1 and needed[0].times <= size:
            return needed
        own, level = self._known.own.get(value), self._known.made_at(value)
        if before is not None:
            if own or before < level:
                return needed
            needed = [each for each in needed if each.kernel.level <= level]
        # The kernels of a hero's group do not wait for each other.
        can_wait = any(each.kernel is not own for each in needed)
        is_repeated = _evaluations(needed) > size
        if is_repeated and can_wait and self._decide(value, self._waiting_for(value, size, needed)):
            if own is None:
                return self._waits(value, level, needed)
            self.awaited.add(value)
            self._waiting.lengthen(own, 1 + self._waiting.longest(needed))
            self._evaluations.want(value, own, ONLY)
            return [Need(own, ONLY, 1, size)]
        is_once = _kernels(needed) == 1 and not is_repeated
        return needed if own or is_once or before is not None else self._consider_later(value, needed)

    def _waits(self, value: Number, level: int, needed: _Needed) -> _Needed:
        """Let kernels wait for a loop that stores a value, and return that one."""
        self.awaited.add(value)
        return self._wanted_by_loop(value, level, 1 + self._waiting.longest(needed))

    def _decide(self, value: Number, decision: Decision) -> bool:
        """Record a decision on a value, of which the last one counts, and tell whether it is to store."""
        self.decisions[value] = decision
        return decision.verdict == Verdict.STORED

    def _waiting_for(self, value: Number, size: int, needed: _Needed) -> Decision:
        """Decide whether kernels that recompute a value for each element wait for another kernel that stores it."""
        level, kernels = self._known.levels[value] + 1, _kernels(needed)
        computed = round(_evaluations(needed) / size, 1)
        # Of kernels of several levels the first may store the value for the others, which is decided on afterwards.
        is_one_level = self._waiting.are_equal(needed)
        once = size if is_one_level else sum([each.kernels * min(each.times, size) for each in needed])
        saved = -once * bytes_per_instruction(self._target, size)
        spent: float = self._launch
        for each in needed:
            saved += each.kernels * each.times * self._instruction_bytes(each.kernel)
            spent += each.kernels * self._costs.byte_size(value, round(min(each.times, size)))
        if value not in self._known.stored_at:
            spent += self._costs.byte_size(value, size)
        if is_one_level and kernels > 1:
            read = self._cost(value, level).bytes
            spent -= (kernels - 1) * read
            if saved * _MOST_INSTRUCTIONS > spent:
                # All of them may not have to be read again.
                spent += kernels * read - self._read_again(value, level, MOST_VISITED, needed)
        if saved * _MOST_INSTRUCTIONS <= spent:
            return Decision(Verdict.RECOMPUTED, self._block.values[value], Reason(_CHEAP, (computed,)))
        # Where storing it takes no instructions more, and fewer bytes, it pays however few the value takes.
        most = spent / saved if saved else 0.0
        if self._costs.moved_from(value):
            most = max(_HIDDEN_MOVES * most, LOAD)
            cheap = Decision(Verdict.RECOMPUTED, self._block.values[value], Reason(_CHEAP, (computed,)))
            if most >= _MOST_INSTRUCTIONS_OF_MOVES:
                return cheap
            self.has_moves = True
            if not self._stores_moves:
                self._put_off[value] = _PutOff(most, computed, cheap)
                return cheap
        return self._takes_more(value, most, computed)

    def _takes_more(self, value: Number, most: float, computed: float) -> Decision:
        """Decide whether to recompute a value takes more than ``most`` instructions, from which on storing it pays."""
        level, origins = self._known.levels[value] + 1, self._costs.moved_from(value)
        parts = computed, math.ceil(most)
        few = Reason(_FEW, parts)
        if most >= self._most.get(value, math.inf):
            # What a value is computed from takes no more instructions than the value, which did not take so many.
            return Decision(Verdict.RECOMPUTED, self._block.values[value], few)

        def is_stored(each: Number) -> bool:
            return self._stored_at.get(each, level) < level or each in origins

        again = self._evaluations.instructions_again(value, is_stored, most)
        if origins and again <= most:
            again += self._target.instructions_of_pass * self._costs.passes_again(value, is_stored)
        if again > most:
            return Decision(Verdict.STORED, self._block.values[value], Reason(_MANY, parts))
        if not origins:
            self._most[value] = most
        return Decision(Verdict.RECOMPUTED, self._block.values[value], few)

    @cached_property
    def moves(self) -> Mapping[Number, Decision]:
        """Decisions on the moves that were put off: nothing that they depend on was decided after them."""
        return {value: self._takes_more(value, each.most, each.computed) for value, each in self._put_off.items()}

    @property
    def decisions_with_moves(self) -> dict[Number, Decision]:
        """The decisions, with those on moves where nothing else was decided on a value afterwards."""
        last = {value for value, each in self._put_off.items() if self.decisions[value] is each.decision}
        return self.decisions | {value: decision for value, decision in self.moves.items() if value in last}

    def _consider_later(self, value: Number, needed: _Needed) -> _Needed:
        """Let the first kernel that computes a value store it for those of higher levels, if that is cheaper."""
        of = self._block.values[value]
        level = lowest = min([group.level for group, *_ in needed])
        is_extra = not any(self._can_store(group, value) for group, *_ in needed if group.level == lowest)
        if is_extra:
            level = self._known.levels[value]
        later = [each for each in needed if each.kernel.level > level]
        if is_extra and later and self._decide(value, self._read_by_all(value, level + 1, needed)):
            return self._waits(value, level, needed)
        readers = _kernels(later)
        if not later or (is_extra and readers == 1 and later[0].times <= self._block.elements(value)):
            # A kernel of its own would read and compute as much as the one that needs the value.
            if _kernels(needed) > 1:
                reason = Reason("{} kernels compute it, and none comes before another", (_kernels(needed),))
                self._decide(value, Decision(Verdict.RECOMPUTED, of, reason))
            return needed
        # However large the computation is, it is enough to know that it is too large to be written again.
        most = MOST_OPERATIONS if readers > is_extra else MOST_VISITED
        size, once, again, operations = self._traffic(value, level + 1, most, later)
        extra = self._launch + once if is_extra else 0
        is_long = operations >= MOST_OPERATIONS and readers > is_extra
        is_worth = is_long or again - readers * size > size + extra
        reason = Reason(_COSTS, (again, readers, (readers + 1) * size + extra))
        if is_long:
            reason = Reason("{} kernels would have to recompute it, in {} operations or more", (readers, most))
        if self._decide(value, Decision(Verdict.STORED if is_worth else Verdict.RECOMPUTED, of, reason)):
            self.choice[value] = level
            if is_extra:
                return [*needed, *self._wanted_by_loop(value, level, 0)]
        return needed

    def _read_by_all(self, value: Number, level: int, needed: _Needed) -> Decision:
        """Decide whether kernels of several levels wait for one more, before all of them, and read a value."""
        size, readers = self._costs.byte_size(value, self._block.elements(value)), _kernels(needed)
        once = again = self._once(value, self._cost(value, level))
        if is_worth := readers * (once - size) > size + self._launch + once:
            # All of them may not have to be read again.
            _, once, again, _ = self._traffic(value, level, MOST_VISITED, needed)
            is_worth = again - readers * size > size + self._launch + once
        else:
            again *= readers
        reason = Reason(_COSTS, (again, readers, (readers + 1) * size + self._launch + once))
        return Decision(Verdict.STORED if is_worth else Verdict.RECOMPUTED, self._block.values[value], reason)

    def _cost(self, value: Number, level: int, most: int = MOST_VISITED) -> Cost:
        """Return the cost to compute a value in a kernel of ``level`` that has nothing else to read, found once."""
        key = value, level, most
        if key not in self._found:
            self._found[key] = self._costs.of(value, self._stored_at, level, most)
        return self._found[key]

    def _once(self, value: Number, cost: Cost) -> float:
        """Return the bytes read to compute a value once, and those that its instructions take the time of."""
        return cost.bytes + cost.instruction_bytes(self._block.elements(value), self._target)

    def _traffic(self, value: Number, level: int, most: int, readers: _Needed) -> tuple[int, float, float, int]:
        """Return the bytes of a value, those to compute it once and by ``readers``, and operations up to ``most``.

        Instructions count as the bytes that take as long.
        """
        cost = self._cost(value, level, most)
        again = self._read_again(value, level, most, readers)
        again += cost.instruction_bytes(_evaluations(readers), self._target)
        return (
            self._costs.byte_size(value, self._block.elements(value)),
            self._once(value, cost),
            again,
            cost.operations,
        )

    def _read_again(self, value: Number, level: int, most: int, needed: _Needed) -> float:
        """Return the bytes that kernels of ``level`` read to recompute a value, beside what they read anyway."""
        total, size = 0.0, self._block.elements(value)
        for kernel, members, _, times in needed:
            share = min(1, times / size)
            for part, alike in self._waiting.parts(kernel, members):
                is_known = partial(self._is_known, kernel, part, alike, share)
                # Whether a loop moves what it reads by tiles is decided later, and mostly so.
                cost = self._costs.of(value, self._stored_at, level, most, is_known, not kernel.heroes)
                total += part.bit_count() * cost.bytes * share
        return total

    def _is_known(
        self, kernel: Group, members: Members, alike: Members, share: float, value: Number, count: int
    ) -> bool:
        """Whether kernels read or compute this share of ``count`` elements of a value anyway."""
        known = self._evaluations.known(value, kernel, members, alike)
        return known >= min(self._block.elements(value), count) * share

    def _wanted_by_loop(self, value: Number, level: int, length: int) -> _Needed:
        """Let a loop of its own compute a value, which so many other kernels wait for, one after the other."""
        root = self._block.values[value]
        group = Group(self._families.loop_of(self._block.shape(value)), level, roots=(root,))
        kernel, member = self._waiting.loop(group, length)
        self._evaluations.want(value, kernel, member)
        return [Need(kernel, member, 1, self._block.elements(value))]

    def _can_store(self, group: Group, value: Number) -> bool:
        """Whether the kernel of ``group`` computes a value at its own indices, so that it can store it."""
        shape = self._block.shape(value)
        if group.kind.family.stores_beside:
            return shape_of(group.heroes[0].operands[0]) == shape
        return group.kind == self._families.loop_of(shape)

    def _instruction_bytes(self, group: Group) -> float:
        """Return the bytes that take as long as an instruction of the kernel of ``group``, by its number of threads."""
        found = self._bytes_of_instructions.get(group)
        if found is None:
            read = (elements(operand) // _READ_BY_THREAD for hero in group.heroes for operand in hero.operands)
            found = bytes_per_instruction(self._target, max(*map(elements, group.roots), *read, 1))
            self._bytes_of_instructions[group] = found
        return found


def _kernels(needed: _Needed) -> int:
    return sum([each.kernels for each in needed])


def _evaluations(needed: _Needed) -> float:
    return sum([each.kernels * each.times for each in needed])
