"""Nothing that a user downloads runs code: no call in the package unpickles, unpacks, evaluates, or trusts a repository's code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hfcf

PACKAGE = Path(hfcf.__file__).parent
MODULES = {"pickle", "marshal", "shelve", "dill", "joblib", "zipfile", "tarfile"}
"""Modules that run what they read, or write where an archive tells them to."""
CALLS = {"eval", "exec", "torch.load", "shutil.unpack_archive", "yaml.load", "yaml.safe_load", "yaml.unsafe_load", "yaml.full_load"}
LOADS = {"from_pretrained", "from_config"}
PLACES = {
    "core/plugins.py": {"spec.loader.exec_module"},  # of files that the user's environment names
    "core/pretrained.py": {"from_pretrained"},
    "core/offline.py": {"from_pretrained", "from_config", "zipfile"},  # of a zip, files by their bare names
    "core/safe_yaml.py": {"yaml.load"},
}
"""Where such a call stands once for the whole package."""


def dangers(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if name in CALLS or name.endswith(("exec_module", "runpy.run_path")):
                yield name
            elif name.rpartition(".")[2] in LOADS:
                # PEFT has no such setting: it reads no code but a module that `read_adapter` refuses.
                trusts = not name.startswith("PeftModel") and keywords.get("trust_remote_code") != "False"
                yield f"{name} that may trust code" if trusts else name.rpartition(".")[2]
            elif name.endswith("np.load") and keywords.get("allow_pickle", "False") != "False":
                yield "a pickled array"


def test_no_module_runs_what_it_reads() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {danger}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for danger in dangers(path)
        if danger not in PLACES.get(path.relative_to(PACKAGE).as_posix(), ())
    }
    assert found == set()


def test_the_dangers_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "import pickle\nfrom zipfile import ZipFile\nAutoModel.from_pretrained(name)\neval(text)\n"
        "AutoModel.from_pretrained(name, trust_remote_code=True)\nAutoModel.from_pretrained(name, trust_remote_code=False)\n"
        "loader.exec_module(module)\n",
        encoding="utf-8",
    )
    assert sorted(dangers(path)) == [
        *["AutoModel.from_pretrained that may trust code"] * 2, "eval", "from_pretrained", "loader.exec_module", "pickle",
        "zipfile",
    ]  # fmt: skip
