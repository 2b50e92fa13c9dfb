"""The number of tokens that a row still needs, so that a search ends in time and meets its clauses."""

from __future__ import annotations

import numpy as np

from hfcf.engines.constrained.automaton import CONTINUES, DIGIT, ENDS, STOP, Automaton, all_clauses

EXACT_CLAUSES = 12
"""Rows with more clauses are planned by a bound (`affordable`) instead of the exact number."""

NEVER = 30_000


def needed(automaton: Automaton, goal: int) -> np.ndarray:
    """Return the fewest tokens after which `goal` of the clauses are met, for every state and every set of clauses met so far.

    This is a shortest path in the product of the automaton and the sets of clauses; it is exact for phrases that overlap. An edge
    never loses a clause, so the sets are filled in from the largest down. Within one size, a path only follows phrases that have
    begun. A phrase begins as from an empty state, which is looked up once for all states.
    """
    sets = np.arange(1 << automaton.clauses)
    sizes = np.bitwise_count(sets)
    waiting = np.array(automaton.waiting, np.int64)
    table = np.full((len(automaton.goto), len(sets)), NEVER, np.int16)
    table[np.bitwise_count(sets[None, :] | automaton.last[:, None]) >= goal] = 0
    edges = np.array(automaton.edges, np.int64).reshape(-1, 3)
    base = np.where(automaton.opened, 0, 1)
    # The gain of a waiting match from a token that begins a phrase again, by that token's effect on the word before it. A full stop
    # keeps the match waiting, which is an edge of its own.
    kinds = (ENDS, DIGIT, CONTINUES, STOP)
    extra = [np.where(kind == ENDS, waiting[:, 0], 0) | np.where(kind != DIGIT, waiting[:, 1], 0) for kind in kinds]
    columns = [np.flatnonzero(automaton.written & (automaton.kinds == kind)) for kind in kinds]
    fresh = np.full((2, len(kinds), len(sets)), NEVER, np.int16)  # from the empty states, by the first token's kind

    def look_up(now: np.ndarray) -> None:
        for start in (0, 1):
            for i, some in enumerate(columns):
                after = table[automaton.goto[start, some][:, None], now | automaton.gain[start, some][:, None]]
                fresh[start, i, now] = after.min(0, initial=NEVER)

    look_up(sets[sizes >= goal])
    for size in range(min(goal, automaton.clauses) - 1, -1, -1):
        now = sets[sizes == size]
        while True:
            look_up(now)
            best = table[:, now]
            for i, bits in enumerate(extra):
                np.minimum(best, fresh[base[:, None], i, now[None, :] | bits[:, None]] + 1, out=best)
            np.minimum.at(best, edges[:, 0], table[edges[:, 1][:, None], now[None, :] | edges[:, 2][:, None]] + 1)
            best = np.minimum(best, NEVER)
            if (best == table[:, now]).all():
                break
            table[:, now] = best
    return table


def reachable(automaton: Automaton, tokens: int) -> tuple[int, np.ndarray]:
    """Return the most clauses that `tokens` tokens can meet, and the table of `needed` for that goal."""
    # A goal that can be met in time implies every smaller goal, so the largest is found by bisection.
    low, high = 0, all_clauses(automaton.patterns).bit_count()
    best = needed(automaton, high)
    if best[0, 0] <= tokens:
        return high, best
    best = needed(automaton, 0)
    while high - low > 1:
        middle = (low + high) // 2
        table = needed(automaton, middle)
        if table[0, 0] <= tokens:
            low, best = middle, table
        else:
            high = middle
    return low, best


def progress(automaton: Automaton) -> np.ndarray:
    """Return the bank of every state and set of clauses met: by the clauses met, then by the nearness of the nearest phrase.

    Beams are divided over the banks (Post and Vilar, 2018). So a hypothesis that has begun a phrase does not compete with
    hypotheses without a phrase.
    """
    sets = np.arange(1 << automaton.clauses)
    span = reach(automaton)
    begun = np.where(automaton.near < 0, 0, span - automaton.near)  # 0: not begun; span: waits for the end of its word
    unmet = (sets[:, None] >> np.arange(automaton.clauses) & 1) == 0
    part = (begun[:, None, :] * unmet[None]).max(-1, initial=0)
    return (np.bitwise_count(sets)[None, :].astype(np.int32) * (span + 1) + part).astype(np.int32)


def reach(automaton: Automaton) -> int:
    """Return the length of the longest pattern plus 1: the value of a complete match in a bank."""
    return 1 + max((len(pattern.tokens) for pattern in automaton.patterns), default=0)


def shortest(automaton: Automaton) -> np.ndarray:
    """Return the length of each clause's shortest pattern, with two more tokens where a word must be able to begin before it."""
    lengths = np.full(automaton.clauses, NEVER, np.int64)
    for pattern in automaton.patterns:
        for clause in pattern.numbers:
            lengths[clause] = min(lengths[clause], len(pattern.tokens) + 2 * pattern.start)
    return lengths


def affordable(automaton: Automaton, tokens: int, met: int = 0) -> int:
    """Return the bits of the clauses met, and of further clauses, the shortest first, as long as their shortest patterns fit in
    `tokens`."""
    lengths, bits = shortest(automaton), met
    for clause in np.argsort(lengths, kind="stable"):
        if not met >> int(clause) & 1:
            tokens -= int(lengths[clause])
            if tokens < 0:
                break
            bits |= 1 << int(clause)
    return bits
