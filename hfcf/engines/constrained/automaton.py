"""One row's constraints as an automaton over tokens: Aho-Corasick, with word boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

# The effect of a token, by its first characters, on a phrase right before it. A full stop ends the phrase unless a digit follows:
# "3" is not a word of "3.5" (hfcf.text.phrase_match.WORD_END).
CONTINUES, ENDS, STOP, DIGIT = range(4)
END_OF_TEXT = 2 * ENDS + 1  # a token's class is twice the above, plus one if a word can begin right after it
TEXTLESS = 2 * DIGIT  # nothing is known of the words around it, so it ends none, not even after a full stop


@dataclass(frozen=True)
class Pattern:
    """A token sequence that meets clauses."""

    tokens: tuple[int, ...]
    clauses: int
    word: bool = False
    start: bool = False

    @property
    def numbers(self) -> list[int]:
        """The numbers of the clauses."""
        return [number for number in range(self.clauses.bit_length()) if self.clauses >> number & 1]


class Automaton:
    """Compute the transitions of one row's patterns.

    The automaton follows every partial match at once. It is deterministic, and its states are the nodes of Aho and Corasick's
    (1975) automaton. So phrases may overlap, nest, begin alike or be a prefix of another phrase. Two things are added. A pattern
    may have to begin and end at word boundaries. The end of a word shows only in the next token, so a state also holds the matches
    that wait for it. And an edge carries the clauses that it meets, so one occurrence serves every clause that has it.

    Columns represent tokens. Columns 0 to 7 are for the tokens of each class that are in no pattern, and column 8 is for the end of
    text. Each token of the patterns has a further column.

    Args:
        patterns: the patterns; empty for a row without constraints.
        clauses: number of clauses, at most 62.
        classes: the class of each token of the vocabulary, coded as in `END_OF_TEXT`. Patterns without word boundaries need none:
            every token has class 0 then.
        ends: the tokens that end a text.

    Attributes:
        goto: next state, of shape (states, columns). State 0 is the start.
        gain: bits of the clauses met on the way, of the same shape.
        last: bits of the clauses that are met if the text ends in a state, of shape (states,).
        near: the fewest tokens missing from an occurrence that has begun, of shape (states, clauses); -1 for none begun.
        tokens: the tokens of the patterns, sorted; their columns are 9, 10 …
        kinds: the effect of each column's token on a phrase before it.
        written: which columns represent a token that can be written.
        waiting: for each state, the bits of the matches that wait for the end of their word, and of the matches that saw a full
            stop.
        opened: for each state, whether a word can begin now.
        edges: (state, next state, gain) wherever a state differs from the empty state (0 or 1).
    """

    def __init__(
        self, patterns: Sequence[Pattern], clauses: int, classes: np.ndarray | None = None, ends: Iterable[int] = ()
    ) -> None:
        self.patterns, self.clauses, ends = list(patterns), clauses, set(ends)
        alphabet = {token for pattern in patterns for token in pattern.tokens}
        kinds = np.zeros(1, np.int8) if classes is None else classes
        if any(pattern.start for pattern in patterns):
            # A word may need a token to begin after: one of each class is in the alphabet, so that a search can write it.
            for kind in range(8):
                alphabet.update([int(token) for token in np.flatnonzero(kinds == kind) if token not in ends][:1])
        self.tokens = np.array(sorted(alphabet), np.int64)
        self._kind = [int(kinds[token]) if classes is not None else 0 for token in self.tokens]
        self._column_kinds = np.array([*range(8), END_OF_TEXT, *self._kind])
        self.kinds = self._column_kinds // 2
        self._column = {int(token): 9 + i for i, token in enumerate(self.tokens)}
        self._starting: dict[int, list[int]] = {}
        for number, pattern in enumerate(self.patterns):
            self._starting.setdefault(pattern.tokens[0], []).append(number)
        self._build()
        # A plan does not use the end of the text.
        used = np.bincount(kinds, minlength=8)[:8] if classes is not None else np.array([1] + [0] * 7)
        for kind in [*self._kind, *(int(kinds[token]) for token in ends if classes is not None and token not in self._column)]:
            used[kind] -= classes is not None
        self.written = np.concatenate([used > 0, [False], np.ones(len(self.tokens), bool)])

    def columns(self, vocabulary: int, classes: np.ndarray | None, ends: Iterable[int]) -> np.ndarray:
        """Return the column of each token of a vocabulary of that size."""
        # Tokens beyond the tokenizer's have no text.
        columns = np.full(vocabulary, 0 if classes is None else TEXTLESS, np.int16)
        if classes is not None:
            columns[: len(classes)] = classes[:vocabulary]
        columns[[token for token in ends if token < vocabulary]] = 8
        columns[self.tokens] = 9 + np.arange(len(self.tokens))
        return columns

    def _build(self) -> None:
        # A state is its partial matches (pattern, tokens matched) and whether a word can begin now. A complete match waits for the
        # end of its word; after a full stop it counts one token more than the pattern has.
        empty: frozenset[tuple[int, int]] = frozenset()
        self._states: list[tuple[frozenset[tuple[int, int]], bool]] = [(empty, True), (empty, False)]
        index = {state: i for i, state in enumerate(self._states)}
        goto: list[np.ndarray] = []
        gain: list[np.ndarray] = []
        self.edges: list[tuple[int, int, int]] = []  # (state, next state, gain) where a state differs from the empty states
        self.waiting: list[tuple[int, int]] = []  # bits that wait for the end of a word, and after a full stop
        columns = range(len(self._column_kinds))
        number = 0
        while number < len(self._states):
            items, opened = self._states[number]
            if number < 2:
                go, get, special = np.zeros(len(columns), np.int32), np.zeros(len(columns), np.int64), set(columns)
            else:
                base = 0 if opened else 1
                go, get = goto[base].copy(), gain[base].copy()
                special = {self._column[self.patterns[p].tokens[i]] for p, i in items if i < len(self.patterns[p].tokens)}
            wait = all_clauses(self.patterns[p] for p, i in items if i == len(self.patterns[p].tokens))
            stopped = all_clauses(self.patterns[p] for p, i in items if i > len(self.patterns[p].tokens))
            self.waiting.append((wait, stopped))
            if wait or stopped:
                get |= np.where(self.kinds == ENDS, wait, 0) | np.where(self.kinds != DIGIT, stopped, 0)
                if wait:
                    special |= {column for column in columns if self.kinds[column] == STOP}
            for column in special:
                state, bits = self._step(items, opened, column)
                if state not in index:
                    index[state] = len(self._states)
                    self._states.append(state)
                go[column], get[column] = index[state], bits
                if number >= 2 and column != 8:
                    self.edges.append((number, index[state], bits))
            goto.append(go)
            gain.append(get)
            number += 1
        self.goto, self.gain = np.stack(goto), np.stack(gain)
        self.last = np.array([a | b for a, b in self.waiting], np.int64)
        self.opened = np.array([opened for _, opened in self._states])
        self.near = np.full((len(self._states), self.clauses), -1, np.int16)
        for number, (items, _) in enumerate(self._states):
            for p, i in items:
                missing = max(0, len(self.patterns[p].tokens) - i)
                for clause in self.patterns[p].numbers:
                    before = self.near[number, clause]
                    self.near[number, clause] = missing if before < 0 else min(before, missing)

    def _step(
        self, items: frozenset[tuple[int, int]], opened: bool, column: int
    ) -> tuple[tuple[frozenset[tuple[int, int]], bool], int]:
        token = int(self.tokens[column - 9]) if column > 8 else -1
        kind, opens = divmod(int(self._column_kinds[column]), 2)
        bits, moved = 0, []
        for p, i in items:
            length = len(self.patterns[p].tokens)
            if i < length:
                if self.patterns[p].tokens[i] == token:
                    moved.append((p, i + 1))
            elif (i == length and kind == ENDS) or (i > length and kind != DIGIT):
                bits |= self.patterns[p].clauses
            elif i == length and kind == STOP:
                moved.append((p, i + 1))
        begun = [(p, 1) for p in self._starting.get(token, ()) if opened or not self.patterns[p].start]
        matches = set()
        for p, i in moved + begun:
            if i == len(self.patterns[p].tokens) and not self.patterns[p].word:
                bits |= self.patterns[p].clauses
            else:
                matches.add((p, i))
        return (frozenset(matches), bool(opens) or column == 8), bits


def all_clauses(patterns: Iterable[Pattern]) -> int:
    """Return the bits of the clauses that any of the patterns meets."""
    return reduce(or_, (pattern.clauses for pattern in patterns), 0)
