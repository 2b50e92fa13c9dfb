"""Beam search under constraints: a decoding loop for `generate(custom_generate=…)`.

Beams are divided over banks (dynamic beam allocation: Post and Vilar, 2018; Hu et al., 2019). The beams of a bank have equal
progress. In addition, every hypothesis knows the fewest tokens that its row still needs. It is dropped if it could not finish in
time. So a narrow beam meets every clause if any text of the allowed length does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

from hfcf.engines.constrained.automaton import Automaton
from hfcf.engines.constrained.beam_selection import Candidates, Scores, candidates, share_out
from hfcf.engines.constrained.beams import Beams
from hfcf.engines.constrained.tracker import ConstraintStates, Tracker

NONE = -1.0e9
"""The score of a place without a hypothesis, as in Transformers' search."""

# Processors that look at each hypothesis alone. Other processors may count the rows: with them finished rows stay in the batch.
_BY_HYPOTHESIS = {
    *("MinLengthLogitsProcessor", "MinNewTokensLengthLogitsProcessor", "NoRepeatNGramLogitsProcessor"),
    *("NoBadWordsLogitsProcessor", "SequenceBiasLogitsProcessor"),
    *("ForcedBOSTokenLogitsProcessor", "ForcedEOSTokenLogitsProcessor", "SuppressTokensLogitsProcessor"),
    *("SuppressTokensAtBeginLogitsProcessor", "InfNanRemoveLogitsProcessor", "TemperatureLogitsWarper"),
}


@dataclass(frozen=True)
class ConstrainedOutput:
    """The result of a constrained search: rows × num_return_sequences hypotheses, grouped by row and best first."""

    sequences: torch.Tensor
    sequences_scores: torch.Tensor
    satisfied: torch.Tensor
    met: list[list[bool]]
    ended: torch.Tensor


@dataclass(frozen=True)
class Compiled:
    """The constraints of a batch, ready for a search."""

    automata: Sequence[Automaton]
    classes: Sequence[np.ndarray | None]

    def columns(self, vocabulary: int, ends: Sequence[int]) -> np.ndarray:
        """Return each row's column for every token."""
        pairs = zip(self.automata, self.classes, strict=True)
        return np.stack([automaton.columns(vocabulary, classes, ends) for automaton, classes in pairs])


def constrained_beam_search(
    model: Any,
    input_ids: torch.Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    constraints: Compiled | None = None,
    synced_gpus: bool = False,
    streamer: Any = None,
    **model_kwargs: Any,
) -> ConstrainedOutput | torch.Tensor:
    """Run the decoding loop; `generate` calls it with everything prepared."""
    if generation_config.do_sample or synced_gpus or streamer is not None:
        raise ValueError("the constrained search does not support sampling, streaming or a sharded model (synced_gpus)")
    allowed = {"attention_mask", "encoder_outputs", "past_key_values", "use_cache", "position_ids", "logits_to_keep"}
    allowed |= {"output_attentions", "output_hidden_states", "return_dict"}
    inputs = {key for key, value in model_kwargs.items() if value is not None and not (isinstance(value, dict) and not value)}
    if odd := sorted(inputs - allowed):
        raise ValueError(f"the constrained search does not pass {', '.join(odd)} to the model: leave it out")
    # PEFT inserts its soft prompts before each step, in a method of the model that this search does not call.
    adapter = getattr(model.__dict__.get("prepare_inputs_for_generation"), "__self__", None)
    if getattr(getattr(adapter, "active_peft_config", None), "is_prompt_learning", False):
        raise ValueError("the constrained search does not work with prompt learning; adapters such as LoRA do")
    if (cache := model_kwargs.get("past_key_values")) is not None and cache.get_seq_length() > 0:
        raise ValueError("the constrained search starts from an empty cache: leave past_key_values out")
    rows = len(input_ids) // generation_config.num_beams
    constraints = constraints or Compiled([Automaton([], 0)] * rows, [None] * rows)
    if len(constraints.automata) != rows:
        raise ValueError(f"there are constraints for {len(constraints.automata)} rows, but {rows} inputs")
    search = _Search(model, input_ids, logits_processor, stopping_criteria, generation_config, constraints, model_kwargs)
    search.run()
    output = search.output()
    return output if generation_config.return_dict_in_generate else output.sequences


class _Search:
    def __init__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        processors: LogitsProcessorList,
        criteria: StoppingCriteriaList,
        config: GenerationConfig,
        constraints: Compiled,
        model_kwargs: dict[str, Any],
    ) -> None:
        self.config, self.processors, self.constraints = config, processors, constraints
        self.width, self.prompt, self.device = config.num_beams, input_ids.shape[1], input_ids.device
        self.length, self.limit = self.prompt, config.max_length
        # One beam is a greedy search, which is over when its text is.
        self.stops_early = config.early_stopping is True or self.width == 1
        # A forced first token, or a forced end token at the limit, leaves one token less for the text.
        self.usable = self.limit - int(config.forced_eos_token_id is not None)
        forced = int(config.forced_bos_token_id is not None and self.prompt == 1)
        self.tokens = max(0, self.usable - self.prompt - forced)
        self.criteria = [criterion for criterion in criteria if not isinstance(criterion, MaxLengthCriteria | EosTokenCriteria)]
        ends = config.eos_token_id
        self.ends = torch.tensor([ends] if isinstance(ends, int) else ends or [], dtype=torch.long, device=self.device)
        # The token after an ended text. Transformers reads a padding token 0 as none; so do we, for the same sequences.
        self.padding = config.pad_token_id or (int(self.ends[0]) if len(self.ends) else 0)
        self.beams = Beams(model, input_ids, self.width, self.limit - self.prompt, model_kwargs)
        self.narrows = self.beams.narrows and all(type(processor).__name__ in _BY_HYPOTHESIS for processor in processors)
        rows = len(constraints.automata)

        def every(value: float, dtype: torch.dtype) -> torch.Tensor:
            return torch.full((rows, self.width), value, dtype=dtype, device=self.device)

        # The unfinished hypotheses of the rows that are still in the batch.
        self.rows = torch.arange(rows, device=self.device)
        self.scores = every(-torch.inf, torch.float32)
        self.scores[:, 0] = 0
        self.texts = every(self.padding, torch.long)[..., None].repeat(1, 1, self.limit)
        self.texts[:, :, : self.prompt] = input_ids.view(rows, self.width, -1)
        # The finished hypotheses of all rows.
        self.best, self.best_scores, self.best_met = self.texts.clone(), every(NONE, torch.float32), every(0, torch.long)
        self.best_length, self.finished = every(self.prompt, torch.long), every(False, torch.bool)
        self.improvable = torch.ones(rows, dtype=torch.bool, device=self.device)

    def run(self) -> None:
        logits = self.beams.first()
        columns = self.constraints.columns(logits.shape[-1], self.ends.tolist())
        self.tracker = Tracker(self.constraints.automata, columns, self.tokens, self.device)
        self.now = self.tracker.start(self.width)
        while (step := self._step(logits)) is not None:
            logits = self.beams.next(*step)

    def _step(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None] | None:
        """Choose the beams that continue, their next tokens and the rows that stay (None for all); return None at the end."""
        left = max(0, self.usable - self.length - 1)
        choices, after = self._candidates(self._scores(logits), left)
        lost = (choices.score == -torch.inf).all(1) & ~self.finished[self.rows].any(1)
        if bool(lost.any()):
            self._settle(lost, self._scores(logits), left)
            choices, after = self._candidates(self._scores(logits), left)
        self.length += 1
        stops, counts = self._stops(choices)
        self._finish(choices, after, (choices.score > -torch.inf) & stops & counts & (after.need == 0))
        score = choices.score.masked_fill(stops, -torch.inf)
        index = share_out(score, after.bank, self.width)
        before = self.texts, self.scores, self.now
        beam, token = choices.beam.gather(1, index), choices.token.gather(1, index)
        self.scores, self.now = score.gather(1, index), after.take(index)
        self.texts = self.texts.gather(1, beam[..., None].expand(-1, -1, self.limit))
        self.texts[:, :, self.length - 1] = token
        going = self._going()
        self._rescue(~going & ~self.finished[self.rows].any(1), before)
        if not bool(going.any()):
            return None
        flat = beam + torch.arange(len(beam), device=self.device)[:, None] * self.width
        if not self.narrows or bool(going.all()):
            return flat.flatten(), token.flatten(), None
        rows = going.nonzero().flatten()
        self.rows, self.scores, self.texts, self.now = self.rows[rows], self.scores[rows], self.texts[rows], self.now.keep(rows)
        self.tracker = self.tracker.keep(rows)
        return flat[rows].flatten(), token[rows].flatten(), rows

    def _scores(self, logits: torch.Tensor) -> torch.Tensor:
        scores = logits.float().log_softmax(-1)
        if self.processors:
            scores = self.processors(self.texts[:, :, : self.length].flatten(0, 1), scores)  # type: ignore[arg-type]
        return scores.contiguous()

    def _candidates(self, scores: torch.Tensor, left: int) -> tuple[Candidates, ConstraintStates]:
        """Return the candidates that can reach their row's goal with `left` more tokens; a candidate may not end its text
        before."""
        early = (self.now.need > 0).view(-1, 1)
        scores[:, self.ends] = scores[:, self.ends].masked_fill(early, -torch.inf)
        self.tracker.forbid_late(scores, self.now, left)
        choices = candidates(Scores(scores, self.scores), self.now, self.tracker, self.ends)
        return choices, self.tracker.move(self.now.take(choices.beam), choices.token)

    def _settle(self, lost: torch.Tensor, scores: torch.Tensor, left: int) -> None:
        """Lower the goal of the rows that have no text, and whose tokens that reach the goal in time are all forbidden."""
        for row in lost.nonzero().flatten().tolist():
            alive = (self.scores[row] > -torch.inf)[:, None]
            self.tracker.lower(row, self.now, (scores.view(*self.scores.shape, -1)[row] > -torch.inf) & alive, left)
        self.now = self.tracker.remeasure(self.now)

    def _stops(self, choices: Candidates) -> tuple[torch.Tensor, torch.Tensor]:
        """Return which candidates can't continue, and which of them may count as finished."""
        if self.length >= self.limit:
            return torch.ones_like(choices.ends), torch.ones_like(choices.counts)
        if not self.criteria:
            return choices.ends, choices.counts
        texts = self.texts[:, :, : self.length].gather(1, choices.beam[..., None].expand(-1, -1, self.length))
        texts[:, :, -1] = choices.token
        hit = torch.stack([criterion(texts.flatten(0, 1), None) for criterion in self.criteria]).any(0)
        return choices.ends | hit.view_as(choices.ends), choices.counts

    def _finish(self, choices: Candidates, after: ConstraintStates, done: torch.Tensor) -> None:
        """Add ended hypotheses to the finished hypotheses of their rows, and keep the best `num_beams`."""
        full = self.finished[self.rows].all(1) & self.stops_early
        done = done & (self.improvable[self.rows] & ~full)[:, None]
        if not bool(done.any()):
            return
        score = choices.score / (self.length - self.prompt) ** self.config.length_penalty
        # Below NONE, so that unfinished hypotheses do not take an empty slot.
        score, index = score.masked_fill(~done, -torch.inf).topk(self.width, dim=1)
        texts = self.texts.gather(1, choices.beam.gather(1, index)[..., None].expand(-1, -1, self.limit))
        texts[:, :, self.length - 1] = choices.token.gather(1, index)
        self.best_scores[self.rows], keep = torch.cat([self.best_scores[self.rows], score], 1).topk(self.width, dim=1)
        texts = torch.cat([self.best[self.rows], texts], 1)
        self.best[self.rows] = texts.gather(1, keep[..., None].expand(-1, -1, self.limit))
        met, length = self.tracker.ended(after).gather(1, index), torch.full_like(index, self.length)
        for old, new in ((self.best_met, met), (self.best_length, length), (self.finished, done.gather(1, index))):
            old[self.rows] = torch.cat([old[self.rows], new], 1).gather(1, keep)

    def _going(self) -> torch.Tensor:
        """Return which rows can still improve, by Transformers' rule."""
        penalty, stopping = self.config.length_penalty, self.config.early_stopping
        longest = self.limit if stopping == "never" and penalty > 0.0 else self.length
        best = self.scores.amax(1) / (longest - self.prompt) ** penalty
        full = self.finished[self.rows].all(1)
        worst = torch.where(full, self.best_scores[self.rows].amin(1), NONE)
        self.improvable[self.rows] = improvable = self.improvable[self.rows] & (best > worst)
        return improvable & ~(full & self.stops_early)

    def _rescue(self, lost: torch.Tensor, before: tuple[torch.Tensor, torch.Tensor, ConstraintStates]) -> None:
        """For rows that must stop without a finished hypothesis, finish the best hypothesis from before this step."""
        texts, scores, now = before
        met = self.tracker.ended(now)
        for row in lost.nonzero().flatten().tolist():
            bank = now.bank[row].masked_fill(scores[row] == -torch.inf, -1)
            best = int(scores[row].masked_fill(bank < bank.amax(), -torch.inf).argmax())
            at, length = self.rows[row], self.length - 1
            self.best[at, 0], self.best_met[at, 0], self.best_length[at, 0] = texts[row, best], met[row, best], length
            self.best_scores[at, 0] = scores[row, best] / max(1, length - self.prompt) ** self.config.length_penalty
            self.finished[at, 0] = True

    def output(self) -> ConstrainedOutput:
        count = self.config.num_return_sequences
        lengths, met = self.best_length[:, :count], self.best_met[:, :count].tolist()
        clauses = [automaton.clauses for automaton in self.constraints.automata]
        listed = [[bits >> clause & 1 == 1 for clause in range(n)] for row, n in zip(met, clauses, strict=True) for bits in row]
        done = self.finished[:, :count].flatten()
        last = self.best[:, :count].gather(2, (lengths - 1).clamp(min=0)[..., None]).flatten()
        ended = done & torch.isin(last, self.ends) & (lengths.flatten() > self.prompt)
        return ConstrainedOutput(
            sequences=self.best[:, :count, : int(lengths.max())].flatten(0, 1),
            sequences_scores=self.best_scores[:, :count].flatten(),
            satisfied=torch.tensor([all(bits) for bits in listed], device=self.device) & done,
            met=listed,
            ended=ended,
        )
