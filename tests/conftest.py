from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

# Before any library reads them: Hugging Face's read their paths once, and tests run in one process a core with one thread each.
os.environ.setdefault("HF_HOME", tempfile.mkdtemp(prefix="hfcf-tests-"))
os.environ.update(
    HF_HUB_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false",
    OMP_NUM_THREADS="1",
)  # fmt: skip

# pytest-xdist sets the width, and a console that is made at import would keep it.
os.environ.pop("COLUMNS", None)
os.environ.pop("LINES", None)

import parrot
import planted
import pytest
import tiny
import torch
from datasets import Dataset
from filelock import FileLock
from offline_models import installed

import hfcf
from hfcf import corpora
from hfcf.core import offline, recipe
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.paths import cache_dir
from hfcf.corpora.passages import PassageSource
from hfcf.engines.generator import Generator
from hfcf.engines.ner import Ner
from hfcf.systems.race.system import RACE

ENVIRON = os.environ
torch.set_num_threads(1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("there is no GPU: torch.cuda.is_available() is False")


def pytest_collection_finish() -> None:
    """Exempt what imports and the collection made from garbage collections: accelerate makes a full one before each training."""
    gc.collect()
    gc.freeze()


def empty_cache(folder: Path) -> Path:
    """A cache folder with nothing but the converted offline models of the machine."""
    converted = cache_dir() / "offline"
    folder.mkdir(parents=True)
    converted.mkdir(parents=True, exist_ok=True)
    (folder / "offline").symlink_to(converted)
    return folder


@pytest.fixture(autouse=True)
def any_hub_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any name pass as a model of the Hub: tests of systems put other engines in the place of models."""
    monkeypatch.setattr("hfcf.core.model_checks.check_hub_id", lambda name, where: None)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, but with the converted offline models of the machine."""
    # `map` with num_proc puts a copy in the place of os.environ: what a test set would outlive it there, and libraries that hold
    # the first one would not see what it sets.
    monkeypatch.setattr(os, "environ", ENVIRON)
    own = empty_cache(tmp_path / "cache")
    monkeypatch.setenv("HFCF_CACHE", str(own))
    return own


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """`shared(name, fill)`: a folder that one process fills for all; a test that changes it copies it first."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name: str, fill: Callable[[Path], object]) -> Path:
        path, filled = root / name, root / f"{name}.filled"
        with FileLock(root / f"{name}.lock"):
            if not filled.exists():
                shutil.rmtree(path, ignore_errors=True)
                path.mkdir()
                fill(path)
                filled.touch()
        return path

    return folder


@pytest.fixture(scope="session")
def tiny_model(shared: Callable[[str, Callable[[Path], object]], Path]) -> Callable[[str], str]:
    """`tiny_model("t5")` is the folder of a tiny random model: classifier, verifier, t5, bart or gpt2."""
    return lambda kind: str(shared(kind, getattr(tiny, kind)))


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """`benchmark("rules")` is the script of that name in `benchmarks/`, as a new module."""

    def load(name: str) -> ModuleType:
        monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return import_module(name)

    return load


@pytest.fixture(scope="session")
def planted_models(shared: Callable[[str, Callable[[Path], object]], Path]) -> tuple[str, str]:
    """The folders of the verifier that reads one word and of its explainer, which take half a minute to train."""
    verifier = str(shared("planted_verifier", planted.verifier))
    return verifier, str(shared("planted_explainer", lambda folder: planted.explainer(verifier, folder)))


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
        ner=spacy_ner, explainer="gradient_x_input", num_beams=3, num_candidates=2, max_new_tokens=8, max_length=96,
    )  # fmt: skip


@pytest.fixture(scope="session")
def demo_recipe(tiny_model: Callable[[str], str], spacy_ner: Ner) -> dict[str, Any]:
    """The demo's recipe on tiny models."""
    settings = {
        "verifier": tiny_model("verifier"), "generator": tiny_model("t5"), "encoder": tiny_model("classifier"),
        "ner": {"backend": "spacy", "model": "offline:spacy"}, "num_beams": 3, "num_candidates": 2, "max_new_tokens": 8,
        "max_length": 96, "explainer": "gradient_x_input", "fluency_model": tiny_model("gpt2"), "corrector": None,
    }  # fmt: skip
    return {**recipe.read_recipe(recipe.find_recipe("demo")), "data_dir": str(recipe.folder() / "demo"), "settings": settings}


@pytest.fixture(scope="session")
def finished_run(shared: Callable[[str, Callable[[Path], object]], Path], demo_recipe: dict[str, Any]) -> Path:
    """One run of `demo_recipe` with a talkative generator: `out`, `report.json` and the `cache` that it filled."""

    def fill(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HFCF_CACHE", str(empty_cache(folder / "cache")))
            patch.setattr(Generator, "forward", parrot.forward)
            report = hfcf.run(deepcopy(demo_recipe), folder / "out")
        (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")

    return shared("finished-run", fill)


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


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch, no_request_cache: None) -> None:
    """No accelerator, and no answer of another test: what is trained and answered is computed here."""
    monkeypatch.setenv("HFCF_DEVICE", "cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def no_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system reads the collection that its recipe names when it is made; here only its keys and corpora are checked."""

    def read_keys(settings: Any, data_dir: str | None = None, where: str = "passages") -> Passages:
        content = settings if isinstance(settings, dict) else {"data_files": settings}
        for row in recipe.parse_recipe(PassageSource, content, where).rows or ():
            corpora.builder_class(row["corpus"])
        return Passages("0" * 64)

    monkeypatch.setattr("hfcf.corpora.passages.from_recipe", read_keys)
