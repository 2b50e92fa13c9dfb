"""What the columns that stages fill and the scores of counterfactuals mean; a test finds a column without a meaning."""

from __future__ import annotations

from parts.markdown import table

COLUMNS = {
    "candidates": "texts that might become counterfactuals, each with a `status`",
    "counterfactuals": "the accepted candidates, as complete rows",
    "edits": "the replaced spans",
    "entities, causal_entities, edited_entities": "the names in claim, texts and titles; those that overlap a rationale; those "
    "after the edits",
    "rationales": "the words that the label depends on",
    "sentence_rationales": "the pieces that the label depends on",
    "unread": "characters at the end of the evidence that were not read",
    "edited_evidence": "the evidence after the edits, E′",
    "fillings": "claims with a wrong value",
    "negative_claim": "the claim that the evidence refutes, c′",
    "modification": "`modified`, or why the evidence was not changed",
    "writer": "what wrote the negative claim",
    "causal_terms": "positions of the words that determine the relation",
    "preliminary_terms": "those that were tried first",
    "term_places": "the place of each word of the paths in its graph",
    "new_relations": "relations that the entities can have",
    "passages": "the passages found for the question",
    "decompositions": "questions as predicate and references; `by` names the method",
    "causal_claim": "a claim that the cause leads to the effect",
    "opposite_effect": "an effect that excludes the given one",
    "support, refutation": "the steps of an argument for the claim, and against it",
    "support_program, refutation_program": "these arguments as program text",
    "support_structure, refutation_structure": "these arguments as steps",
    "repairs": "repaired slips in the program text",
    "nei_evidence": "the pieces of a NOT ENOUGH INFO row",
    "distractors": "pieces of other claims that the structure does not use",
}
"""What stages fill, in the order of the systems; columns of one type may share a line."""
PROVENANCE = {
    "source_id": "the `id` of the source row",
    "system": "the name of the system",
    "change": "what differs: claim, evidence, both, relation, reference, predicate or question",
    "edits": "the replaced spans, or the whole field if it was written anew, as end-exclusive "
    "code points of the source text (token positions if `field` is `tokens`)",
    "scores": "[numbers](#scores) that the system measured",
}
SCORES = (
    ("`verifier: LABEL`, `judge N: LABEL`", "all with a judge", "the probability of the label that the model chooses"),
    ("`words: LABEL`", "RACE", "the label that the rule of words gives; always 1"),
    ("`writer: NAME`", "RACE, CrossAug", "which writer made the claim; always 1"),
    ("`semantic fidelity`, `entity fidelity`", "RACE", "MoverScore to the source's claim; the share of its entities kept"),
    ("`perplexity ratio`", "RACE", "the perplexity of the claim over that of the source's claim"),
    ("`copy rate`, `words shared`", "RACE", "the share that is one run of the evidence; the source's words kept, 0–1"),
    ("`log-probability`", "RACE, Paraphrase, Polyjuice", "the mean log-probability of the words that the model wrote"),
    ("`log-probability of the answer`, `log-probability of the question`", "RGF", "of the model that wrote it"),
    ("`readers that agree`", "RGF", "how many readers of the round trip gave the intended answer"),
    ("`word edit distance`", "RGF", "the number of changed words between the two questions"),
    ("`references by METHOD`", "RGF", "how the references were found, and their number"),
    ("`retrieval rank`, `retrieval score`", "RGF", "the passage's place among those found; the retriever's score"),
    ("`reader probability`", "RGF", "of the answer, by the reader that found it"),
    ("`editor`", "CCG, MICE, AutoCAD", "the mean log-probability of the words that the editor wrote"),
    ("`indicator: LABEL`", "CCG, MICE, AutoCAD, CoCo", "the probability of the relation that the base model predicts"),
    ("`loss of fluency`", "CCG", "how much log-likelihood the sentence loses by a phrase of a list"),
    ("`loss of mean fluency`", "CCG", "the loss of a token, on average, times the words of the sentence"),
    ("`loss of sense`", "CCG", "how much log-likelihood the entities lose in their new sentence"),
    ("`distractors`", "CheckWhy", "the number of pieces that the structure does not use"),
)


def scores_table() -> str:
    """List the names in `scores`."""
    return table(("name", "written by", "meaning"), SCORES)
