"""Which continuations a step looks at, and which of them go on: beams shared out over banks of equal progress."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hfcf.engines.constrained.top import Scores
from hfcf.engines.constrained.tracker import Progress, Tracker

Part = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # scores, beams and tokens


@dataclass(frozen=True)
class Candidates:
    """Continuations of the rows' beams, each of shape (rows, candidates).

    Args:
        score: summed log-probability, `-inf` for none.
        beam: the beam that goes on.
        token: with what.
        ends: whether the token ends the text.
        counts: whether the text may count as finished, should it end here: it is among the `num_beams` best of its kind.
    """

    score: torch.Tensor
    beam: torch.Tensor
    token: torch.Tensor
    ends: torch.Tensor
    counts: torch.Tensor


def candidates(scores: Scores, now: Progress, tracker: Tracker, ends: torch.Tensor) -> Candidates:
    """The best continuations of the beams that have reached their row's goal, and of those that have not.

    The former are those of a plain beam search. The latter are added whatever their scores are: every token that begins or
    continues a phrase that is still to be met, and every beam's best token (Post and Vilar, 2018). Apart, because a beam that
    has written improbable phrases would not find its natural ending among the best of all beams.
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


def _leading(scores: Scores, now: Progress, tracker: Tracker, waiting: torch.Tensor) -> Part:
    """Of every waiting beam: the tokens that lead on, and its best token."""
    width, (rows, words) = waiting.shape[1], tracker.tokens.shape
    each = torch.arange(width, device=waiting.device)
    beam, token = each.repeat_interleave(words).expand(rows, -1), tracker.tokens.clamp(min=0).repeat(1, width)
    before = now.take(beam)
    after = tracker.move(before, token)
    leads = ((after.need < before.need) | (after.bank > before.bank)) & (tracker.tokens >= 0).repeat(1, width)
    score = scores.at(beam, token).masked_fill(~(leads & waiting.gather(1, beam)), -torch.inf)
    best, first = scores.first()
    # The best token may be one of those that lead on.
    listed = ((token == first.gather(1, beam)) & (score > -torch.inf)).view(rows, width, words).any(-1)
    best = best.masked_fill(listed | ~waiting, -torch.inf)
    return torch.cat([score, best], 1), torch.cat([beam, each.expand(rows, -1)], 1), torch.cat([token, first], 1)


def _without(part: Part, other: Part, vocabulary: int) -> Part:
    """`part` less what is in `other` already."""
    known = (other[1] * vocabulary + other[2]).masked_fill(other[0] == -torch.inf, -1).sort(1).values
    asked = part[1] * vocabulary + part[2]
    at = torch.searchsorted(known, asked).clamp(max=known.shape[1] - 1)
    return part[0].masked_fill(known.gather(1, at) == asked, -torch.inf), part[1], part[2]


def share_out(score: torch.Tensor, bank: torch.Tensor, width: int) -> torch.Tensor:
    """The candidates that go on: a third by banks, the fullest first, and of the others the best.

    By banks: each bank's best, then each bank's second best and so on (Post and Vilar, 2018). They share out all beams so;
    with few beams and many banks that leaves no room for the hypotheses that the model likes, and phrases are written early and out
    of place. A text in which they fall into place is likely to go on from those; nothing is lost, as every hypothesis
    that is kept can still meet its clauses in time.

    Args:
        score: of shape (rows, candidates); `-inf` for those that cannot go on, which come last.
        bank: of the same shape.
        width: how many go on.

    >>> score, bank = torch.tensor([[-1.0, -2.0, -3.0, -4.0]]), torch.tensor([[0, 0, 1, 1]])
    >>> share_out(score, bank, 3).tolist()
    [[2, 0, 1]]
    """
    order = score.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, bank.gather(1, order).argsort(dim=1, descending=True, stable=True))
    banks, place = bank.gather(1, order), torch.arange(order.shape[1], device=score.device).expand_as(order)
    first = torch.ones_like(order, dtype=torch.bool)
    first[:, 1:] = banks[:, 1:] != banks[:, :-1]
    turn = place - torch.where(first, place, 0).cummax(1).values
    # Places are in the order of banks already, so they settle which bank comes first within a turn.
    key = (turn * order.shape[1] + place).masked_fill(score.gather(1, order) == -torch.inf, torch.iinfo(torch.long).max)
    shared = order.gather(1, key.topk(-(-width // 3), dim=1, largest=False).indices)
    # Those that cannot go on come after those that can, but may not be taken twice.
    others = score.clamp(min=torch.finfo(score.dtype).min).scatter(1, shared, -torch.inf)
    return torch.cat([shared, others.topk(width - shared.shape[1], dim=1).indices], 1)
