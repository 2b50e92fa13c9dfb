"""`hfcf score`, `hfcf describe` and `hfcf coverage`: predictions against a corpus, and what a corpus or a set of pairs has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hfcf.cli import console
from hfcf.cli.console import Overwrite, Set
from hfcf.cli.models import ModelInputs, ModelLabels, name_options, options_of, read_labels, refuse_existing, write_numbers
from hfcf.cli.tables import print_coverage, print_page

app = typer.Typer(help="Scores of predictions that any system made.", no_args_is_help=True)
Out = Annotated[Path | None, typer.Option(help="A JSON file for the numbers.")]


@app.command()
def structures(
    predictions: Annotated[Path, typer.Argument(help="JSON lines: id and prediction, a program or a label.")],
    gold: Annotated[str, typer.Option(help="The corpus: NAME=FOLDER or NAME=FILE, or with :SPLIT.")],
    encoder: Annotated[
        str, typer.Option(help="Of the structure similarity: offline, or paper, which is DeBERTa-large.")
    ] = "offline",
    task: Annotated[int, typer.Option(min=3, max=4, help="4: the conclusions were not given, and predictions declare them.")] = 3,
    repaired: Annotated[bool, typer.Option("--repaired", help="Repair the commonest slips of programs.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="Count rows without a prediction as empty and wrong.")] = False,
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rows of the corpus.")] = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Score predicted argument structures and labels: all rows with intervals, and each number of steps and distractors."""
    console.silence_libraries()
    refuse_existing(out, overwrite)
    from hfcf.core import recipe
    from hfcf.core.model_checks import check_weights
    from hfcf.metrics.scores.structures import encoder_of
    from hfcf.pipeline.evaluate import read_rows
    from hfcf.pipeline.score_structures import read_predictions, score_predictions, to_page
    from hfcf.training.structure_scorer import StructureScorer

    scorer = StructureScorer(encoder_of(encoder))
    answers = read_predictions(predictions)
    check_weights(scorer.encoder.model, "--encoder")
    rows = read_rows(gold, limit, recipe.file_keys(set_ or [], options_of([gold])))
    result = score_predictions(rows, answers, scorer, task=task, repaired=repaired, partial=partial)
    print_page(to_page(result))
    write_numbers(out, result)


@app.command()
def pairs(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSON lines or Parquet: an original and its revisions in each row.")],
    original: Annotated[str, typer.Option(help="text=COLUMN, or claim=COLUMN,evidence=COLUMN (a hypothesis and its premise).")],
    revised: Annotated[list[str], typer.Option(help="The same of a revision. Several give the diversity between them.")],
    model: Annotated[str | None, typer.Option(help="A classifier of the task: it gives flips and probabilities.")] = None,
    adapter: Annotated[str | None, typer.Option(help="An adapter to merge in; hfcf:nli is ours.")] = None,
    labels: ModelLabels = None,
    inputs: ModelInputs = None,
    language_model: Annotated[str | None, typer.Option(help="A decoder-only model: it gives perplexities.")] = None,
    target: Annotated[str | None, typer.Option(help="The column with the label that revisions should have.")] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens of an input. By default, as many as the model reads.")
    ] = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Score originals and their revisions, whoever wrote them: flips, distance, words kept, perplexity, diversity."""
    console.silence_libraries()
    refuse_existing(out, overwrite)
    from hfcf.core.model import Model
    from hfcf.pipeline.score_pairs import score_pairs, to_page

    about = {"--adapter": adapter, "--labels": labels, "--inputs": inputs, "--target": target, "--max-length": max_length}
    if model is None and (needless := [name for name, given in about.items() if given]):
        raise ValueError(f"{' and '.join(needless)}: no model is asked without --model: give it as well")
    classifier = None if model is None else Model(model, adapter=adapter, labels=read_labels(labels or []), inputs=inputs)
    sides = [_columns_of(text, option) for option, texts in (("--original", [original]), ("--revised", revised)) for text in texts]
    with name_options():
        result = score_pairs(
            file, original=sides[0], revised=sides[1:], model=classifier, language_model=language_model, target=target,
            max_length=max_length,
        )  # fmt: skip
    print_page(to_page(result))
    write_numbers(out, result)


def _columns_of(text: str, option: str) -> dict[str, str]:
    """Read "claim=COLUMN,evidence=COLUMN"."""
    parts = [part.partition("=") for part in text.split(",")]
    if not all(field.strip() and column.strip() for field, _, column in parts):
        raise ValueError(f"{option} must be text=COLUMN or claim=COLUMN,evidence=COLUMN, got {text!r}")
    return {field.strip(): column.strip() for field, _, column in parts}


def describe(
    corpus: Annotated[str, typer.Argument(help="NAME=FOLDER (all splits), NAME=FOLDER:SPLIT, or a file of rows.")],
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
    json_: Annotated[Path | None, typer.Option("--json", help="A JSON file for the numbers.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Print what a corpus has, as CheckWhy's Table 1: rows by split and label, words, pieces, distractors, reasoning steps."""
    console.silence_libraries()
    refuse_existing(json_, overwrite)
    from hfcf.studies.corpus_statistics import describe as describe_rows
    from hfcf.studies.corpus_statistics import read_corpus, to_page

    described = describe_rows(read_corpus(corpus, changes=set_ or [], limit=limit))
    print_page(to_page(described))
    write_numbers(json_, described)


def coverage(
    pairs: Annotated[
        str, typer.Argument(help="The folder of a run, a published run on the Hub, or a file with a column source_id.")
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="For a file: columns={…}, labels={…}, and source_id=COLUMN; what is known is found."),
    ] = None,
    json_: Annotated[Path | None, typer.Option("--json", help="A JSON file for the numbers.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --json.")] = False,
) -> None:
    """Print which kinds of edits a set of pairs has, the empty kinds first: negation, number, date, place, name …"""
    console.silence_libraries()
    refuse_existing(json_, overwrite)
    from hfcf.core import recipe
    from hfcf.metrics.scores.coverage import coverage as count_kinds
    from hfcf.pipeline.pair_sets import OPTIONS, read_pairs

    rows = read_pairs(pairs, recipe.file_keys(set_ or [], OPTIONS))
    kinds = count_kinds(rows)
    print_coverage(kinds, len(rows), pairs)
    write_numbers(json_, {"set": pairs, "pairs": len(rows), "kinds": kinds})
