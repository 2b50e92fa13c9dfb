"""What the columns that stages fill and the scores of counterfactuals mean; a test finds a column without a meaning."""

from __future__ import annotations

from parts.markdown import table

COLUMNS = {
    "candidates": "texts that might become counterfactuals, each with a `status`",
    "causal_claim": "a claim that the cause leads to the effect",
    "causal_entities": "the entities that overlap a rationale",
    "causal_terms": "positions of the words that determine the relation",
    "counterfactuals": "the accepted candidates, as complete rows",
    "decompositions": "questions as predicate and references; `by` names the method",
    "distractors": "pieces of other claims that the structure does not use",
    "edited_entities": "the entities in `edited_evidence`",
    "edited_evidence": "the evidence after the edits, E′",
    "edits": "the replaced spans",
    "entities": "the names in claim, texts and titles",
    "fillings": "claims with a wrong value",
    "modification": "`modified`, or why the evidence was not changed",
    "negative_claim": "the claim that the evidence refutes, c′",
    "nei_evidence": "the pieces of a NOT ENOUGH INFO row",
    "new_relations": "relations that the entities can have",
    "opposite_effect": "an effect that excludes the given one",
    "passages": "the passages found for the question",
    "preliminary_terms": "positions of the words that were tried first",
    "rationales": "the words that the label depends on",
    "refutation": "the steps of an argument against the claim",
    "refutation_program": "that argument as program text",
    "refutation_structure": "that argument as steps",
    "repairs": "repaired slips in the program text",
    "semantic_terms": "positions of the words on the semantic path",
    "sentence_rationales": "the pieces that the label depends on",
    "support": "the steps of an argument for the claim",
    "support_program": "that argument as program text",
    "support_structure": "that argument as steps",
    "syntactic_terms": "positions of the words on the syntactic path",
    "term_places": "the place of each word of the paths in its graph",
    "unread": "characters at the end of the evidence that were not read",
    "writer": "what wrote the negative claim",
}
PROVENANCE = {
    "source_id": "the `id` of the source row",
    "system": "the name of the system",
    "change": "what differs: claim, evidence, both, relation, reference, predicate or question",
    "edits": "the replaced spans, or the whole field if it was written anew, as end-exclusive "
    "code points of the source text (token positions if `field` is `tokens`)",
    "scores": "[numbers](#scores) that the system measured",
}
SCORES = (
    ("`verifier: LABEL`, `judge N: LABEL`", "all with a judge", "the probability of the label that the model chooses", "0–1"),
    ("`words: LABEL`", "RACE", "the label that the rule of words gives", "1"),
    ("`writer: NAME`", "RACE, CrossAug", "which writer made the claim", "1"),
    ("`semantic fidelity`, `entity fidelity`", "RACE", "MoverScore to the source's claim; the share of its entities kept", "0–1"),
    ("`perplexity ratio`", "RACE", "the perplexity of the claim over that of the source's claim", "0 or more"),
    ("`copy rate`, `words shared`", "RACE", "the share that is one run of the evidence; the source's words kept", "0–1"),
    ("`log-probability of the answer`, `log-probability of the question`", "RGF", "of the model that wrote it", "0 or less"),
    ("`readers that agree`", "RGF", "how many readers of the round trip gave the intended answer", "a count"),
    ("`word edit distance`", "RGF", "the changed words between the two questions", "a count"),
    ("`references by METHOD`", "RGF", "how the references were found, and their number", "a count"),
    ("`retrieval rank`, `retrieval score`", "RGF", "the passage's place among those found; the retriever's score", "a number"),
    ("`reader probability`", "RGF", "of the answer, by the reader that found it", "0–1"),
    ("`editor`", "CCG, MICE, AutoCAD", "the mean log-probability of the words that the editor wrote", "0 or less"),
    ("`indicator: LABEL`", "CCG, MICE, AutoCAD, CoCo", "the probability of the relation that the base model predicts", "0–1"),
    ("`loss of fluency`", "CCG", "how much log-likelihood the sentence loses against its source", "a number"),
    ("`loss of sense`", "CCG", "how much log-likelihood the entities lose in their new sentence", "a number"),
    ("`distractors`", "CheckWhy", "the pieces that the structure does not use", "a count"),
)


def scores_table() -> str:
    """List the names in `scores`."""
    return table(("name", "written by", "meaning", "value"), SCORES)
