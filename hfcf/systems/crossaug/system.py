"""CrossAug as one system, with the stage that pairs claims and evidence crosswise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hfcf.core import edits, schema
from hfcf.core.bound_stage import BoundStage
from hfcf.core.model import Model
from hfcf.core.public_models import JUDGE, VERIFIER, chat_model, pinned
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.ner import Ner
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems._shared.tag_entities import TagEntities
from hfcf.systems.crossaug.fill_spans import FillSpans
from hfcf.systems.crossaug.modify_evidence import ModifyEvidence
from hfcf.systems.crossaug.negative_claim import GenerateNegativeClaim
from hfcf.tasks.verification import CANDIDATES, REFUTES, SUPPORTS, candidate

Pair = Literal["claim", "evidence", "both"]


@dataclass(frozen=True, kw_only=True)
class CrossPairs(Stage):
    """Pair the claims with the pieces of evidence crosswise.

    The pairs are (c′, e, REFUTES), (c, e′, REFUTES) and (c′, e′, SUPPORTS).

    Input columns: `claim`, `negative_claim`, `edits`. Output column: `candidates`, of change "claim", "evidence" and "both";
    without modified evidence only "claim".

    Args:
        pairs: the kinds of pairs to make; ("claim",) and ("evidence",) are the ablations of Table 1.

    >>> row = {"claim": "a", "negative_claim": "b", "edits": []}
    >>> [new["change"] for new in CrossPairs().row(row)["candidates"]]
    ['claim']
    """

    inputs: ClassVar = {"claim": schema.TEXT, "negative_claim": schema.TEXT, "edits": schema.EDITS}
    outputs: ClassVar = {"candidates": CANDIDATES}
    optional: ClassVar = {"writer": schema.TEXT}
    produced_by: ClassVar = {"negative_claim": "crossaug.generate_negative_claim", "edits": "crossaug.modify_evidence"}

    pairs: tuple[Pair, ...] = ("claim", "evidence", "both")

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        negative = edits.rewrite("claim", row["claim"], row["negative_claim"])
        scores = [{"name": f"writer: {writer}", "value": 1.0}] if (writer := row.get("writer")) else []
        candidates = [candidate(row["negative_claim"], REFUTES, "claim", negative, scores)]
        if row["edits"]:
            candidates.append(candidate(row["claim"], REFUTES, "evidence", row["edits"], scores))
            candidates.append(candidate(row["negative_claim"], SUPPORTS, "both", [*negative, *row["edits"]], scores))
        candidates = [new for new in candidates if new["change"] in self.pairs]
        if not candidates:
            raise Reject("the evidence was not modified", candidates=[])
        return {"candidates": candidates}


OFFLINE: dict[str, Any] = {
    "generator": Model("offline:t5", adapter="hfcf:negative"),
    # The small generator's best hypothesis is the claim itself in half of the cases; many others are paraphrases.
    "num_beams": 30,
    "num_candidates": 30,
    "verifier": Model("offline:minilm", adapter="hfcf:verifier"),
    # A small verifier accepts too many wrong pairs; the judge is trained on the other half of the rows.
    "judges": (Model("offline:minilm", adapter="hfcf:verifier_2"),),
    "max_length": 160,
    # A small verifier takes some paraphrases for refuted, and most of what may be true as well.
    "exclude_same": True,
    "exclusive": True,
    "span_filling": True,
    "ner": Ner(backend="spacy", model=Model("offline:spacy")),
    # The first hypothesis that passes often changes more than it must.
    "best": True,
    "fluency_model": Model("offline:smollm2"),
    "max_perplexity_ratio": 2.0,
    "replace_all": True,
    "unique": True,
}
"""Settings of the offline preset: what the paper's BART writes unchecked, a small T5 writes for a verifier to choose from."""

BASE: dict[str, Any] = {
    "generator": Model("chat:offline:qwen"),
    "num_candidates": 4,
    "verifier": Model("offline:mpnet", adapter="hfcf:verifier_base"),
    # Of other training rows: what fools one of them seldom fools both.
    "judges": (Model("offline:mpnet", adapter="hfcf:verifier_2_base"),),
    "min_kept": 0.5,
    # A third of its pairs would be negations.
    "negations": 0.2,
    # Of nine claims for 30 development rows, four were open by their evidence ("a director" for "a producer"): `exclusive` and this
    # certainty take these away, and the wrong values of `span_filling` put three others in their place.
    "certainty": 0.5,
}
"""What is different at size "base": a language model of 1.5 B writes, a verifier of 109 M judges."""

_CHAT = Model("llm:gpt-4o-mini")
LLM: dict[str, Any] = {
    "generator": _CHAT, "num_candidates": 3, "verifier": _CHAT, "min_kept": 0.5, "exclude_same": True, "best": True,
    "negations": 0.2,
}  # fmt: skip
"""A language model behind `HFCF_LLM_URL` writes and verifies; no local model is left."""

HUB: dict[str, Any] = {
    "generator": chat_model(),
    "num_candidates": 5,
    # An encoder, not the chat model. On 33 claims of FEVER, Qwen2.5-Coder-1.5B as verifier tells SUPPORTS from REFUTES with an
    # accuracy of 0.58, and both encoders of the offline presets with 0.82; on 300, these have 0.83 (small) and 0.88 (base).
    "verifier": pinned(VERIFIER),
    # What fools one network seldom fools another family that was trained on other rows.
    "judges": (pinned(JUDGE),),
    # Of the verdicts of a verifier and a judge of this size 89 % are then right, and 60 % are left (benchmarks/judge_curve.py).
    "certainty": 0.7,
    "max_length": 512,
    # The first claim that passes often changes more than it must, and a synonym or a broader word refutes nothing.
    "best": True,
    "exclude_same": True,
    # At size base, which has models of this kind, four of nine claims were open by their evidence without it.
    "exclusive": True,
    "negations": 0.2,
    "min_kept": 0.5,
    "replace_all": True,
    "unique": True,
}
"""Public checkpoints that need no training: a chat model writes, two families verify. What only
mends small models is left out: a wide search, `span_filling`, a `fluency_model`."""


class CrossAug(System):
    """Write a negative claim for each supported claim, make the evidence support it, and pair claims and evidence crosswise.

    `ds = CrossAug.preset("offline")(ds)` runs the whole chain; each of its stages is an attribute.

    As in the paper, nothing is checked without a verifier. With a verifier, as in the offline preset, c′ is a claim that the
    evidence refutes. A pair is kept only if the verifier and all judges agree. With `span_filling`, `ner` finds values of the
    claims for wrong values to fill their places (`FillSpans`); without it, the first two stages do nothing.

    Its stages define its settings. `generator`, `verifier` and each of `judges` may be "llm:NAME", a language model behind an
    endpoint. `hfcf.engines.llm.engine.LanguageModel` has its environment variables. The preset "llm" has such a model for the first
    two.

    >>> [stage.name for stage in CrossAug.preset("offline").stages][:3]
    ['tag_entities', 'fill_spans', 'generate_negative_claim']
    """

    task = "verification"
    chain = (
        BoundStage(TagEntities, fixed={"script": None}),
        FillSpans,
        GenerateNegativeClaim,
        ModifyEvidence,
        CrossPairs,
        JudgeCandidates,
    )
    defaults: ClassVar = {"ner": None}
    presets: ClassVar = {"paper": {}, "hub": HUB, "offline": OFFLINE, "llm": LLM}
    sizes: ClassVar = {"offline": {"small": {}, "base": BASE}}
    citation = """@inproceedings{lee-etal-2021-crossaug,
  title = {{CrossAug}: A Contrastive Data Augmentation Method for Debiasing Fact Verification Models},
  author = {Lee, Minwoo and Won, Seungpil and Kim, Juae and Lee, Hwanhee and Park, Cheoneum and Jung, Kyomin},
  booktitle = {Proceedings of CIKM},
  year = {2021}
}"""

    def check(self) -> None:
        """Raise `ValueError` if spans shall be filled and no tagger finds them."""
        if self.span_filling and self.ner is None:
            raise ValueError("span_filling=True needs a tagger of entities, which finds the spans: give ner")
