"""`hfcf train`, `evaluate` and `compare`: models that are trained on results, and their scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hfcf.cli import console
from hfcf.cli.console import Overwrite, Set, print_path
from hfcf.cli.tables import print_comparison, print_pairs, print_scores, print_training, print_training_plan
from hfcf.core.paths import replace_file

if TYPE_CHECKING:
    from hfcf.core.model import Model

ModelLabels = Annotated[
    list[str] | None,
    typer.Option(help="What classes of the model mean: LABEL_0=REFUTES; repeat it, or use commas."),
]
ModelInputs = Annotated[
    str | None,
    typer.Option(help="How the model reads a row: claim-evidence, evidence-claim or a text like '{claim} [SEP] {evidence}'."),
]


def train(
    recipe: Annotated[str, typer.Argument(help="A training recipe: train_verifier, train_generator or a YAML file.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder for the model, its scores and its card (not needed with --dry-run).")
    ] = None,
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Train only on the first rows, to try a recipe out.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the recipe and count rows and steps.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a verifier, a generator or rewriter of claims, an explainer, a masked language model, a relation or text classifier.

    For questions: a reader, an open-domain reader, a generator of questions or of answers, or a decomposer.
    """
    console.silence_libraries()
    from hfcf.core import recipe as recipes
    from hfcf.pipeline.train import train as train_recipe

    path = recipes.find_recipe(recipe)
    content = recipes.read_recipe(path, set_ or [])
    if dry_run:
        from hfcf.pipeline.train import plan_training

        print_training_plan(plan_training(content, where=path.name, limit=limit))
        return
    if out is None:
        raise ValueError("--out is missing: give the folder for the model, --out DIR")
    command = recipes.command("train", recipe, out, set_ or [], limit)
    report = train_recipe(content, out, where=path.name, limit=limit, command=command, overwrite=overwrite)
    print_training(report, out)


def evaluate(
    model: Annotated[str, typer.Argument(help="A Hub id, a folder, or offline:NAME.")],
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FOLDER or NAME=FILE, NAME a corpus of hfcf list, or with :SPLIT (default: validation); or a file or saved "
            "dataset of yours, or PATH:SPLIT. May be repeated."
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Instead of a corpus: pairs, of which both sides must be right. The folder of a run, a published run on the Hub, "
            "or a file with a column source_id."
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="With --pairs: end with exit code 1 if a smaller share of the pairs is right, 0 to 1."),
    ] = None,
    adapter: Annotated[str | None, typer.Option(help="An adapter to merge in; hfcf:verifier is ours.")] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens of an input. By default, as many as the model reads.")
    ] = None,
    ways: Annotated[
        int | None,
        typer.Option(
            help="For a verifier: 2 leaves NOT ENOUGH INFO out, as RACE's evaluation does; 3 keeps it. By default, the model's "
            "labels that the rows have."
        ),
    ] = None,
    task: Annotated[int | None, typer.Option(help="For argument structures: one of CheckWhy's tasks, 1 to 4.")] = None,
    reader: Annotated[str | None, typer.Option(help="For argument structures: a second model, which gives the label.")] = None,
    repaired: Annotated[bool, typer.Option(help="For argument structures: repair the commonest slips of programs.")] = False,
    distractors: Annotated[
        int | None, typer.Option(min=0, help="For argument structures: show at most so many distractors of each row.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="For argument structures: of the structure similarity, offline (the default) or paper, DeBERTa-large."),
    ] = None,
    labels: ModelLabels = None,
    inputs: ModelInputs = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first rows of each corpus.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="columns={…} and labels={…} of files of yours, 2.columns={…} of the second alone; the others are found. "
            "Or an option of a corpus: task=2.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file for the scores of each class, the confusion matrix and all predictions.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="A file for what the model answered to each row, as JSON lines in the rows' order.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of --out and --predictions.")] = False,
) -> None:
    """Score a model on corpora of its task, or on pairs: a verifier, a relation or text classifier, or a reader.

    A model of argument structures is also scored by reasoning steps and distractors; MODEL may then be llm:NAME, with --task.
    """
    console.silence_libraries()
    from hfcf import __version__
    from hfcf.core import recipe as recipes
    from hfcf.core.model import Model, named
    from hfcf.core.model_checks import check_weights
    from hfcf.pipeline.evaluate import evaluate as score

    if (pairs is None) == (not corpus):
        raise ValueError("give --corpus or --pairs: the rows that the model is scored on")
    if at_least is not None and pairs is None:
        raise ValueError("--at-least goes with --pairs: it is the share of pairs of which both sides are right")
    refuse_existing(out, overwrite)
    if out is not None and predictions is not None and out.resolve() == predictions.resolve():
        raise ValueError(f"--out and --predictions are both {out}: choose another name for one of them")
    reference = Model(model, adapter=adapter, labels=read_labels(labels or []), inputs=inputs)
    options = {
        "task": task, "reader": None if reader is None else Model(reader), "repaired": repaired or None,
        "distractors": distractors, "encoder": encoder,
    }  # fmt: skip
    settings = {key: value for key, value in options.items() if value is not None}
    keys = recipes.keys_of_each(set_ or [], len(corpus), options_of(corpus)) if corpus else []
    check_weights(reference, "MODEL")
    if pairs is not None:
        with name_options():
            _evaluate_pairs(
                reference, pairs, set_ or [], settings, at_least, max_length=max_length, ways=ways, limit=limit, out=out,
                predictions=predictions, overwrite=overwrite,
            )  # fmt: skip
        return
    assert corpus is not None
    if encoder is not None:
        from hfcf.metrics.scores.structures import encoder_of

        check_weights(encoder_of(encoder).model, "--encoder")
    with name_options():
        results = score(
            reference, corpus, max_length=max_length, ways=ways, limit=limit, settings=settings, loading=keys,
            predictions=predictions, overwrite=overwrite,
        )  # fmt: skip
    print_scores({each.title: each.result.scores for each in results})
    for line in (line for each in results for line in each.lines()):
        console.print_hanging(console.data_text(f"{line}."), hang=2)
    sets = [each.as_json() for each in results] if out else []
    content = {"model": named(reference), "hfcf": __version__, "sets": sets}
    write_numbers(out, content, "scores, confusion and predictions: ")
    if predictions is not None:
        print_path("what the model answered to each row: ", predictions)


@contextmanager
def name_options() -> Iterator[None]:
    """Make an error about what a classifier's outputs mean name the options of the command."""
    from hfcf.core.errors import UnclearModel

    try:
        yield
    except UnclearModel as error:
        raise ValueError(f"{error.what}: {error.in_command}") from error


def _evaluate_pairs(
    model: Model, source: str, changes: list[str], settings: Mapping[str, Any], at_least: float | None, *, max_length: int | None,
    ways: int | None, limit: int | None, out: Path | None, predictions: Path | None, overwrite: bool,
) -> None:  # fmt: skip
    """Score a model on pairs, and end with exit code 1 if too few are right."""
    from hfcf import __version__
    from hfcf.core import recipe as recipes
    from hfcf.core.mapping import first_rows
    from hfcf.core.model import named
    from hfcf.pipeline.evaluate import check_target, write_lines
    from hfcf.pipeline.pair_sets import OPTIONS, judges_of, read_pairs
    from hfcf.training.consistency import ask_pairs, score_pairs

    if predictions is not None:
        check_target(predictions, [source], overwrite=overwrite)
    rows = first_rows(read_pairs(source, recipes.file_keys(changes, OPTIONS)), limit)
    answers = ask_pairs(rows, model, max_length=max_length, ways=ways, settings=settings)
    numbers = score_pairs(answers)
    if not numbers["pairs"]:
        raise ValueError(f"{source}: no pair is left to score: {'; '.join(numbers['left_out'])}")
    print_pairs(numbers, source)
    judged = named(model) in judges_of(source)
    known = f"{named(model)} had to confirm these pairs, so those that it gets wrong are not among them: take pairs of other judges"
    for note in [*([known] if judged else []), *answers.notes]:
        console.print_hanging(console.data_text(f"{note}."), hang=2)
    write_numbers(out, {"model": named(model), "hfcf": __version__, "set": source, "judge": judged, **numbers})
    if predictions is not None:
        write_lines(predictions, answers.lines())
        print_path("what the model answered to each pair: ", predictions)
    if at_least is not None:
        passed = numbers["both"] >= at_least
        text = f"{numbers['both']} of the pairs are right, at least {at_least:g} were asked for: {'passed' if passed else 'failed'}"
        console.out.print(text, style="green" if passed else "bold red", highlight=False)
        if not passed:
            raise typer.Exit(1)


def refuse_existing(out: Path | None, overwrite: bool) -> None:
    """Raise `ValueError` if a file that a command would write is there."""
    if out is not None and out.exists() and not overwrite:
        raise ValueError(f"{out} exists already: choose another name, or add --overwrite")


def write_numbers(out: Path | None, content: Mapping[str, Any], text: str = "the numbers: ") -> None:
    """Write JSON to a file, if one is asked for, and print where it is."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(out) as part:
            part.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print_path(text, out)


def options_of(sources: Iterable[str]) -> set[str]:
    """Name the options of the corpora that sources name, and of a user's files."""
    from hfcf import corpora
    from hfcf.corpora.custom.source import FILE_OPTIONS

    named = [name if (name := source.partition("=")[0]) in corpora.names() else None for source in sources]
    return {option for name in named for option in (corpora.builder_class(name).OPTIONS if name else FILE_OPTIONS)}


def read_labels(options: list[str]) -> dict[str, str] | None:
    """Read `--labels OWN=OURS`, several times or with commas."""
    labels = {}
    # A comma that no equals sign follows belongs to a name: Cause-Effect(e1,e2).
    for part in (part for option in options for part in re.split(r",(?=[^,=]+=)", option)):
        name, equals, label = part.partition("=")
        if not (equals and name.strip() and label.strip()):
            raise ValueError(f"--labels {part}: write OWN=OURS, such as LABEL_0=REFUTES")
        labels[name.strip()] = label.strip()
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
        from hfcf.studies.compare.run import dry_run as plan_comparison

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
