"""Beam search under lexical constraints: any model of Transformers, with separate constraints for every row.

A row's constraints are a conjunction of clauses, and a clause is a list of alternatives. For example, `[["Rome", "Paris"],
["1994"]]` is met by a text that names Rome or Paris, and 1994.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from hfcf.engines.constrained.search import ConstrainedOutput
    from hfcf.engines.constrained.vocabulary import Alternative, Vocabulary


def generate_constrained(
    model: Any,
    inputs: Mapping[str, torch.Tensor],
    constraints: Sequence[Sequence[Sequence[Alternative]]],
    *,
    tokenizer: Any = None,
    vocabulary: Vocabulary | None = None,
    num_beams: int = 10,
    num_return_sequences: int = 1,
    **settings: Any,
) -> ConstrainedOutput:
    """Search texts that meet every row's clauses, in about the time of a plain beam search.

    A phrase counts anywhere in the generated text as complete words. One occurrence serves every clause that has the phrase, and
    the prompt does not count. The search ends a text only when it meets every clause. Sometimes no text of at most `max_new_tokens`
    tokens can meet all clauses: it is too short, or the tokenizer can't write a phrase. Then the texts meet as many clauses as
    possible, and `satisfied` is False. With up to twelve clauses in a row this is exact, however narrow the beam, unless a logits
    processor forbids the tokens. With more clauses, a row's goal is the clauses whose shortest phrases, one after the other, fit in
    the length. A row without clauses is searched as by Transformers' own beam search.

    Args:
        model: an encoder-decoder or decoder-only model of Transformers.
        inputs: `input_ids` and `attention_mask`, padded on the left for a decoder-only model.
        constraints: for each row a list of clauses; each clause is a list of alternatives. An alternative is a string or an exact
            sequence of token ids. A string also counts in the forms that it has at the start of a sentence and after a bracket.
        tokenizer: the model's tokenizer, if there are strings.
        vocabulary: `Vocabulary(tokenizer)` instead of the tokenizer: shared by all calls, it saves a fraction of a second on each.
        num_beams: the number of beams.
        num_return_sequences: the number of hypotheses for each row; places without a hypothesis have a score of -1e9.
        settings: arguments of `generate`: `max_new_tokens`, `length_penalty`, `early_stopping`, `no_repeat_ngram_size`, logits
            processors, stopping criteria, `cache_implementation` and so on.

    Returns:
        `sequences`, `sequences_scores`, `satisfied`, `met` and `ended`.

    Raises:
        ValueError: a clause or an alternative is empty, there are more than 62 clauses, or a string has no tokenizer. Or a token is
            outside the vocabulary (with the row). Or the call asks for sampling or streaming, or has inputs that the search can't
            pass to the model.

    >>> import torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> _ = torch.manual_seed(0)
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, eos_token_id=1, bos_token_id=1))
    >>> inputs = {"input_ids": torch.tensor([[5, 6], [7, 8]]), "attention_mask": torch.ones(2, 2, dtype=torch.long)}
    >>> constraints = [[[[20, 21], [30]], [[40]]], []]  # 20 21 or 30, and 40; the second row has none
    >>> output = generate_constrained(model, inputs, constraints, num_beams=4, max_new_tokens=6, pad_token_id=0)
    >>> output.satisfied.tolist(), output.met
    ([True, True], [[True, True], []])
    """
    from hfcf.engines.constrained.search import Compiled, constrained_beam_search
    from hfcf.engines.constrained.vocabulary import Vocabulary, compile_row

    if vocabulary is None and tokenizer is not None:
        vocabulary = Vocabulary(tokenizer)
    config = settings.get("generation_config") or model.generation_config
    ends = settings.get("eos_token_id", config.eos_token_id)
    ends, size = [ends] if isinstance(ends, int) else list(ends or []), model.get_output_embeddings().weight.shape[0]
    rows = [compile_row(clauses, vocabulary, ends, size, row) for row, clauses in enumerate(constraints)]
    output: ConstrainedOutput = model.generate(
        **inputs,
        **settings,
        num_beams=num_beams,
        num_return_sequences=num_return_sequences,
        do_sample=False,
        return_dict_in_generate=True,
        custom_generate=constrained_beam_search,
        constraints=Compiled([automaton for automaton, _ in rows], [classes for _, classes in rows]),
    )
    return output
