"""The prompts for labels: a language model behind an endpoint as a verifier of claims, a classifier of relations or of texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hfcf import prompts
from hfcf.core.model import Model
from hfcf.engines.classifier import ROUND
from hfcf.engines.classifier_spec import unclear
from hfcf.engines.llm.answers import ALTERNATIVES, token_probabilities
from hfcf.prompts.counterfactuals import SEMEVAL
from hfcf.tasks.relation import OTHER, entities, roles, state_roles
from hfcf.tasks.rewriting import plain
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.text.label_names import label_of

Row = Mapping[str, Any]

_MAX_TOKENS, _LONGEST = 64, 128
"""The most tokens of an answer: of a label, and of a statement about two entities."""
_SHOWN = 6  # the number of labels in a message
_APART = 1000
"""The distance between the seeds of two samples: each retry of a sample uses the next seed."""
_MEANINGS = {
    SUPPORTS: "the evidence shows that the claim is true",
    REFUTES: "the evidence shows that the claim is false",
    NOT_ENOUGH_INFO: "the evidence shows neither",
}


@dataclass(frozen=True)
class VerdictPrompt:
    """Ask a language model behind an endpoint for the labels of rows, as `hfcf.core.task.Task.verdicts` does.

    The answer is `{"label": …}`, one of the names in `Model.labels` ({its name in the prompt: our label}), else of the defaults. If
    the server gives log-probabilities, a label's probability is read from them (`hfcf.engines.llm.answers.token_probabilities`).
    Otherwise the model is asked for `Model.samples` answers at temperature 1. The probability of a label is its share of the valid
    answers. With one sample, the default, the label of the model's greedy answer has the probability 1. Evidence is not cut.

    Args:
        template: the name of the template and its worked examples.
        shots: how many of the worked examples are shown.
        names: the names that the model reads by default, with our labels.
        known: returns our label for a name of a label in `Model.labels`, or None.
        values: returns the values that the template names, from a row and the names.
    """

    template: str
    shots: int
    names: Mapping[str, str]
    known: Callable[[str], str | None]
    values: Callable[[Row, Mapping[str, str]], dict[str, Any]]

    def contents(self, folder: str | None = None) -> str:
        """Return the sha256 of template and examples."""
        return prompts.contents(self.template, folder)

    def check(self, model: Model, labels: Iterable[str]) -> None:
        """Raise `ValueError` unless the names cover all of these labels; the message has the line to type."""
        known, every = set(dict(model.labels or self.names).values()), sorted(set(labels))
        if unknown := [label for label in every if label not in known]:
            shown = f"{', '.join(unknown[:_SHOWN])}{', …' if len(unknown) > _SHOWN else ''}"
            what = f"it does not know the labels {shown}. Name all labels, {{name in the prompt: label}}"
            raise unclear(what, model, {label: label for label in every}, None)

    def ask(self, rows: Sequence[Row], model: Model, sources: Sequence[Row] | None = None) -> list[dict[str, float] | str]:
        """Ask for the label of each row: `{label: probability}`, or the reason why there is none.

        A row with a `label` that the names lack is not asked about. `sources` are the rows that counterfactuals were made from.
        """
        names = self._names(model)
        strange = [row.get("label") if row.get("label") not in {None, *names.values()} else None for row in rows]
        readable = [row for row, label in zip(rows, strange, strict=True) if label is None]
        answers = iter(self._ask([self.values(row, names) for row in readable], names, model))
        return [next(answers) if label is None else _unknown(model, label) for label in strange]

    def _ask(self, rows: Sequence[Row], names: Mapping[str, str], model: Model) -> list[dict[str, float] | str]:
        ask = partial(
            prompts.ask, model, self.template, shots=self.shots, examples=self._examples(names, model.prompts),
            limits={"label": {"enum": list(names)}}, max_tokens=_MAX_TOKENS,
        )  # fmt: skip
        answers = ask(rows, alternatives=ALTERNATIVES)
        results = [_read_shares(answer, names) for answer in answers]
        again = [i for i, shares in enumerate(results) if shares is None]
        samples = [
            ask([rows[i] for i in again], temperature=1.0, seed=_APART * (n + 1))
            for n in range(model.samples if model.samples > 1 else 0)
        ]
        for place, i in enumerate(again):
            results[i] = _count_shares([sample[place] for sample in samples] or [answers[i]], names)
        return [shares if isinstance(shares, str) else _rename(shares or {}, names) for shares in results]

    def _examples(self, names: Mapping[str, str], folder: str | None) -> list[Row]:
        """Return the worked examples whose label has a name, under that name."""
        name_of = {label: name for name, label in reversed([*names.items()])}
        examples = prompts.read_prompt(self.template, folder)["examples"]
        labels = [self.known(self.names.get(label, label)) for label in (example["answers"][0]["label"] for example in examples)]
        return [
            {**example, "answers": [{"label": name_of[label]}]}
            for example, label in zip(examples, labels, strict=True)
            if label in name_of
        ]  # fmt: skip

    def _names(self, model: Model) -> dict[str, str]:
        """Return the names that the model reads, with our labels."""
        named = dict(model.labels or self.names)
        if wrong := next((name for name, label in named.items() if self.known(label) is None), None):
            raise ValueError(
                f"{model.name}: labels gives {wrong!r} the label {named[wrong]!r}; give one of {', '.join(self.names)}"
            )
        return {name: self.known(label) or label for name, label in named.items()}


CHANGES, CHANGE_SHOTS = "relation_changes", 2
"""The prompt that asks which of two relations a sentence expresses, and its worked examples."""
RISE = 0.3
"""By how many nats the odds of the new relation must be above those in the source's sentence.

Of 33 sentences that Qwen2.5-Coder-1.5B wrote for rows of SemEval's 16-shot sample, 7 express their relation, as read by one reader.
Qwen's odds alone accept 6 of these and 6 others; with this rise they accept 4 and none."""
_SURE = 1e-3
"""The distance from 0 and 1 of a probability that counts: an answer without log-probabilities has none of its own."""


@dataclass(frozen=True)
class RelationVerdicts(VerdictPrompt):
    """Ask for the relations of sentences; of a counterfactual's sentence, whether it changed its relation.

    There are more relations than a small model can tell apart at once. So about a counterfactual it is asked to choose between two
    statements, that of the new relation and that of the source's, and the same about the source's sentence as a control. The
    log-odds of the new relation are those in the new sentence or, if that is less, their rise since the source's sentence less
    `RISE`.
    """

    def contents(self, folder: str | None = None) -> str:
        return prompts.contents(self.template, folder) + prompts.contents(CHANGES, folder)

    def check(self, model: Model, labels: Iterable[str]) -> None:
        """Pass: a choice between two relations needs no list of all."""

    def ask(self, rows: Sequence[Row], model: Model, sources: Sequence[Row] | None = None) -> list[dict[str, float] | str]:
        if sources is None:
            return super().ask(rows, model)
        pairs = [(source["label"], row["label"]) for source, row in zip(sources, rows, strict=True)]
        changed = self._odds(rows, pairs, model)
        results: list[dict[str, float] | str] = []
        for pair, new, old in zip(pairs, changed, self._odds(sources, pairs, model), strict=True):
            if isinstance(new, str):
                results.append(new)
                continue
            if isinstance(old, str):
                results.append(old)
                continue
            share = round(1 / (1 + math.exp(-min(new, new - old - RISE))), ROUND)
            results.append({pair[1]: share, pair[0]: round(1 - share, ROUND)})
        return results

    def _odds(self, rows: Sequence[Row], pairs: Sequence[tuple[str, str]], model: Model) -> list[float | str]:
        """Return the log-odds of the second relation of each pair against the first in a sentence, or why there are none."""
        named = {label: name for name, label in dict(model.labels or {}).items()}
        statements = [[_state(row, label, named) for label in pair] for row, pair in zip(rows, pairs, strict=True)]
        texts = [" ".join(plain(row["tokens"])) for row in rows]
        answers = prompts.ask(
            model, CHANGES, [{"sentence": text, "statements": sorted(two)} for text, two in zip(texts, statements, strict=True)],
            shots=CHANGE_SHOTS, row_limits=[{"label": {"enum": sorted(two)}} for two in statements], max_tokens=_LONGEST,
            alternatives=ALTERNATIVES,
        )  # fmt: skip
        results: list[float | str] = []
        for answer, (old, new) in zip(answers, statements, strict=True):
            shares = _read_shares(answer, {old: old, new: new})
            if isinstance(shares, str):
                results.append(shares)
                continue
            share = shares[new] if shares else float(answer["answer"]["label"] == new)
            share = min(max(share, _SURE), 1 - _SURE)
            results.append(math.log(share / (1 - share)))
        return results


def _state(row: Row, label: str, named: Mapping[str, str]) -> str:
    head, tail = entities({**row, "tokens": plain(row["tokens"])})
    return f"{head} and {tail}: {named[label]}" if label in named else state_roles(label, head, tail)


def _unknown(model: Model, label: str | None) -> str:
    return f"{model.name} does not know the label {label!r}: name all labels in its `labels`"


def _read_shares(answer: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float] | str | None:
    """Return the reason of a failure, or the probabilities from the log-probabilities; None if the answer has none."""
    if why := prompts.failure(answer):
        return why
    return token_probabilities(answer["logprobs"], answer["answer"]["label"], list(names)) if "logprobs" in answer else None


def _count_shares(answers: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, float] | str:
    counts = Counter(answer["answer"]["label"] for answer in answers if "error" not in answer)
    if not counts:
        return prompts.failure(answers[-1]) or ""
    return {name: round(counts[name] / counts.total(), ROUND) for name in names}


def _rename(shares: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    """Add up the probabilities of the names of each label."""
    results: dict[str, float] = {}
    for name, share in shares.items():
        results[names[name]] = round(results.get(names[name], 0.0) + share, ROUND)
    return results


def _claim_values(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    meanings = [(name, _MEANINGS.get(label, "")) for name, label in names.items()]
    return {"claim": row["claim"], "evidence": row["evidence"], "meanings": meanings}


def _relation_values(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    shown = {**row, "tokens": plain(row["tokens"])}
    head, tail = entities(shown)
    return {"sentence": " ".join(shown["tokens"]), "head": head, "tail": tail, "names": list(names)}


def _text_values(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    return {"text": row["text"], "names": list(names)}


CLAIMS = VerdictPrompt("verdicts", 3, {label: label for label in LABELS}, label_of, _claim_values)
"""Claims by evidence: our three labels."""
RELATIONS = RelationVerdicts("relation_verdicts", 2, {roles(label): label for label in (*SEMEVAL, OTHER)}, str, _relation_values)
"""Relations by the roles of head and tail: the relations of SemEval by default; `Model.labels` names the relations of another
corpus. A counterfactual's relation is compared with its source's (`RelationVerdicts`)."""
TEXTS = VerdictPrompt("text_verdicts", 0, {}, str, _text_values)
"""Single texts: `Model.labels` names the labels."""
