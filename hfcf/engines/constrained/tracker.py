"""The state of every beam in its row's automaton, as tensors that gather operations update."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from hfcf.engines.constrained import plan
from hfcf.engines.constrained.automaton import Automaton


@dataclass(frozen=True)
class ConstraintStates:
    """The states of hypotheses, each of shape (rows, hypotheses)."""

    state: torch.Tensor
    met: torch.Tensor
    need: torch.Tensor
    bank: torch.Tensor

    def take(self, index: torch.Tensor) -> ConstraintStates:
        """Select the hypotheses at `index`, of shape (rows, any number)."""
        return ConstraintStates(*(part.gather(1, index) for part in (self.state, self.met, self.need, self.bank)))

    def keep(self, rows: torch.Tensor) -> ConstraintStates:
        """Select the hypotheses of the rows at `rows`."""
        return ConstraintStates(*(part[rows] for part in (self.state, self.met, self.need, self.bank)))


class Tracker:
    """Follow hypotheses by the tables of all rows, each in one flat tensor.

    With up to `plan.EXACT_CLAUSES` clauses, need and bank are looked up by state and set of clauses met. With more clauses, the
    need is a bound: the lengths of the shortest patterns of the unmet clauses, minus the written part of one pattern.
    """

    def __init__(self, automata: Sequence[Automaton], columns: np.ndarray, tokens: int, device: torch.device) -> None:
        self.automata, self.device = automata, device
        self._columns = torch.as_tensor(columns, device=device)
        self._width = self._put([len(automaton.goto[0]) for automaton in automata])
        self._edges = self._offsets([automaton.goto.size for automaton in automata])
        self._goto = self._put(np.concatenate([automaton.goto.ravel() for automaton in automata]))
        self._gain = self._put(np.concatenate([automaton.gain.ravel() for automaton in automata]))
        small = [automaton.clauses <= plan.EXACT_CLAUSES for automaton in automata]
        self._small = self._put(small).bool()
        self._all_small = all(small)
        self._sets = self._put([1 << automaton.clauses if small[row] else 0 for row, automaton in enumerate(automata)])
        self._states = self._offsets([len(automaton.goto) for automaton in automata])
        self._last = self._put(np.concatenate([automaton.last for automaton in automata]))
        needs, banks = [], []
        self._goals, self._most = [0] * len(automata), 0
        targets = [0] * len(automata)
        for row, automaton in enumerate(automata):
            if small[row]:
                self._goals[row], table = plan.reachable(automaton, tokens)
                needs.append(table.ravel())
                self._most = max(self._most, int(table[table < plan.NEVER].max(initial=0)))
                banks.append(plan.progress(automaton).ravel())
            else:
                targets[row] = plan.affordable(automaton, tokens)
                self._most = max(self._most, tokens)
                needs.append(np.zeros(1, np.int16))
                banks.append(np.zeros(1, np.int32))
        self._tables = self._offsets([len(need) for need in needs])
        # In their narrow number types: with twelve clauses a row has millions of entries.
        self._need, self._bank = (torch.as_tensor(np.concatenate(parts), device=device) for parts in (needs, banks))
        self.tokens = pad_sequence([self._put(automaton.tokens) for automaton in automata], batch_first=True, padding_value=-1)
        if not self._all_small:
            self._large(targets)

    def _put(self, values: object) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values), device=self.device).long()

    def _offsets(self, sizes: Sequence[int]) -> torch.Tensor:
        return self._put(np.concatenate([[0], np.cumsum(sizes)[:-1]]))

    def _large(self, targets: Sequence[int]) -> None:
        self._lengths = pad_sequence([self._put(plan.shortest(automaton)) for automaton in self.automata], batch_first=True)
        absent = [((0, 0), (0, self._lengths.shape[1] - automaton.clauses)) for automaton in self.automata]
        near = [np.pad(automaton.near, width, constant_values=-1) for automaton, width in zip(self.automata, absent, strict=True)]
        self._left = self._put(np.concatenate(near))
        self._target = self._put(targets)
        self._span = self._put([plan.reach(automaton) for automaton in self.automata])

    def start(self, beams: int) -> ConstraintStates:
        """Place every row's beams before the first token."""
        state = torch.zeros(len(self._width), beams, dtype=torch.long, device=self.device)
        return ConstraintStates(state, state, *self._measure(state, state))

    def move(self, now: ConstraintStates, tokens: torch.Tensor) -> ConstraintStates:
        """Move hypotheses by one token each; `tokens` has their shape."""
        state, met = self._follow(now.state, now.met, self._columns.gather(1, tokens).long())
        return ConstraintStates(state, met, *self._measure(state, met))

    def _follow(self, state: torch.Tensor, met: torch.Tensor, column: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        edge = self._edges[:, None] + state * self._width[:, None] + column
        return self._goto[edge], met | self._gain[edge]

    def remeasure(self, now: ConstraintStates) -> ConstraintStates:
        """Look up need and bank again."""
        return ConstraintStates(now.state, now.met, *self._measure(now.state, now.met))

    def ended(self, now: ConstraintStates) -> torch.Tensor:
        """Return the clauses that are met if the texts end here."""
        return now.met | self._last[self._states[:, None] + now.state]

    def _measure(self, state: torch.Tensor, met: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        entry = self._tables[:, None] + torch.where(self._small[:, None], state * self._sets[:, None] + met, 0)
        need, bank = self._need[entry], self._bank[entry]
        if self._all_small:
            return need, bank
        at = self._states[:, None] + state
        bits = torch.arange(self._lengths.shape[1], device=self.device)
        left, lengths = self._left[at], self._lengths[:, None, :]
        open_ = ((self._target[:, None] & ~(met | self._last[at]))[..., None] >> bits & 1).bool()
        saved = torch.where(open_ & (left >= 0), lengths - left, 0).amax(-1).clamp(min=0)
        bound = (lengths * open_).sum(-1) - saved
        unmet = (met[..., None] >> bits & 1) == 0
        span = self._span[:, None]
        begun = torch.where(unmet & (left >= 0), span[..., None] - left, 0).amax(-1)
        count = (~unmet).sum(-1)
        small = self._small[:, None]
        return torch.where(small, need, bound), torch.where(small, bank, count * (span + 1) + begun)

    def forbid_late(self, scores: torch.Tensor, now: ConstraintStates, left: int) -> None:
        """Forbid the tokens after which `left` more could not reach a row's goal; scores: (rows × beams, vocabulary)."""
        if left >= self._most:
            return
        (rows, beams), most = now.state.shape, int(self._width.max())
        column = torch.arange(most, device=self.device).minimum(self._width[:, None] - 1).repeat(1, beams)
        after = self._follow(now.state.repeat_interleave(most, 1), now.met.repeat_interleave(most, 1), column)
        need = self._measure(*after)[0].view(rows, beams, most)
        late, each = need > left, scores.view(rows, beams, -1)
        for row in late.flatten(1).any(1).nonzero().flatten().tolist():
            each[row].masked_fill_(late[row][:, self._columns[row].long()], -torch.inf)

    def lower(self, row: int, now: ConstraintStates, possible: torch.Tensor, left: int) -> None:
        """Lower a row's goal to the most clauses that it can still meet, when its tokens are forbidden."""
        automaton, columns = self.automata[row], self._columns[row].cpu().numpy()
        pairs = [
            (int(state), int(met), np.unique(columns[some]))
            for state, met, some in zip(now.state[row], now.met[row], possible.cpu().numpy(), strict=True)
        ]
        if not bool(self._small[row]):
            met = max((met for _, met, some in pairs if len(some)), key=int.bit_count, default=0)
            self._target[row] = plan.affordable(automaton, left, met)
            return
        for goal in range(self._goals[row] - 1, -1, -1):
            table = plan.needed(automaton, goal)
            if any((table[automaton.goto[s, some], met | automaton.gain[s, some]] <= left).any() for s, met, some in pairs):
                self._goals[row], at = goal, int(self._tables[row])
                self._need[at : at + table.size] = torch.as_tensor(table.ravel(), device=self.device)
                return

    def keep(self, rows: torch.Tensor) -> Tracker:
        """Return the tracker of the rows at `rows`, which shares the tables."""
        tracker = copy.copy(self)
        tracker.automata = [self.automata[row] for row in rows.tolist()]
        tracker._goals = [self._goals[row] for row in rows.tolist()]
        large = () if self._all_small else ("_lengths", "_target", "_span")
        for name in ("_columns", "_width", "_edges", "_small", "_sets", "_states", "_tables", "tokens", *large):
            setattr(tracker, name, getattr(self, name)[rows])
        return tracker
