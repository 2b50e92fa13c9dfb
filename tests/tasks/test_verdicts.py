"""Labels by a language model behind an endpoint: probabilities, samples, names of the user's, and answers of no use."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from bad_server import Reply, Start, body, say, starter
from datasets import Dataset

from hfcf.core.candidates import undecided
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.engines.llm.answers import token_probabilities
from hfcf.metrics.flip_rate import measure_flip_rate
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks.relation import TASK as RELATION
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS, candidate
from hfcf.tasks.verification import TASK as VERIFICATION
from hfcf.training.relation import TRAINER as RELATIONS
from hfcf.training.verifier import TRAINER as VERIFIER

CHAT = Model("llm:m")
CLAIM = {"claim": "Rome is old.", "evidence": [{"title": "Rome", "text": "It was founded in 753 BC."}]}
EGGS = {
    "tokens": ["eggs", "in", "buckets"], "head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 2, "end": 3, "type": None},
}  # fmt: skip


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


def label(name: str) -> Reply:
    return say(json.dumps({"label": name}))


def likely(name: str, first: dict[str, float], logprobs: Any = None) -> Reply:
    """An answer whose first token of the label has these probabilities."""
    beginning = next(token for token in first if name.startswith(token))
    tops = [{"token": token, "logprob": math.log(p)} for token, p in first.items()]
    content = [
        {"token": '{"label": "', "logprob": -0.2, "top_logprobs": []},
        {"token": beginning, "logprob": math.log(first[beginning]), "top_logprobs": tops},
        {"token": name.removeprefix(beginning) + '"}', "logprob": 0.0, "top_logprobs": []},
    ]
    choice = {
        "message": {"content": json.dumps({"label": name})}, "finish_reason": "stop",
        "logprobs": {"content": content} if logprobs is None else logprobs,
    }  # fmt: skip
    return body({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 9}})


def test_probabilities_are_those_of_the_label_s_tokens(start: Start) -> None:
    server = start(lambda n, asked: likely(REFUTES, {"SU": 0.3, "REF": 0.6, "NOT": 0.05, "The": 0.05}))
    (answer,) = VERIFICATION.verdicts([CLAIM], CHAT, 130)
    assert answer == pytest.approx({SUPPORTS: 0.3 / 0.95, REFUTES: 0.6 / 0.95, NOT_ENOUGH_INFO: 0.05 / 0.95}, abs=1e-5)
    assert (server.asked[0]["logprobs"], server.asked[0]["top_logprobs"]) == (True, 5)
    assert server.asked[0]["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"] == list(LABELS)
    assert VERIFICATION.verdicts([CLAIM], CHAT, 130) == [answer]
    assert len(server.asked) == 1  # the request cache has the log-probabilities, too


def test_labels_with_a_common_beginning_share_what_does_not_tell_them_apart() -> None:
    tokens: list[list[Any]] = [
        ['{"label":', -0.1, []],
        [' "c', math.log(0.8), [[' "c', math.log(0.8)], [' "m', math.log(0.1)], [" '", math.log(0.1)]]],
        ["ause", math.log(0.5), [["ause", math.log(0.5)], ["ontent", math.log(0.4)], ["onta", math.log(0.1)]]],
        ['-effect"}', -0.5, [["-effect", -0.5], ["-other", -0.9]]],
    ]
    names = ["cause-effect", "content-container", "container-content", "message-topic"]
    answer = token_probabilities(tokens, "cause-effect", names)
    assert answer == pytest.approx(
        {"cause-effect": 0.4 / 0.9, "content-container": 0.32 / 0.9, "container-content": 0.08 / 0.9, "message-topic": 0.1 / 0.9},
        abs=1e-5,
    )
    assert token_probabilities(tokens, "message-topic", names) is None  # the tokens are another answer's


@pytest.mark.parametrize(
    "logprobs",
    [{}, {"content": None}, {"content": [{"token": "x"}]}, [], "much", {"content": [{"token": "x", "logprob": float("nan")}]},
     {"content": [{"token": "other text", "logprob": -1.0, "top_logprobs": None}]}],
)  # fmt: skip
def test_without_log_probabilities_of_use_the_label_counts_as_certain(start: Start, logprobs: Any) -> None:
    start(lambda n, asked: likely(REFUTES, {"REF": 1.0}, logprobs))
    assert VERIFICATION.verdicts([CLAIM], CHAT, 130) == [{SUPPORTS: 0.0, REFUTES: 1.0, NOT_ENOUGH_INFO: 0.0}]


def test_samples_are_counted_where_there_are_no_log_probabilities(start: Start) -> None:
    def draw(_: int, asked: dict[str, Any]) -> Reply:
        if asked["temperature"] == 0:
            return label(SUPPORTS)
        return {1: label(REFUTES), 2: label(SUPPORTS), 3: label(SUPPORTS), 4: say("?")}[asked["seed"] // 1000]

    server = start(draw)
    sampled = Model("llm:m", samples=4)
    assert VERIFICATION.verdicts([CLAIM], sampled, 130) == [{SUPPORTS: 0.66667, REFUTES: 0.33333, NOT_ENOUGH_INFO: 0.0}]
    assert len(server.asked) == 1 + 3 + 3  # the greedy answer, three samples, three attempts at the fourth
    assert VERIFICATION.verdicts([CLAIM], sampled, 130)[0] == {SUPPORTS: 0.66667, REFUTES: 0.33333, NOT_ENOUGH_INFO: 0.0}
    assert len(server.asked) == 7
    assert sampled.key() != CHAT.key()


def test_a_server_that_refuses_log_probabilities_is_asked_without(start: Start) -> None:
    def strict(_: int, asked: dict[str, Any]) -> Reply:
        return body({"error": {"message": "logprobs is not supported"}}, 400) if "logprobs" in asked else label(SUPPORTS)

    server = start(strict)
    other = {**CLAIM, "claim": "Rome is young."}
    answers = [VERIFICATION.verdicts([row], CHAT, 130) for row in (CLAIM, other)]
    assert answers == [[{SUPPORTS: 1.0, REFUTES: 0.0, NOT_ENOUGH_INFO: 0.0}]] * 2
    assert ["logprobs" in asked for asked in server.asked] == [True, False, False]
    assert all("top_logprobs" not in asked and "response_format" in asked for asked in server.asked[1:])


def test_an_answer_of_no_use_is_a_reason_and_no_label(start: Start) -> None:
    start(lambda n, asked: label("TRUE"))
    (why,) = VERIFICATION.verdicts([CLAIM], CHAT, 130)
    assert isinstance(why, str)
    assert "$.label" in why
    item = candidate("Rome is young.", REFUTES, "claim", [])
    edit = {"field": "claim", "piece": -1, "start": 8, "end": 11, "before": "old", "after": "young"}
    row = {**CLAIM, "id": "1", "label": SUPPORTS, "group_id": "1", "corpus": "c", "split": "train"}
    (result,) = JudgeCandidates(system="s", verifier=CHAT).batch([{**row, "candidates": [{**item, "edits": [edit]}]}])
    assert "the verifier gives no label: the language model: 3 attempts" in str(result)
    assert measure_flip_rate(Dataset.from_list([{**CLAIM, "label": REFUTES}]), verifier=CHAT) == [None]
    assert undecided(item)


def test_names_of_the_users_own(start: Start) -> None:
    server = start(lambda n, asked: label("wrong"))
    model = Model("llm:m", labels={"right": SUPPORTS, "wrong": REFUTES, "untrue": REFUTES})
    assert VERIFICATION.verdicts([CLAIM], model, 130) == [{SUPPORTS: 0.0, REFUTES: 1.0}]
    assert "- wrong: the evidence shows that the claim is false" in server.asked[0]["messages"][0]["content"]
    (why,) = VERIFICATION.verdicts([{**CLAIM, "label": NOT_ENOUGH_INFO}], model, 130)
    assert why == "llm:m does not know the label 'NOT ENOUGH INFO': name all labels in its `labels`"
    assert len(server.asked) == 1
    spelt = Model("llm:m", labels={"right": "supported", "wrong": "Refutes", "untrue": "contradiction"})
    assert VERIFICATION.verdicts([{**CLAIM, "label": REFUTES}], spelt, 130) == [{SUPPORTS: 0.0, REFUTES: 1.0}]
    with pytest.raises(ValueError, match="labels gives 'right' the label 'yes'; give one of SUPPORTS"):
        VERIFICATION.verdicts([CLAIM], Model("llm:m", labels={"right": "yes"}), 130)


def test_relations_by_their_roles(start: Start) -> None:
    server = start(lambda n, asked: label("content-container"))
    (answer,) = RELATION.verdicts([{**EGGS, "label": "Content-Container(e1,e2)"}], CHAT, 128)
    assert isinstance(answer, dict)
    assert answer["Content-Container(e1,e2)"] == 1.0
    assert len(answer) == 19
    said = server.asked[0]["messages"][-1]["content"]
    assert said == "Sentence: eggs in buckets\nFirst entity: eggs\nSecond entity: buckets"
    assert RELATION.verdicts([{**EGGS, "label": "PHYS"}], CHAT, 128) == [
        "llm:m does not know the label 'PHYS': name all labels in its `labels`"
    ]
    own = Model("llm:m", labels={"located in": "PHYS", "content-container": "ART"})
    assert RELATION.verdicts([{**EGGS, "label": "PHYS"}], own, 128) == [{"PHYS": 0.0, "ART": 1.0}]


BUCKETS = {**EGGS, "tokens": ["eggs", "from", "buckets"], "label": "Entity-Origin(e1,e2)"}
IN, FROM = "eggs is the content and buckets is the container", "eggs is the entity and buckets is the origin"


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [(IN, FROM, 0.999), (FROM, FROM, 0.426), (IN, IN, 0.001), (FROM, IN, 0.0)],
    ids=["turned", "said so of the source too", "stayed", "turned back"],
)
def test_a_relation_must_have_changed_since_the_source(start: Start, before: str, after: str, new: float) -> None:
    server = start(lambda _, asked: label(after if "eggs from" in asked["messages"][-1]["content"] else before))
    source = {**EGGS, "label": "Content-Container(e1,e2)"}
    (answer,) = RELATION.verdicts([BUCKETS], CHAT, 128, [source])
    assert isinstance(answer, dict)
    assert answer == {
        "Entity-Origin(e1,e2)": pytest.approx(new, abs=1e-3),
        "Content-Container(e1,e2)": pytest.approx(1 - new, abs=1e-3),
    }
    asked = sorted(one["messages"][-1]["content"] for one in server.asked)
    assert asked == [f"Sentence: eggs {word} buckets\nStatements:\n- {IN}\n- {FROM}" for word in ("from", "in")]


def test_relations_of_any_corpus_are_compared(start: Start) -> None:
    server = start(lambda _, asked: label("eggs and buckets: PHYS"))
    RELATION.check_verdicts(CHAT, ["PHYS", "ART"])
    assert RELATION.verdicts([{**BUCKETS, "label": "PHYS"}], CHAT, 128, [{**EGGS, "label": "ART"}])
    assert "- eggs and buckets: ART\n- eggs and buckets: PHYS" in server.asked[0]["messages"][-1]["content"]


def test_rows_of_other_tasks() -> None:
    assert get_task("structures").verdict_prompt == VERIFICATION.verdict_prompt
    with pytest.raises(ValueError, match="llm:m: no language model behind an endpoint judges qa rows: name a local model"):
        get_task("qa").verdicts([], CHAT, 384)


def test_a_language_model_is_scored_on_corpora(start: Start) -> None:
    def some(_: int, asked: dict[str, Any]) -> Reply:
        if "Sentence: eggs" in asked["messages"][-1]["content"]:
            return label("content-container")
        return say("?") if "Claim: Rome is big." in asked["messages"][-1]["content"] else label(SUPPORTS)

    server = start(some)
    claims = [("Rome is old.", SUPPORTS), ("Rome is young.", REFUTES), ("Rome is big.", SUPPORTS), ("It rains.", NOT_ENOUGH_INFO)]
    rows = Dataset.from_list([{**CLAIM, "claim": claim, "label": name} for claim, name in claims])
    scores = VERIFIER.evaluate(rows, CHAT, ways=2).scores
    assert scores == {"rows": 3, "accuracy": 0.3333, "macro_f1": 0.25, "majority": 0.6667, "unanswered": 1}
    asked = server.asked[0]["response_format"]["json_schema"]["schema"]
    assert asked["properties"]["label"]["enum"] == [REFUTES, SUPPORTS]
    own = Model("llm:m", labels={"yes": "supported", "no": "refuted", "unclear": "NEI"})
    VERIFIER.evaluate(rows, own, ways=2)  # two labels are scored, so the third is no choice
    asked = server.asked[-1]["response_format"]["json_schema"]["schema"]
    assert asked["properties"]["label"]["enum"] == ["no", "yes"]
    scores = VERIFIER.evaluate(rows, CHAT).scores
    assert (scores["rows"], scores["accuracy"], scores["unanswered"]) == (4, 0.25, 1), "three labels, as the rows have"
    relations = Dataset.from_list([{**EGGS, "label": "Content-Container(e1,e2)"}, {**EGGS, "label": "PHYS"}])
    assert RELATIONS.evaluate(relations, CHAT, max_length=128).scores == {
        "rows": 2, "micro_f1": 0.6667, "macro_f1": 0.5, "accuracy": 0.5, "unread": 1
    }  # fmt: skip
