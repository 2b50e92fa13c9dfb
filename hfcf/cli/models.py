"""`hfcf train`, `evaluate` and `compare`: models that are trained on results, and their scores."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from hfcf.cli import console
from hfcf.cli.console import Overwrite, Set, print_path
from hfcf.cli.tables import print_comparison, print_scores


def train(
    recipe: Annotated[str, typer.Argument(help="A training recipe: train_verifier, train_generator or a YAML file.")],
    out: Annotated[Path, typer.Option(help="The folder for the model, its scores and its card.")],
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Train only on the first rows, to try a recipe out.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Train a verifier, a generator or rewriter of claims, an explainer, a masked language model, a relation or text classifier.

    For questions: a reader, an open-domain reader, a generator of questions or of answers, or a decomposer.
    """
    console.silence_libraries()
    from hfcf.core import recipe as recipes
    from hfcf.pipeline.train import train as train_recipe

    path = recipes.find(recipe)
    command = recipes.command("train", recipe, out, set_ or [], limit)
    content = recipes.read(path, set_ or [])
    report = train_recipe(content, out, where=path.name, limit=limit, command=command, overwrite=overwrite)
    console.out.print_json(json.dumps(report))


def evaluate(
    model: Annotated[str, typer.Argument(help="A Hub id, a folder, or offline:NAME.")],
    corpus: Annotated[
        list[str], typer.Option(help="NAME=FOLDER or NAME=FILE, or with :SPLIT (default: validation); may be repeated.")
    ],
    adapter: Annotated[str | None, typer.Option(help="An adapter to merge in; hfcf:verifier is ours.")] = None,
    max_length: Annotated[int, typer.Option(help="Tokens of an input.")] = 130,
    ways: Annotated[int, typer.Option(help="For a verifier: 2 drops NOT ENOUGH INFO, as RACE's evaluation does; 3 keeps it.")] = 2,
    task: Annotated[int | None, typer.Option(help="For argument structures: one of CheckWhy's tasks, 1 to 4.")] = None,
    reader: Annotated[str | None, typer.Option(help="For argument structures: a second model, which gives the label.")] = None,
    repaired: Annotated[bool, typer.Option(help="For argument structures: repair the commonest slips of programs.")] = False,
    labels: Annotated[
        list[str] | None,
        typer.Option(help="What classes of the model mean: LABEL_0=REFUTES; repeat it, or use commas."),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(help="How the model reads a row: evidence-claim, '{claim} [SEP] {evidence}' … (docs/your_model.md)."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first rows of each corpus.")] = None,
) -> None:
    """Score a model on corpora of its task: a verifier (with the majority baseline), a relation classifier or a reader.

    A model of argument structures is also scored by reasoning steps and distractors; MODEL may then be llm:NAME, with --task.
    """
    console.silence_libraries()
    from hfcf import corpora
    from hfcf.core.contamination import seen_rows
    from hfcf.core.mapping import first_rows
    from hfcf.core.model import Model
    from hfcf.core.model_checks import check_weights
    from hfcf.core.task import task_of
    from hfcf.core.trainer import load_trainer, with_settings

    reference = Model(model, adapter=adapter, labels=_read_labels(labels or []), inputs=inputs)
    given = {"task": task, "reader": None if reader is None else Model(reader), "repaired": repaired or None}
    settings = {key: value for key, value in given.items() if value is not None}
    results: dict[str, dict[str, Any]] = {}
    known: list[str] = []
    check_weights(reference, "MODEL")
    for argument in corpus:
        name, equals, where = argument.partition("=")
        if not (equals and where):
            raise ValueError(f"--corpus {argument}: write NAME=FOLDER or NAME=FOLDER:SPLIT")
        folder, split = where.rsplit(":", 1) if ":" in where.removeprefix("recipes:") else (where, "validation")
        place: dict[str, Any] = {"data_files": {split: folder}} if Path(folder).is_file() else {"data_dir": folder}
        try:
            rows = first_rows(corpora.load(name, split=split, **place), limit)
        except ValueError as error:  # this command has no --set
            raise ValueError(str(error).replace("data_dir=", f"--corpus {name}=FOLDER")) from error
        of_rows = task_of(rows.features)
        if not of_rows.trainer:
            raise ValueError(f"{name}: no model of this library answers {of_rows.name} rows")
        trainer = with_settings(load_trainer(of_rows.trainer), settings)
        scores = trainer.evaluate(rows, reference, max_length=max_length, ways=ways)
        title = f"{name} ({split})" if limit is None else f"{name} ({split}, first {len(rows)})"
        title = f"{title} of {folder}" if title in results else title  # two folders of one corpus
        results[title] = scores
        if seen := sum(seen_rows(rows, reference) or ()):
            known.append(f"{title}: the model was trained on the group or a text of {seen} of the {len(rows)} rows")
    print_scores(results)
    for line in known:
        console.err.print(f"{line}: its scores there are too good.", style="yellow", markup=False)


def _read_labels(options: list[str]) -> dict[str, str] | None:
    """Read `--labels OWN=OURS`, several times or with commas."""
    labels = {}
    # A comma that no equals sign follows belongs to a name: Cause-Effect(e1,e2).
    for part in (part for option in options for part in re.split(r",(?=[^,=]+=)", option)):
        own, equals, label = part.partition("=")
        if not (equals and own.strip() and label.strip()):
            raise ValueError(f"--labels {part}: write OWN=OURS, such as LABEL_0=REFUTES")
        labels[own.strip()] = label.strip()
    return labels or None


def compare(
    recipe: Annotated[str, typer.Argument(help="A comparison recipe: compare_race, compare_rationales or a YAML file.")],
    out: Annotated[Path | None, typer.Option(help="The folder for the tables and the figure (not needed with --dry-run).")] = None,
    set_: Set = None,
    results: Annotated[Path, typer.Option(help="The folder of finished cells, so that none is computed twice.")] = Path("results"),
    full: Annotated[bool, typer.Option("--full", help="Use all rows instead of the samples that the recipe names.")] = False,
    overwrite: Overwrite = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what there is to compute, and what is missing for it.")] = False,
) -> None:
    """Compare methods: a model for each method and seed, scored on each corpus, in tables with intervals."""
    console.silence_libraries()
    if dry_run:
        from hfcf.studies.compare.dry_run import dry_run as plan_comparison

        print_comparison(plan_comparison(recipe, changes=set_ or [], results=results, full=full))
        return
    from hfcf.studies.compare.run import compare as compare_methods

    if out is None:
        raise ValueError("--out is missing: give the folder for the tables, --out DIR")
    report = compare_methods(recipe, out, changes=set_ or [], results=results, full=full, overwrite=overwrite)
    if report["missing"]:
        console.err.print(
            f"{report['missing']} cells are missing: another process is computing them, or was stopped; run this again"
        )
    print_path("the table: ", report["table"])
