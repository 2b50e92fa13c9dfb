"""The continuations that a step of the search considers, and the choice of the continuations to keep."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hfcf.engines.constrained.tracker import ConstraintStates, Tracker

_CHUNK = 64


class Scores:
    """Log-probabilities of every beam's next token, as logits and a shift for each beam.

    The k best of a million numbers are among the k chunks with the largest maxima. The maxima take one pass over the logits, and no
    other intermediate value is as large as the vocabulary. A search reads them several times, for different beams.
    """

    def __init__(self, logits: torch.Tensor, shift: torch.Tensor) -> None:
        logits = logits.contiguous()
        self.logits, self.shift, self.vocabulary = logits, shift, logits.shape[-1]
        even = self.vocabulary // _CHUNK * _CHUNK
        maxima = logits[:, :even].unflatten(-1, (-1, _CHUNK)).amax(-1)
        if even < self.vocabulary:
            maxima = torch.cat([maxima, logits[:, even:].amax(-1, keepdim=True)], -1)
        self.maxima = maxima.view(*shift.shape, -1)

    def best(self, beams: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the `k` best continuations of each row's marked beams, best first."""
        shift = torch.where(beams, self.shift, -torch.inf)
        maxima = (self.maxima + shift[..., None]).flatten(1)
        chunks = maxima.topk(min(k, maxima.shape[1]), dim=1).indices
        beam, tokens = chunks // self.maxima.shape[-1], self._tokens(chunks % self.maxima.shape[-1])
        values = self.at(beam[..., None].expand_as(tokens).flatten(1), tokens.flatten(1), shift)
        # The last chunk repeats its last token, which counts once.
        values = values.masked_fill((tokens >= self.vocabulary).flatten(1), -torch.inf)
        top = values.topk(min(k, values.shape[1]), dim=1)
        chosen = tokens.flatten(1).gather(1, top.indices).clamp(max=self.vocabulary - 1)
        return top.values, beam.gather(1, top.indices // _CHUNK), chosen

    def first(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return each beam's best continuation: scores and tokens of shape (rows, beams)."""
        tokens = self._tokens(self.maxima.argmax(-1))
        rows, beams = self.shift.shape
        beam = torch.arange(beams, device=tokens.device).view(1, -1, 1).expand_as(tokens)
        values = self.at(beam.reshape(rows, -1), tokens.view(rows, -1)).view_as(tokens)
        best = values.masked_fill(tokens >= self.vocabulary, -torch.inf).max(-1)
        return best.values, tokens.gather(-1, best.indices[..., None]).squeeze(-1)

    def at(self, beam: torch.Tensor, tokens: torch.Tensor, shift: torch.Tensor | None = None) -> torch.Tensor:
        """Return the scores of beams and tokens, both of shape (rows, any number)."""
        shift = self.shift if shift is None else shift
        rows = torch.arange(shift.shape[0], device=beam.device)[:, None] * shift.shape[1]
        flat = (rows + beam) * self.vocabulary + tokens.clamp(max=self.vocabulary - 1)
        return self.logits.view(-1)[flat] + shift.gather(1, beam)

    def _tokens(self, chunks: torch.Tensor) -> torch.Tensor:
        return chunks[..., None] * _CHUNK + torch.arange(_CHUNK, device=chunks.device)


Continuations = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Scores, beams and tokens of continuations."""


@dataclass(frozen=True)
class Candidates:
    """Continuations of the rows' beams, each of shape (rows, candidates)."""

    score: torch.Tensor
    beam: torch.Tensor
    token: torch.Tensor
    ends: torch.Tensor
    counts: torch.Tensor


def candidates(scores: Scores, now: ConstraintStates, tracker: Tracker, ends: torch.Tensor) -> Candidates:
    """Return the best continuations of two groups: beams that have reached their row's goal, and the other beams.

    The first group is the same as in a plain beam search. The second group also gets every token that begins or continues an unmet
    phrase, and every beam's best token. Their scores do not matter (Post and Vilar, 2018). The two groups are separate: a beam that
    has written improbable phrases would not have its natural ending among the best of all beams.
    """
    alive, width = scores.shift > -torch.inf, scores.shift.shape[1]
    reached = alive & (now.need == 0)
    count = max(2, 1 + len(ends)) * width
    parts = [scores.best(reached, count)]
    if bool((waiting := alive & ~reached).any()):
        general = scores.best(waiting, count)
        parts += [general, _without(_leading(scores, now, tracker, waiting), general, scores.vocabulary)]
    score, beam, token = (torch.cat(same, 1) for same in zip(*parts, strict=True))
    counts = torch.ones_like(score, dtype=torch.bool)
    counts[:, width : parts[0][0].shape[1]] = False
    return Candidates(score, beam, token, torch.isin(token, ends), counts)


def _leading(scores: Scores, now: ConstraintStates, tracker: Tracker, waiting: torch.Tensor) -> Continuations:
    """Return the tokens that lead each waiting beam on, and its best token."""
    width, (rows, words) = waiting.shape[1], tracker.tokens.shape
    each = torch.arange(width, device=waiting.device)
    beam, token = each.repeat_interleave(words).expand(rows, -1), tracker.tokens.clamp(min=0).repeat(1, width)
    before = now.take(beam)
    after = tracker.move(before, token)
    leads = ((after.need < before.need) | (after.bank > before.bank)) & (tracker.tokens >= 0).repeat(1, width)
    score = scores.at(beam, token).masked_fill(~(leads & waiting.gather(1, beam)), -torch.inf)
    best, first = scores.first()
    # The best token may also be one of the tokens that lead on.
    listed = ((token == first.gather(1, beam)) & (score > -torch.inf)).view(rows, width, words).any(-1)
    best = best.masked_fill(listed | ~waiting, -torch.inf)
    return torch.cat([score, best], 1), torch.cat([beam, each.expand(rows, -1)], 1), torch.cat([token, first], 1)


def _without(part: Continuations, other: Continuations, vocabulary: int) -> Continuations:
    """Return `part` without the continuations of `other`."""
    others = (other[1] * vocabulary + other[2]).masked_fill(other[0] == -torch.inf, -1).sort(1).values
    keys = part[1] * vocabulary + part[2]
    at = torch.searchsorted(others, keys).clamp(max=others.shape[1] - 1)
    return part[0].masked_fill(others.gather(1, at) == keys, -torch.inf), part[1], part[2]


def share_out(score: torch.Tensor, bank: torch.Tensor, width: int) -> torch.Tensor:
    """Choose the candidates that continue: a third by banks, the fullest bank first, then the best of the rest.

    By banks: each bank's best candidate, then each bank's second best and so on. Deviation: Post and Vilar (2018) divide all beams
    in this way. With few beams and many banks, that leaves no room for the hypotheses that the model prefers. Phrases are written
    early and in the wrong place. No clauses are lost, because every hypothesis can still meet its own clauses in time.
    """
    order = score.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, bank.gather(1, order).argsort(dim=1, descending=True, stable=True))
    banks, place = bank.gather(1, order), torch.arange(order.shape[1], device=score.device).expand_as(order)
    first = torch.ones_like(order, dtype=torch.bool)
    first[:, 1:] = banks[:, 1:] != banks[:, :-1]
    turn = place - torch.where(first, place, 0).cummax(1).values
    # Places are in the order of banks, so they decide which bank comes first within a turn.
    key = (turn * order.shape[1] + place).masked_fill(score.gather(1, order) == -torch.inf, torch.iinfo(torch.long).max)
    shared = order.gather(1, key.topk(-(-width // 3), dim=1, largest=False).indices)
    # Candidates that cannot continue come last, and none may be chosen twice.
    others = score.clamp(min=torch.finfo(score.dtype).min).scatter(1, shared, -torch.inf)
    return torch.cat([shared, others.topk(width - shared.shape[1], dim=1).indices], 1)
