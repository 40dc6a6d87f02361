"""The layers of jobs against all orders and all places of meetings."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

import pytest

from xgpu.block_plan.order import layers
from xgpu.block_plan.order.layers import Job, Layers, arrange

STEPS = 3
"""Steps that are followed: in the second one, all is as in those between."""


def drawn(rng: random.Random, count: int, density: float, is_step: bool) -> tuple[dict[int, Job], dict[int, int]]:
    """Draw jobs that write a tile each, or nothing; some tiles are carried, and some copied ahead."""
    jobs: dict[int, Job] = {}
    for number in range(count):
        before = frozenset(other for other in range(number) if rng.random() < density)
        reads = frozenset(other for other in before if rng.random() < 0.8)
        kind = rng.random()
        if is_step and kind < 0.2:
            jobs[number] = Job(before, reads, refills=frozenset((number + 100,)))
        elif kind < 0.35:
            jobs[number] = Job(before, reads)
        else:
            jobs[number] = Job(before, reads, frozenset((number,)))
    ahead = {number + 100 for number, job in jobs.items() if job.refills}
    for number, job in jobs.items():
        more = frozenset(tile for tile in ahead if tile - 100 in job.needs)
        jobs[number] = Job(job.needs, job.reads | more, job.writes, job.reads | job.writes, job.refills, bool(more))
    sizes = {tile: rng.randrange(1, 6) for job in jobs.values() for tile in job.writes}
    for number, job in list(jobs.items()):
        if is_step and job.writes and rng.random() < 0.3:
            # It changes what the step before has left, which others read before: that is always in use.
            for other in job.needs:
                before = jobs[other]
                jobs[other] = Job(
                    before.needs, before.reads | job.writes, before.writes, before.uses, before.refills, before.late
                )
            del sizes[number]
    return jobs, sizes


def orders(jobs: Mapping[int, Job]) -> Iterator[tuple[int, ...]]:
    def follow(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == len(jobs):
            yield done
        for number, job in jobs.items():
            if number not in done and job.needs <= set(done):
                yield from follow((*done, number))

    return follow(())


def spans_of(order: Sequence[int], met: frozenset[int], is_step: bool) -> list[list[int]]:
    """The span of each job in each step; gap ``len(order)`` is the end of a step."""
    span, found = 0, []
    for _ in range(STEPS if is_step else 1):
        row = []
        for place in range(len(order)):
            span += place in met
            row.append(span)
        span += len(order) in met
        found.append(row)
    return found


def is_right(jobs: Mapping[int, Job], order: Sequence[int], met: frozenset[int], is_step: bool) -> bool:
    spans = spans_of(order, met, is_step)
    events = [(step, place, span) for step, row in enumerate(spans) for place, span in enumerate(row)]
    for (step, i, first), (later, j, second) in itertools.combinations(events, 2):
        if i == j or first != second:
            continue
        one, other = jobs[order[i]], jobs[order[j]]
        if one.meets(other) or (later == step + 1 and one.reads & other.refills):
            return False
    # What a step waits for is seen by all once they have met in it.
    return all(any(gap <= place for gap in met) for place, number in enumerate(order) if jobs[number].late)


def peak_of(
    jobs: Mapping[int, Job], sizes: Mapping[int, int], order: Sequence[int], met: frozenset[int], is_step: bool
) -> int:
    in_use: dict[int, set[int]] = {}
    for row in spans_of(order, met, is_step):
        for tile in sizes:
            used = [row[place] for place, n in enumerate(order) if tile in jobs[n].uses | jobs[n].writes]
            for span in range(min(used), max(used) + 1):
                in_use.setdefault(span, set()).add(tile)
    return max((sum(sizes[tile] for tile in tiles) for tiles in in_use.values()), default=0)


def best_of_all(jobs: Mapping[int, Job], sizes: Mapping[int, int], is_step: bool) -> tuple[int, int]:
    gaps = range(len(jobs) + is_step)
    every = list(orders(jobs))
    for count in range(len(jobs) + 2):
        found = [
            peak_of(jobs, sizes, order, frozenset(met), is_step)
            for met in itertools.combinations(gaps, count)
            for order in every
            if is_right(jobs, order, frozenset(met), is_step)
        ]
        if found:
            return count, min(found)
    raise AssertionError("no order is right")


def check_layers(jobs: Mapping[int, Job], found: Layers, is_step: bool) -> None:
    order = [number for layer in found.layers for number in layer]
    starts, place = set(), 0
    for number, layer in enumerate(found.layers):
        starts |= {place} if number else set()
        place += len(layer)
    met = frozenset(starts | ({len(order)} if found.ends else set()))
    assert sorted(order) == sorted(jobs)
    assert len(met) == found.meetings
    assert is_right(jobs, order, met, is_step)


@pytest.mark.parametrize("is_step", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_as_good_as_any_order(seed: int, is_step: bool) -> None:
    rng = random.Random(seed)
    jobs, sizes = drawn(rng, rng.randrange(1, 6), rng.choice((0.2, 0.5)), is_step)
    found = arrange(jobs, sizes, is_step)
    check_layers(jobs, found, is_step)
    assert (found.meetings, found.peak) == best_of_all(jobs, sizes, is_step)


@pytest.mark.parametrize("is_step", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_as_good_as_any_order_of_nine(seed: int, is_step: bool) -> None:
    rng = random.Random(1000 + seed)
    while True:
        jobs, sizes = drawn(rng, rng.randrange(8, 10), 0.6, is_step)
        if sum(1 for _ in itertools.islice(orders(jobs), 100)) < 100:
            break
    found = arrange(jobs, sizes, is_step)
    check_layers(jobs, found, is_step)
    assert (found.meetings, found.peak) == best_of_all(jobs, sizes, is_step)


@pytest.mark.parametrize("seed", range(30))
def test_many_jobs_are_arranged_by_depth(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_GROUPS", 50)
    for is_step in (False, True):
        jobs, sizes = drawn(random.Random(seed), 25, 0.15, is_step)
        check_layers(jobs, arrange(jobs, sizes, is_step), is_step)


def test_depth_is_as_good_in_meetings_outside_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of depth give the fewest layers where nothing is read in the step after."""
    for seed in range(40):
        jobs, sizes = drawn(random.Random(seed), 6, 0.4, False)
        exact = arrange(jobs, sizes, False)
        with monkeypatch.context() as patch:
            patch.setattr(layers, "MOST_GROUPS", 0)
            assert arrange(jobs, sizes, False).meetings == exact.meetings
