"""The best tokens of many beams, exactly, in one pass over the logits."""

from __future__ import annotations

import torch

_CHUNK = 64


class Scores:
    """Log-probabilities of every beam's next token, as logits and a shift for each beam.

    The k best of a million numbers are among the k chunks with the largest maxima: the maxima take one pass over the logits, and
    nothing else is as large as the vocabulary. A search reads them several times, for different beams.
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
