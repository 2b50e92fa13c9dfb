"""Train open-domain readers on questions and answers alone, with the passages that a retriever finds (RGF, section 5.3)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from datasets import Dataset, Features, List, Value

from hfcf import corpora
from hfcf.core.trainer import Evaluation
from hfcf.engines.base import Encoded, pad
from hfcf.engines.generator import two_sided
from hfcf.engines.open_reader import ENCODER, OpenReader, store_retriever
from hfcf.engines.reader import Reader, encode_windows, first_texts
from hfcf.engines.retriever import Retriever
from hfcf.metrics.scores import em_f1 as scores
from hfcf.text.phrase_match import find_places
from hfcf.training.answer_details import span_details
from hfcf.training.open_domain import OpenHyperparameters
from hfcf.training.reader import STRIDE, TASK_TYPE, load_start, tokens_of
from hfcf.training.scorers import ANSWERS
from hfcf.training.trainer import Loss, fit

log = logging.getLogger(__name__)

UNANSWERED, NOT_FOUND, NOT_HELD = "without an answer", "without a passage", "with an answer in no passage"
"""Why a question is not trained on."""
WINDOWS = ("input_ids", "token_type_ids")


def train_open_reader(rows: Dataset, hp: OpenHyperparameters, out: Path) -> dict[str, int]:
    """Train a reader on the passages that a retriever finds, and a dense retriever's encoder of questions with it.

    The loss of a question is `−log Σ_c p(c|q) p(a|q, c)` over its `k` passages. `p(c|q)` is the softmax of the retriever's scores.
    `p(a|q, c)` is the sum over all spans of the passage that match an answer, as whole words in any case. The loss `−log p("no
    answer"|q, c)` of the passages without the answer is added with the weight `no_answer`. A passage that is too long for the
    reader is cut into windows, and each window counts as a passage. Contexts and places of answers are ignored.

    Source: RGF, section 5.3 and appendix A: REALM (Guu et al. 2020), fine-tuned end to end on (q, a). Deviations:

    - Transformers can no longer load REALM. Here a dense retriever is any bi-encoder, in the paper preset DPR's. Its encoder of
      questions is trained, and the passages' vectors stay; section 5.3 names both encoders. RAG and ORQA (Lee et al. 2019, which
      the paper builds on) do the same. BM25's scores are not trained.
    - ORQA searches again in every step. Here the `k` passages are found once, before the training, and only p(c|q) changes. After
      the training the trained encoder searches.
    - ORQA has one softmax over the spans of all passages, so that passages without the answer lose weight. It also has a second
      retriever loss over 5,000 passages. Here each passage has its own softmax with "no answer", as in hfcf's readers. Its loss
      replaces both.

    Args:
        rows: question answering rows, with or without contexts.
        hp: how. A dense retriever needs `tune="full"`.
        out: the folder: the reader, or its adapter; `open_domain.json` with the retriever; and `question_encoder/`, if it is
            trained. An interrupted run continues.

    Returns: How many questions were trained on ("trained"), and how many were not, by the reason: "without an answer", "without a
        passage", "with an answer in no passage". The last kind has no gradient, also in the paper's implementation.

    Raises:
        ValueError: no question is left, the reader is an encoder-decoder, or the answers are patterns (Curated TREC). Also if a
            reader with a dense retriever is not trained whole.
    """
    from transformers import set_seed

    _check(rows, hp)
    start, retriever = load_start(hp), hp.retriever
    encoded = encode_questions(rows, retriever, start.tokenizer, hp.max_length)
    counts = Counter(encoded["why"])
    kept = encoded.select([i for i, why in enumerate(encoded["why"]) if not why]).remove_columns("why")
    about = {"trained": len(kept), **{why: counts[why] for why in (UNANSWERED, NOT_FOUND, NOT_HELD)}}
    reasons = ", ".join(f"{counts[why]} are {why}" for why in (UNANSWERED, NOT_FOUND, NOT_HELD))
    if not len(kept):
        raise ValueError(
            f"there is nothing to train on: of {len(rows)} questions {reasons}; give a collection that holds the answers, or more "
            "passages (k)"
        )
    if len(kept) < len(rows):
        log.warning("%d of %d questions are not trained on: %s", len(rows) - len(kept), len(rows), reasons)
    dense = retriever.method == "dense"
    set_seed(hp.seed)  # weights that the encoder lacks are new: the search may have drawn numbers, or read an index
    network = Bi(start.network, retriever) if dense else start.network
    columns = ("question", "scores", "readable", "spans", *(("text", "numbers") if dense else ()))
    loss = Loss(of=lambda output, batch: sum(marginal_terms(output, batch, hp.scale, hp.no_answer)), columns=columns)
    fit(
        network, start.tokenizer, kept, hp, collator=Collator(start.tokenizer, network if dense else None), task_type=TASK_TYPE,
        head=start.head, out=out, base=start.base, loss=loss,
    )  # fmt: skip
    store_retriever(out, retriever, hp.scale, about)
    return about


def _check(rows: Dataset, hp: OpenHyperparameters) -> None:
    if two_sided(hp.model):
        raise ValueError(f"{hp.model.name} writes its answers, and an open-domain reader finds spans: give an encoder")
    names = set(corpora.names())
    patterns = {name for name in set(rows["corpus"]) & names if "regex" in corpora.builder_class(name).EXTRA}
    if patterns:
        raise ValueError(f"{', '.join(sorted(patterns))}: its answers are patterns, on which no reader is trained; evaluate on it")
    if hp.retriever.method == "dense" and hp.tune != "full":
        raise ValueError(f"tune={hp.tune!r}: a reader with a dense retriever is trained and stored whole: tune='full'")


def encode_questions(rows: Dataset, retriever: Retriever, tokenizer: Any, max_length: int) -> Dataset:
    """Tokenise each question with its passages, in lists of windows.

    `readable` marks the tokens of the context and the first; `scores` are the retriever's, `numbers` the passages'. `spans` are
    answers' places, each [window, first token, last token]. `why` says why a question can't be trained on, or is "".
    """
    names = [name for name in WINDOWS if name in tokenizer.model_input_names]

    def encode(batch: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        found = retriever.run(batch["question"])
        made = [
            _encode(tokenizer, names, max_length, question, answers["text"], hits)
            for question, answers, hits in zip(batch["question"], batch["answers"], found, strict=True)
        ]
        return {name: [question[name] for question in made] for name in features}

    numbers = List(Value("int64"))
    features = Features({
        **dict.fromkeys(names, List(numbers)), "readable": List(numbers), "scores": List(Value("float64")), "numbers": numbers,
        "spans": List(numbers), "text": Value("string"), "why": Value("string"),
    })  # fmt: skip
    # An update of the library may change the index of the collection, so no cached rows are read.
    return rows.map(
        encode, batched=True, remove_columns=rows.column_names, desc="tokenise", features=features, load_from_cache_file=False
    )


def _encode(
    tokenizer: Any, names: Sequence[str], max_length: int, question: str, answers: Sequence[str], hits: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    row: dict[str, Any] = {name: [] for name in (*names, "readable", "scores", "numbers", "spans")}
    windows = encode_windows(tokenizer, [[question, hit["text"]] for hit in hits], max_length, STRIDE) if answers else []
    for hit, of_passage in zip(hits, windows, strict=False):
        characters = {place for answer in answers for place in find_places(answer, hit["text"])}
        for features, places in of_passage:
            tokens = {tokens_of(places, start, end) for start, end in characters} - {(0, 0)}
            row["spans"] += [
                [len(row["scores"]), first, last] for first, last in sorted(tokens) if last - first < Reader.max_answer
            ]
            for name in names:
                row[name].append(features[name])
            row["readable"].append([int(i == 0 or place is not None) for i, place in enumerate(places)])
            row["scores"].append(hit["score"])
            row["numbers"].append(hit["number"])
    why = UNANSWERED if not answers else NOT_FOUND if not row["scores"] else "" if row["spans"] else NOT_HELD
    return {**row, "text": question, "why": why}


class BiOutput(NamedTuple):
    start_logits: torch.Tensor
    end_logits: torch.Tensor
    scores: torch.Tensor


class Bi(torch.nn.Module):
    """A reader and a dense retriever's encoder of questions, trained together; passages' vectors are read from the index."""

    def __init__(self, reader: Any, retriever: Retriever) -> None:
        super().__init__()
        self.engine = replace(retriever.encoder(), model=replace(retriever.encoder().model, dtype="float32"))
        self.retriever, self.reader = retriever, reader
        self.encoder, self.tokenizer = self.engine.load(torch.device("cpu"))

    def forward(
        self, input_ids: Any, attention_mask: Any, question_ids: Any, question_mask: Any, vectors: Any, window_of: Any,
        token_type_ids: Any = None,
    ) -> BiOutput:  # fmt: skip
        """Read windows and score them; `vectors` are the vectors of their passages, `window_of` the question of each."""
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        output = self.reader(input_ids=input_ids, attention_mask=attention_mask, **types)
        question = self.engine.pool(self.encoder(input_ids=question_ids, attention_mask=question_mask), question_mask)
        return BiOutput(output.start_logits, output.end_logits, (question[window_of] * vectors).sum(-1))

    def save_pretrained(self, folder: Path) -> None:
        self.reader.save_pretrained(folder)
        self.encoder.save_pretrained(Path(folder) / ENCODER)
        self.tokenizer.save_pretrained(Path(folder) / ENCODER)


@dataclass(frozen=True)
class Collator:
    """Make one batch of the windows of several questions; `bi` is the network if the encoder is trained."""

    tokenizer: Any
    bi: Bi | None

    def __call__(self, items: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        windows = [
            Encoded({name: item[name][i] for name in WINDOWS if name in item}) for item in items for i in range(len(item["scores"]))
        ]
        batch = dict(pad(self.tokenizer, windows, torch.device("cpu")))
        readable = torch.zeros(batch["input_ids"].shape, dtype=torch.bool)
        for place, row in enumerate(row for item in items for row in item["readable"]):
            readable[place, : len(row)] = torch.tensor(row, dtype=torch.bool)
        spans, before = [], 0
        for item in items:
            spans += [[before + window, first, last] for window, first, last in item["spans"]]
            before += len(item["scores"])
        question = torch.tensor([number for number, item in enumerate(items) for _ in item["scores"]])
        batch |= {
            "question": question, "readable": readable, "spans": torch.tensor(spans),
            "scores": torch.tensor([score for item in items for score in item["scores"]], dtype=torch.float32),
        }  # fmt: skip
        return batch if self.bi is None else {**batch, **self._encode_questions(self.bi, items, question)}

    def _encode_questions(self, bi: Bi, items: Sequence[Mapping[str, Any]], question: torch.Tensor) -> dict[str, torch.Tensor]:
        encoded = bi.engine.encode((bi.encoder, bi.tokenizer), [["", item["text"]] for item in items])
        batch = pad(bi.tokenizer, encoded, torch.device("cpu"))
        vectors = bi.retriever.vectors([number for item in items for number in item["numbers"]])
        return {
            "question_ids": batch["input_ids"], "question_mask": batch["attention_mask"], "window_of": question,
            "vectors": torch.tensor(vectors),
        }  # fmt: skip


def marginal_terms(
    output: Any, batch: Mapping[str, torch.Tensor], scale: float, no_answer: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the two terms of the loss of a batch of questions; see `train_open_reader`.

    The first is a mean over questions, the second over windows without the answer. A trained retriever's scores are in `output`.
    """
    start, end = (
        torch.where(batch["readable"], logits.float(), -torch.inf).log_softmax(-1)
        for logits in (output.start_logits, output.end_logits)
    )
    new_scores = getattr(output, "scores", None)
    scored = scale * (batch["scores"] if new_scores is None else new_scores)
    question = batch["question"]
    prior = scored - _log_sums(scored, question)[question]
    window, first, last = batch["spans"].unbind(1)
    likelihood = _log_sums(prior[window] + start[window, first] + end[window, last], question[window])
    empty = _without_answer(batch)
    # A sum over no window is 0.
    nothing = (start[:, 0] + end[:, 0])[empty].sum() / empty.sum().clamp(min=1)
    return -likelihood.mean(), -no_answer * nothing


def _without_answer(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Mark the windows that hold no answer."""
    empty = torch.ones_like(batch["question"], dtype=torch.bool)
    empty[batch["spans"][:, 0]] = False
    return empty


def _log_sums(values: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Return the log-sum-exp of each group's values; groups are numbered from 0, and none is empty."""
    numbers = torch.arange(int(groups.max()) + 1, device=groups.device)
    return torch.where(groups == numbers[:, None], values, -torch.inf).logsumexp(-1)


def evaluate_open_reader(rows: Dataset, reader: OpenReader) -> Evaluation:
    """Score an open-domain reader by exact match and F1."""
    if not len(rows):
        return Evaluation({"rows": 0})
    questions, gold = rows["question"][:], ANSWERS.gold(rows)
    hits = reader.retriever.run(questions)
    has_answer = [any(holds_answer(answers, hit["text"]) for hit in passages) for answers, passages in zip(gold, hits, strict=True)]
    found = reader.read_hits(questions, hits)
    predicted = first_texts(found)
    results = {
        "rows": len(rows),
        **ANSWERS.scores(gold, predicted),
        "retrieved": round(sum(has_answer) / len(has_answer), 4),
        "no_passage": sum(not passages for passages in hits),
    }
    details = [span_details(answer) for answer in found]
    return Evaluation(results, gold, predicted, max_length=reader.reader.max_length, details=details)


def holds_answer(gold: scores.Gold, passage: str) -> bool:
    """Return whether an answer occurs in a passage as whole words in any case, or whether a pattern matches anywhere."""
    if isinstance(gold, Mapping):
        return any(scores.compile_pattern(pattern).search(passage) for pattern in gold["regex"])
    return any(find_places(text, passage) for text in gold)
