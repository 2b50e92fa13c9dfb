"""The words and pieces of the evidence that the verifier's label depends on (RACE, section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add, itemgetter
from typing import Annotated, Any, ClassVar, Literal

from datasets import List

from hfcf import prompts
from hfcf.core import schema
from hfcf.core.decisions import best, exceeds, ranked, reaches
from hfcf.core.model import CHAT, REMOTE, Model, is_prompted
from hfcf.core.settings import Positive, Prompted, Share, TrainedBy
from hfcf.core.stage import Reject, Stage
from hfcf.engines.attribution import Attribution
from hfcf.engines.cure import Cure
from hfcf.tasks.ensemble import VerifierModel
from hfcf.tasks.verification import NOT_ENOUGH_INFO, TASK
from hfcf.text.evidence import join, locate, say_cut
from hfcf.text.phrase_match import WORD_END, WORD_START

PROMPT = "deciding_words"
CURE = "cure"
LLM = "llm"
OPEN = 0.5
"""An open gate has a greater probability."""
NO_LABEL = "a NOT ENOUGH INFO row has no label that evidence could flip"
SENTENCES = List({"piece": schema.INT, "score": schema.FLOAT})


@dataclass(frozen=True, kw_only=True)
class Explain(Stage):
    """Find token and sentence rationales: by a trained CURE explainer, gradients of the verifier, or a language model.

    Input columns: `claim`, `evidence`, `label`. Output columns: `rationales`, the words of titles and texts that carry the label
    (adjacent words joined), `sentence_rationales`, the pieces that do, in reading order, and `unread`, the number of characters at
    the end of the evidence that were not read. Evidence past `max_length` has no score and is never a rationale.

    - "cure" (Si et al. 2023), the paper's. The words and the pieces are chosen whose gate is open with a probability above ½, or
      else the likeliest piece. Scores are these probabilities (of joined words, the highest). It explains the verifier's
      prediction, whatever the row's label is. `hfcf.training.explainer` lists the deviations.
    - Gradients of the logit of the row's label. Token rationales are the fewest words that together have `token_share` of the
      attribution. Sentence rationales are the fewest pieces that have `sentence_share` of it. A piece counts with its mean over
      words, so that long pieces have no advantage. Scores are shares of the attribution. Deviation: the shares replace CURE's loss
      for compactness, and nothing is trained.
    - "llm": a language model behind an endpoint names the words and the pieces that decide the row's label. Words that are not in
      their piece do not count, and a row without any is rejected; scores are null. It alone reads no weights of the verifier, which
      may then be "llm:NAME".

    Args:
        verifier: a sequence classifier over (claim, evidence); with "llm" it may be any.
        max_length: tokens of the pair.
        explainer: "cure", the paper's (section 3.1), "gradient_x_input" (one pass), "integrated_gradients" or "llm".
        token_share: share of the attribution that token rationales have, 0–1.
        sentence_share: share of the attribution that sentence rationales have, 0–1.
        explainer_model: for "cure", which needs it, the gates for this verifier, made by `train: explainer`; for "llm", the
            language model "llm:NAME", by default the verifier.

    >>> sorted(Explain(verifier=Model("roberta-base"), explainer="gradient_x_input").outputs)
    ['rationales', 'sentence_rationales', 'unread']
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    outputs: ClassVar = {"rationales": schema.RATIONALES, "sentence_rationales": SENTENCES, "unread": schema.INT}

    engines: ClassVar = (Attribution, Cure)

    verifier: VerifierModel
    max_length: Positive = 130
    explainer: Literal["cure", "gradient_x_input", "integrated_gradients", "llm"] = "cure"
    token_share: Share = 0.6
    sentence_share: Share = 0.8
    explainer_model: Annotated[Model, Prompted(), TrainedBy("train_explainer")] | None = None

    def check(self) -> None:
        if self.explainer == LLM and not is_prompted(self.language_model):
            raise ValueError(
                f"explainer='llm' needs a language model that is asked by prompts, got {self.language_model.name!r}: give "
                f"explainer_model='{REMOTE}NAME' or '{CHAT}NAME'"
            )
        if self.explainer != LLM and is_prompted(self.verifier):
            raise ValueError(
                f"explainer={self.explainer!r} reads the weights of the verifier, a classifier, and {self.verifier.name!r} is "
                "asked by prompts: give explainer='llm', by which a language model names the words that decide"
            )
        if self.explainer == CURE and self.explainer_model is None:
            raise ValueError(
                f"explainer='cure', the paper's and the default, needs gates that are trained for the verifier {self.verifier.name}"
                f": train them (hfcf train train_explainer --out out/explainer --set verifier={self.verifier.name} --set "
                "data_dir=FOLDER) and give explainer_model='out/explainer', or give explainer='gradient_x_input', which needs no "
                "training"
            )
        if self.explainer not in (CURE, LLM):  # it is not read, and must not change the state
            object.__setattr__(self, "explainer_model", None)

    def __getstate__(self) -> dict[str, Any]:
        prompt_state = prompts.state([PROMPT], self.language_model) if self.explainer == LLM else {}
        return {**super().__getstate__(), **prompt_state}

    @property
    def language_model(self) -> Model:
        """The language model of "llm": the explainer's, else the verifier."""
        models = [model for model in (self.explainer_model, self.verifier) if model is not None]
        return next(filter(is_prompted, models), models[0])

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if self.explainer == LLM:
            labelled = [row for row in rows if row["label"] != NOT_ENOUGH_INFO]
            named = iter(self._named(labelled))
            return [Reject(NO_LABEL) if row["label"] == NOT_ENOUGH_INFO else next(named) for row in rows]
        joined = [join(row["evidence"]) for row in rows]
        two_way = [i for i, row in enumerate(rows) if row["label"] != NOT_ENOUGH_INFO]
        score, mark = (self._gates, self._gated) if self.explainer == CURE else (self._scores, self._attributed)
        answers = dict(zip(two_way, score([(rows[i], *joined[i]) for i in two_way]), strict=True))
        return [mark(*joined[i], answers[i]) if i in answers else Reject(NO_LABEL) for i in range(len(rows))]

    def _named(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        """Ask a language model which words and pieces of the evidence decide each row's label."""
        values = [{name: row[name] for name in ("claim", "evidence", "label")} for row in rows]
        answers = prompts.ask(self.language_model, PROMPT, values, seed=self.seed)
        return [
            Reject(why) if (why := prompts.failure(answer)) else _named_rationales(row["evidence"], answer["answer"])
            for row, answer in zip(rows, answers, strict=True)
        ]

    def _gates(self, rows: Sequence[tuple[dict[str, Any], str, Any]]) -> list[Any]:
        assert self.explainer_model is not None
        engine = Cure(verifier=self.verifier, explainer=self.explainer_model, max_length=self.max_length)
        requests = [[row["claim"], text, [list(part) for part in parts]] for row, text, parts in rows]
        return engine.run(requests)

    def _gated(self, text: str, parts: Any, answer: dict[str, Any]) -> dict[str, Any] | Reject:
        words, pieces = answer["words"], answer["pieces"]
        unread = _unread(text, words)
        spans = _spans(parts, words, {n for n, word in enumerate(words) if exceeds(word[2], OPEN)}, max)
        if not spans:
            return Reject(f"the explainer opens the gate of no word of the evidence{say_cut(unread)}")
        opened = [piece for piece in pieces if exceeds(piece[1], OPEN)] or [best(pieces, itemgetter(1), itemgetter(0))]
        sentences = [{"piece": n, "score": score} for n, score in opened]
        return {"rationales": spans, "sentence_rationales": sentences, "unread": unread}

    def _scores(self, rows: Sequence[tuple[dict[str, Any], str, Any]]) -> list[Any]:
        engine = Attribution(model=self.verifier, max_length=self.max_length, method=self.explainer)
        return engine.run([[row["claim"], text, row["label"]] for row, text, _ in rows])

    def _attributed(self, text: str, parts: Any, words: Sequence[Sequence[Any]]) -> dict[str, Any] | Reject:
        unread = _unread(text, words)
        shares, of_pieces = _shares(parts, words)
        if not of_pieces:
            return Reject(f"the verifier's label rests on no word of the evidence{say_cut(unread)}")
        chosen = _fewest(shares, self.token_share)
        pieces = list(of_pieces)
        fewest = sorted(_fewest(list(of_pieces.values()), self.sentence_share))
        sentences = [{"piece": pieces[i], "score": round(of_pieces[pieces[i]], 5)} for i in fewest]
        weighed = [(start, end, share) for (start, end, _), share in zip(words, shares, strict=True)]
        return {"rationales": _spans(parts, weighed, chosen, add), "sentence_rationales": sentences, "unread": unread}


def _unread(text: str, words: Sequence[Sequence[Any]]) -> int:
    return len(text[words[-1][1] if words else 0 :].strip())


def _shares(parts: Any, words: Sequence[Sequence[Any]]) -> tuple[list[float], dict[int, float]]:
    """Return the shares of words in the label, and of pieces, by their mean words; no pieces if it rests on no word."""
    total = sum(score for _, _, score in words)
    if not total:
        return [], {}
    by_piece: dict[int, list[float]] = {}
    for _, (_, piece, _, _), score in placed(parts, words):
        by_piece.setdefault(piece, []).append(score / total)
    means = {piece: sum(by_piece[piece]) / len(by_piece[piece]) for piece in sorted(by_piece)}
    whole = sum(means.values())
    return [score / total for _, _, score in words], {piece: mean / whole for piece, mean in means.items()} if whole else {}


def placed(parts: Any, words: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any, float]]:
    """Yield the number, the place in the evidence and the score of every word that lies in a piece."""
    for i, (start, end, score) in enumerate(words):
        while (place := locate(parts, start, end)) is None and end > start + 1:
            end -= 1  # the colon after a title is not part of it
        if place is not None:
            yield i, place, score


def _spans(parts: Any, words: Sequence[Sequence[Any]], chosen: set[int], joined: Callable[..., float]) -> list[dict[str, Any]]:
    """Make rationales of the chosen words, with their scores; adjacent words of a field are joined."""
    spans: list[dict[str, Any]] = []
    for i, (where, piece, first, last), score in placed(parts, words):
        if i not in chosen:
            continue
        before = spans[-1] if spans else None
        if before and i - 1 in chosen and (before["field"], before["piece"]) == (where, piece):
            before["end"], before["score"] = last, round(joined(before["score"], score), 5)
        else:
            spans.append({"field": where, "piece": piece, "start": first, "end": last, "score": round(score, 5)})
    return spans


def _fewest(shares: Sequence[float], required: float) -> set[int]:
    """Choose the fewest items, largest first, whose shares add up to `required`; ties go to the earlier item."""
    chosen: set[int] = set()
    total = 0.0
    for i in _order(shares):
        if reaches(total, required):
            break
        chosen.add(i)
        total += shares[i]
    return chosen


def _order(shares: Sequence[float]) -> list[int]:
    # Even the largest share of hundreds of words is small: shares are compared with the largest.
    most = max(shares, default=0.0) or 1.0
    return ranked(range(len(shares)), lambda i: shares[i] / most, int)


def _named_rationales(evidence: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> dict[str, Any] | Reject:
    """Make rationales of the words that are in their piece; the sentence rationales are their pieces if no piece is named."""
    places = {place for word in answer["words"] if (place := _find(evidence, word["piece"], word["text"]))}
    if not places:
        return Reject("the language model names no words of the evidence")
    order = sorted(places, key=lambda place: (place[0], place[1] == "evidence", *place[2:]))
    spans = [{"field": field, "piece": piece, "start": start, "end": end, "score": None} for piece, field, start, end in order]
    pieces = {piece for piece in answer["pieces"] if 0 <= piece < len(evidence)} or {piece for piece, *_ in places}
    sentences = [{"piece": piece, "score": None} for piece in sorted(pieces)]
    return {"rationales": spans, "sentence_rationales": sentences, "unread": 0}


def _find(evidence: Sequence[Mapping[str, Any]], piece: int, words: str) -> tuple[int, str, int, int] | None:
    """Find words in the text of a piece, then in its title, as whole words in any case: piece, field, start and end."""
    if not (0 <= piece < len(evidence) and words.split()):
        return None
    pattern = WORD_START + r"\s+".join(map(re.escape, words.split())) + WORD_END
    for field, text in (("evidence", evidence[piece]["text"]), ("evidence.title", evidence[piece]["title"] or "")):
        if match := re.search(pattern, text, re.IGNORECASE):
            return piece, field, match.start(), match.end()
    return None
