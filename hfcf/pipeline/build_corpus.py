"""Write a corpus as a dataset repository, Parquet and a card, that `load_dataset` reads; `dataset_scripts/` calls this."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, DatasetInfo, SplitDict, SplitInfo
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCardData

from hfcf.core.task import get_task
from hfcf.corpora import builder_class, load
from hfcf.corpora.base import CorpusInfo
from hfcf.hub.dataset_card import NOT_REPUBLISHED, republish_key
from hfcf.hub.folder import configs, remove_others, write_parquet
from hfcf.hub.previous_run import check_overwrite
from hfcf.hub.render import render
from hfcf.hub.source import read_restriction, read_source


def build(name: str, *, out: str | Path, **options: Any) -> Path:
    """Write a corpus to a folder that `load_dataset(out)` reads."""
    out = Path(out)
    check_overwrite(out)
    splits = load(name, **options)
    if not isinstance(splits, DatasetDict):
        # The rows of a slice such as validation[:300] name the split of which it is a slice.
        parts = sorted(set(splits["split"])) if len(splits) else [str(options.get("split"))]
        splits = DatasetDict({"_".join(parts): splits})
    files = {split: write_parquet(ds, out / "data", split) for split, ds in splits.items()}
    remove_others(out / "data", files.values())
    info = replace(builder_class(name).INFO, **{**read_source(options), **read_restriction(options)})
    (out / "README.md").write_text(card(info, splits, configs(out, {"default": files})), encoding="utf-8")
    return out


def card(info: CorpusInfo, splits: Mapping[str, Dataset], entries: list[dict[str, Any]]) -> str:
    """Write the dataset card: YAML that lists the exact files, then a description of the rows."""
    first, task = next(iter(splits.values())), get_task(info.task)
    data = DatasetCardData(
        pretty_name=info.title,
        license=info.licence,
        language=info.language,
        task_categories=list(task.hub.categories),
        task_ids=list(task.hub.ids),
        tags=["hfcf"],
        size_categories=None,
        configs=entries,
    )
    for key, value in republish_key(info.republish).items():
        data[key] = value
    sizes = SplitDict()
    for split, ds in splits.items():
        sizes.add(SplitInfo(name=split, num_bytes=ds.data.nbytes, num_examples=len(ds)))
    DatasetInfosDict({"default": DatasetInfo(features=first.features, splits=sizes)}).to_dataset_card_data(data)
    counts = {split: Counter(ds["label"] if task.labelled else []) for split, ds in splits.items()}
    present = {label for count in counts.values() for label in count if label is not None}
    # A user's own open labels come from the rows.
    labels = task.labels or list(dict.fromkeys(info.labels.values())) or sorted(present)
    # After the title the builder records the rows that it left out, and the role.
    notes = [note for ds in splits.values() for note in (ds.info.description or "").split("\n")[1:]]
    return render(
        "corpus_card.md.jinja", front=data.to_yaml(), corpus=info, not_republished=NOT_REPUBLISHED, notes=dict.fromkeys(notes),
        labels=[label for label in labels if label in present], counts=counts, splits=splits, first=first,
        canonical=len(task.features), row=json.dumps(first[0] if len(first) else {}, ensure_ascii=False, indent=2),
    )  # fmt: skip


def main(name: str, argv: Sequence[str] | None = None) -> None:
    """Run the command of one corpus; its arguments are `argv`, by default the arguments of the process."""
    builder = builder_class(name)
    parser = argparse.ArgumentParser(description=f"Build a dataset repository of {builder.INFO.title}.")
    parser.add_argument("--data-dir", required=True, help="folder of the original release files")
    parser.add_argument("--out", required=True, help="folder to write; load_dataset(OUT) reads it")
    parser.add_argument("--split", help="a split or a slice of it, such as validation[:300]; every split by default")
    parser.add_argument("--role", choices=["train"], help="record that rows of a dev or test split are meant for training")
    parser.add_argument("--on-error", choices=["raise", "reject"], default="raise", help="raise on a bad row, or reject it")
    for option, purpose in builder.OPTIONS.items():
        parser.add_argument(f"--{option.replace('_', '-')}", help=purpose)
    arguments = vars(parser.parse_args(argv))
    # An option of the corpus that the user leaves out keeps its default.
    options = {key: value for key, value in arguments.items() if value is not None or key not in builder.OPTIONS}
    try:
        print(f"wrote {build(name, **options)}")
    except (ValueError, OSError) as error:
        parser.error(str(error))
