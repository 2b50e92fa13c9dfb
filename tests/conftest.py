from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

# Before any library reads them: Hugging Face's read their paths once, and tests run in one process a core with one thread each.
os.environ.setdefault("HF_HOME", tempfile.mkdtemp(prefix="hfcf-tests-"))
os.environ.update(
    HF_HUB_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1"
)  # fmt: skip

import pytest
import tiny
import torch
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import offline, recipe
from hfcf.core.model import Model
from hfcf.engines.ner import Ner
from hfcf.systems.race import RACE

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, but with the converted offline models of the machine."""
    from hfcf.core.paths import cache_dir

    converted, own = cache_dir() / "offline", tmp_path / "cache"
    own.mkdir()
    converted.mkdir(parents=True, exist_ok=True)
    (own / "offline").symlink_to(converted)
    monkeypatch.setenv("HFCF_CACHE", str(own))
    # `map` with num_proc puts a copy in the place of os.environ, and what a test set would outlive it there.
    monkeypatch.setattr(os, "environ", os.environ)
    return own


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """`tiny_model("t5")` is the folder of a tiny random model: classifier, verifier, t5, bart or gpt2."""
    made: dict[str, str] = {}

    def make(kind: str) -> str:
        if kind not in made:
            made[kind] = getattr(tiny, kind)(tmp_path_factory.mktemp(kind))
        return made[kind]

    return make


@pytest.fixture(scope="session")
def spacy_ner() -> Ner:
    if not installed("spacy"):
        pytest.skip(f"the offline spaCy pipeline is not installed: {offline.INSTALL}")
    return Ner(backend="spacy", model=Model("offline:spacy"))


@pytest.fixture
def race(tiny_model: Callable[[str], str], spacy_ner: Ner) -> RACE:
    """RACE on tiny random models, with a small search."""
    return RACE(
        verifier=Model(tiny_model("classifier")), generator=Model(tiny_model("t5")), encoder=Model(tiny_model("classifier")),
        ner=spacy_ner, num_beams=3, num_candidates=2, max_new_tokens=8, max_length=96,
    )  # fmt: skip


@pytest.fixture
def demo() -> Dataset:
    """The fifty rows of the demo."""
    return hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")


@pytest.fixture
def data() -> Path:
    """Real data in the original release formats."""
    folder = os.environ.get("HFCF_DATA")
    if not folder:
        pytest.skip("HFCF_DATA is not set: it names the folder with the corpora in their release formats")
    return Path(folder)


@pytest.fixture
def no_request_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
