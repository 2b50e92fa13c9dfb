from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tiny
import torch
import translators
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from hfcf.core.model import Model
from hfcf.engines import base
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import Generator, load_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
# Of different lengths, so that a batch is padded.
PROMPTS = ["Rome is old.", *tiny.texts()[:3], "The film", tiny.texts()[7]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, tiny_model: Callable[[str], str]) -> Callable[[str], str]:
    made: dict[str, str] = {}

    def make(kind: str) -> str:
        if hasattr(translators, kind):
            if kind not in made:
                made[kind] = getattr(translators, kind)(tmp_path_factory.mktemp(kind))
            return made[kind]
        return tiny_model(kind)

    return make


def alone(engine: Continuation, prompt: str, **settings: Any) -> list[tuple[str, float]]:
    """What the library's own `generate` finds for one prompt, without padding."""
    tokenizer = load_tokenizer(engine.model)
    auto = AutoModelForCausalLM if "gpt2" in engine.model.name else AutoModelForSeq2SeqLM
    network = auto.from_pretrained(engine.model.name).eval()
    ids = tokenizer(prompt)["input_ids"]
    cut = 0
    if auto is AutoModelForCausalLM:
        ids = ids[:-1]  # the tiny tokenizer ends every text
        cut = len(ids)
    network.generation_config.forced_eos_token_id = None
    with torch.inference_mode():
        found = network.generate(
            input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
            num_beams=engine.num_beams, num_return_sequences=engine.num_return_sequences, max_new_tokens=engine.max_new_tokens,
            return_dict_in_generate=True, output_scores=True, **settings,
        )  # fmt: skip
    texts = [" ".join(text.split()) for text in tokenizer.batch_decode(found.sequences[:, cut:], skip_special_tokens=True)]
    best: dict[str, float] = {}
    for text, score in zip(texts, found.sequences_scores.tolist(), strict=True):
        if text:
            best.setdefault(text, score)
    return list(best.items())


@pytest.mark.parametrize("kind", ["gpt2", "t5", "bart", "marian"])
def test_finds_what_the_librarys_own_search_finds(kind: str, folders: Callable[[str], str]) -> None:
    engine = Continuation(model=Model(folders(kind)), num_beams=4, num_return_sequences=3, max_new_tokens=12)
    for prompt, found in zip(PROMPTS, engine.run(PROMPTS), strict=True):
        expected = alone(engine, prompt)
        assert [one["text"] for one in found] == [text for text, _ in expected]
        assert [one["score"] for one in found] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_answers_as_the_generator_does_without_constraints(tiny_model: Callable[[str], str]) -> None:
    settings: dict[str, Any] = {"model": Model(tiny_model("t5")), "num_beams": 4, "num_return_sequences": 2, "max_new_tokens": 10}
    assert Continuation(**settings).run(PROMPTS) == Generator(**settings).run([[prompt, []] for prompt in PROMPTS])


def test_the_prompt_of_a_decoder_is_no_part_of_its_answer(tiny_model: Callable[[str], str]) -> None:
    engine = Continuation(model=Model(tiny_model("gpt2")), num_beams=3, max_new_tokens=5)
    _, tokenizer, _ = engine.loaded()
    assert tokenizer.padding_side == "left"
    for found in engine.run(PROMPTS):
        assert all(len(tokenizer(one["text"], add_special_tokens=False)["input_ids"]) <= 5 for one in found)


@pytest.mark.parametrize(("kind", "limit"), [("gpt2", 512 - 8), ("marian", 256)])
def test_a_prompt_that_does_not_fit_has_no_answer(kind: str, limit: int, folders: Callable[[str], str]) -> None:
    engine = Continuation(model=Model(folders(kind)), num_beams=2, max_new_tokens=8, max_length=2000)
    tokenizer = engine.loaded()[1]
    # What the tiny tokenizers add at the end counts, as the end of an encoder's text does.
    fits = next(n for n in range(limit, 0, -1) if len(tokenizer("and " * n)["input_ids"]) <= limit)
    short, whole, long, longest = engine.run(["Rome is", "and " * fits, "and " * (fits + 2), "and " * 4000])
    assert short
    assert whole
    assert long is longest is None


def test_reads_no_more_than_it_is_told_to(tiny_model: Callable[[str], str]) -> None:
    engine = Continuation(model=Model(tiny_model("t5")), num_beams=2, max_new_tokens=4, max_length=6)
    assert [found is None for found in engine.run(["and " * 5, "and " * 6, "and " * 600])] == [False, True, True]


def test_a_model_that_is_made_to_end_at_the_limit_is_cut_off_there(folders: Callable[[str], str]) -> None:
    model = Model(folders("marian"))
    assert AutoModelForSeq2SeqLM.from_pretrained(model.name).generation_config.forced_eos_token_id == 0
    answers = Continuation(model=model, num_beams=3, num_return_sequences=3, max_new_tokens=3).run(PROMPTS)
    assert any(not one["finished"] for found in answers for one in found)


def test_writes_the_language_that_it_is_told(folders: Callable[[str], str]) -> None:
    settings: dict[str, Any] = {"model": Model(folders("m2m100")), "num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 9}
    german = Continuation(**settings, source="en", target="de")
    french = Continuation(**settings, source="en", target="fr")
    _, tokenizer, first = german.loaded()
    assert tokenizer.convert_ids_to_tokens(first) == "__de__"
    assert german.encode(german.loaded(), ["Rome"])[0].features["input_ids"][0] == tokenizer.get_lang_id("en")
    for prompt, found in zip(PROMPTS, german.run(PROMPTS), strict=True):
        expected = alone(german, prompt, forced_bos_token_id=tokenizer.get_lang_id("de"))
        assert [one["text"] for one in found] == [text for text, _ in expected]
    assert german.run(PROMPTS) != french.run(PROMPTS)


def test_an_unknown_language_is_an_error_that_names_it(folders: Callable[[str], str]) -> None:
    model = Model(folders("m2m100"))
    with pytest.raises(ValueError, match="'deu_Latn'"):
        Continuation(model=model, source="en", target="deu_Latn").run(["Rome is old."])
    with pytest.raises(ValueError, match="'english'"):
        Continuation(model=model, source="english", target="de").run(["Rome is old."])
    with pytest.raises(ValueError, match="language"):
        Continuation(model=Model(folders("marian")), source="en", target="de").run(["Rome is old."])


def test_more_new_tokens_than_positions_is_an_error(tiny_model: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match=r"max_new_tokens.* 512 .*512"):
        Continuation(model=Model(tiny_model("gpt2")), max_new_tokens=512).run(["Rome is old."])


def test_asks_once_and_remembers(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Continuation(model=Model(tiny_model("gpt2")), num_beams=2, max_new_tokens=4, max_length=20)
    requests = ["Rome is", "The film", "Rome is", "and " * 100]
    before = base.usage().get("Continuation", base.Usage()).calls
    answers = engine.run(requests)
    assert base.usage()["Continuation"].calls - before == 3
    assert answers[0] == answers[2]
    assert answers[3] is None

    def refuse(*_: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(base, "load", refuse)
    assert engine.run(requests) == answers
