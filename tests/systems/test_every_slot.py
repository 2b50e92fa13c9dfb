"""RACE, CrossAug, CCG and the paraphraser with a language model behind an endpoint in every place that takes one."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import every_slot
import pytest
from bad_server import Reply, Start, body, hang_up, say, starter
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import recipe
from hfcf.core.model import Model, is_remote
from hfcf.core.system import System
from hfcf.engines import cache as request_cache
from hfcf.engines.base import usage
from hfcf.engines.likelihood import Likelihood
from hfcf.engines.llm.endpoint import RemoteError
from hfcf.engines.ner import Ner
from hfcf.systems.baselines.back_translation import BackTranslation
from hfcf.systems.baselines.paraphrase import Paraphrase
from hfcf.systems.baselines.polyjuice import Polyjuice

CHAT = Model("llm:m")
Make = Callable[[], tuple[System, Dataset]]


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    # One request at a time: then the server's own count tells where a run was interrupted.
    with starter(monkeypatch, CONCURRENCY="1", PRICE_IN="1", PRICE_OUT="2") as begin:
        yield begin


@pytest.fixture(params=["race", "crossaug", "ccg", "paraphrase"])
def make(request: pytest.FixtureRequest, tiny_model: Callable[[str], str], spacy_ner: Ner, demo: Dataset) -> Make:
    """The system and a few rows; its slots are all `CHAT`."""
    if request.param == "race":
        encoder = Model(tiny_model("classifier"))
        race = hfcf.RACE.preset("llm", verifier=CHAT, generator=CHAT, encoder=encoder, ner=spacy_ner, num_candidates=2)
        return lambda: (race, demo.select(range(8)))
    if request.param == "crossaug":
        return lambda: (hfcf.CrossAug.preset("llm", generator=CHAT, verifier=CHAT), demo.select(range(8)))
    if request.param == "paraphrase":
        return lambda: (Paraphrase(generator=CHAT, verifier=CHAT), demo.select(range(6)))
    if not installed("wordnet"):
        pytest.skip("the offline WordNet is not installed")
    sentences = hfcf.load("relations", data_dir=recipe.folder() / "demo_relations", split="train", on_error="reject")
    ccg = hfcf.CCG.preset("llm", editor=CHAT, verifier=CHAT, tagger=None, language_model=None)
    return lambda: (ccg, sentences.select(range(16)))


# One cache and one client serve all systems: what these tests show of one chain holds for the longer ones, which are slow.
fewer_systems = pytest.mark.parametrize(
    "make",
    ["crossaug", "paraphrase", *(pytest.param(name, marks=pytest.mark.slow) for name in ("race", "ccg"))],
    indirect=True,
)


def run(make: Make) -> Dataset:
    system, rows = make()
    return system(rows, load_from_cache_file=False)


def questions(server: Any) -> list[str]:
    return [json.dumps([asked["messages"], asked["seed"]]) for asked in server.asked]


def test_a_run_has_counterfactuals_and_counts_and_asks_nothing_twice(make: Make, start: Start) -> None:
    server = start(every_slot.reply)
    done = run(make)
    counterfactuals = hfcf.expand(done)
    assert len(counterfactuals) > 1
    assert all(status["accepted"] is not None for status in done["status"])
    assert len(counterfactuals) + sum(not row["accepted"] for row in done["status"]) >= len(done)
    assert len(set(questions(server))) == len(server.asked)
    record = usage()["LanguageModel"]
    assert (record.attempts, record.tokens, record.written) == (len(server.asked), 110 * len(server.asked), 10 * len(server.asked))
    assert record.cost == pytest.approx(120e-6 * len(server.asked))
    assert list(run(make)) == list(done)
    assert record.attempts == len(server.asked), "the second run asked nothing"
    assert record.calls == sum(asked["seed"] % 1000 == 13 for asked in server.asked), "first attempts"


@fewer_systems
def test_an_interrupted_run_goes_on_without_a_repeated_request(make: Make, start: Start, cache: Any) -> None:
    whole = start(every_slot.reply)
    expected = list(run(make))
    (cache / "requests.sqlite").unlink()
    request_cache._open.cache_clear()
    servers = []
    for stop in (3, len(whole.asked) // 2, None):
        before = sum(len(server.asked) for server in servers)
        servers.append(start(every_slot.reply, dies_after=None if stop is None else max(1, stop - before)))
        if stop is None:
            assert list(run(make)) == expected
        else:
            with pytest.raises(RemoteError):
                run(make)
    sent = [question for server in servers for question in questions(server)]
    assert len(sent) == len(set(sent)) == len(whole.asked)
    assert set(sent) == set(questions(whole))


def misbehave(number: int, asked: dict[str, Any]) -> Reply:
    """Every fault in turn; a fault of the connection passes, one of the answer spoils what was asked."""
    spoilt = sum(map(ord, asked["messages"][-1]["content"].rpartition("\n\n")[2])) % 7
    if number % 5 == 1:
        return (body({"error": "slow down"}, 429), body("oops", 500), hang_up)[number % 3]
    answer = every_slot.answer_to(asked)
    wrong: dict[str, Any] = {"label": "MAYBE", "edits": [3], "old": "Nowhere", "words": [{"piece": "0"}], "texts": None, "claim": 3}
    faults = {
        1: say("I can't help with that."), 2: say(json.dumps(answer)[:-4], finish="length"),
        3: say(json.dumps({**answer, **{name: wrong[name] for name in answer if name in wrong}})),
    }  # fmt: skip
    return faults.get(spoilt, say(f"Sure! ```json\n{json.dumps(answer)}\n```"))


def test_nothing_is_lost_on_a_server_that_misbehaves(make: Make, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    start(misbehave)
    done = run(make)
    _, rows = make()
    assert done["id"] == rows["id"]
    assert all(status["accepted"] is not None for status in done["status"])
    reasons = [row["status"]["reason"] or "" for row in done]
    reasons += [candidate["status"]["reason"] or "" for row in done for candidate in row["candidates"] or []]
    failures = [reason for reason in reasons if "the language model: 3 attempts and no valid answer" in reason]
    assert failures
    rejected = hfcf.rejected(done)
    assert len(rejected) >= sum(not status["accepted"] for status in done["status"])


@fewer_systems
def test_a_server_that_answers_nothing_of_use_rejects_every_row_with_the_reason(make: Make, start: Start) -> None:
    start(lambda number, asked: say("No."))
    done = run(make)
    assert not any(status["accepted"] for status in done["status"])
    assert any("is no JSON object" in (status["reason"] or "") for status in done["status"])


def test_settings_travel_and_prompts_are_in_the_state(make: Make) -> None:
    system, _ = make()
    for stage in system.stages:
        again = pickle.loads(pickle.dumps(stage))
        assert again == stage
        models = [value for value in vars(stage).values() if isinstance(value, Model) and is_remote(value)]
        state = stage.__getstate__()
        assert bool(models) == bool({"prompts", "verdict_prompt"} & set(state)), stage.name


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: hfcf.RACE.preset("llm", encoder="llm:m"),
            "encoder='llm:m' can't be a language model behind an endpoint: MoverScore",
        ),
        (lambda: hfcf.RACE.preset("llm", explainer="gradient_x_input"), "reads the weights of the verifier.*give explainer='llm'"),
        (lambda: hfcf.RACE.preset("offline", verifier="llm:m"), "reads the weights of the verifier"),
        (lambda: hfcf.RACE.preset("offline", explainer="llm"), "got 'hfcf:explainer': give explainer_model='llm:NAME'"),
        (lambda: hfcf.CCG.preset("llm", masked="llm:m"), "masked='llm:m' can't be a language model behind an endpoint: it fills"),
        (lambda: Polyjuice(generator="llm:m"), "generator='llm:m' can't be a language model behind an endpoint"),
        (lambda: BackTranslation(forward="llm:m"), "the baseline paraphrase asks a language model for other words"),
        (lambda: Paraphrase(generator="llm:m", prompt="say: {}"), "leave prompt out"),
        (lambda: hfcf.CheckWhy.preset("llm", scorer="llm:m"), "scorer='llm:m' can't be a language model behind an endpoint"),
        (lambda: Model("t5-base", samples=3), "samples must be 1, or more for llm:NAME or chat:NAME, got 3"),
    ],
)
def test_a_place_that_reads_weights_refuses_an_endpoint(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_an_engine_refuses_an_endpoint() -> None:
    with pytest.raises(ValueError, match="model='llm:m': Likelihood reads weights, and an endpoint has none"):
        Likelihood(model=CHAT).run([["a", "b"]])


def test_a_local_verifier_can_be_explained_by_a_language_model() -> None:
    race = hfcf.RACE.preset("offline", explainer="llm", explainer_model="llm:m")
    assert race.explain.language_model == CHAT
    assert not is_remote(race.check_claim.verifier)


def test_a_run_names_the_model_and_its_cost(start: Start, tmp_path: Any) -> None:
    start(every_slot.reply)
    changes = ["system=crossaug", "preset=llm", "settings={generator: 'llm:m', verifier: 'llm:m'}"]
    report = hfcf.run("demo", tmp_path / "out", changes=changes, limit=8)
    assert report["models"] == {"generator": "llm:m", "verifier": "llm:m"}
    stages = {stage["stage"]: stage for stage in report["stages"]}
    assert stages["generate_negative_claim"]["attempts"] > 0
    assert stages["generate_negative_claim"]["cost"] > 0
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "llm:m" in card
