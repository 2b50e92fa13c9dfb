"""`hfcf score` and `hfcf describe`: predictions against a corpus, and what a corpus has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hfcf.cli import console
from hfcf.cli.console import Overwrite, Set, print_path
from hfcf.cli.models import options_of
from hfcf.cli.tables import print_page
from hfcf.core.paths import replace_file

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
    _refuse(out, overwrite)
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
    _write(out, result)


def describe(
    corpus: Annotated[str, typer.Argument(help="NAME=FOLDER (all splits), NAME=FOLDER:SPLIT, or a file of rows.")],
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
    json_: Annotated[Path | None, typer.Option("--json", help="A JSON file for the numbers.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Print what a corpus has, as CheckWhy's Table 1: rows by split and label, words, pieces, distractors, reasoning steps."""
    console.silence_libraries()
    _refuse(json_, overwrite)
    from hfcf.studies.corpus_statistics import describe as describe_rows
    from hfcf.studies.corpus_statistics import read_corpus, to_page

    described = describe_rows(read_corpus(corpus, changes=set_ or [], limit=limit))
    print_page(to_page(described))
    _write(json_, described)


def _refuse(out: Path | None, overwrite: bool) -> None:
    if out is not None and out.exists() and not overwrite:
        raise ValueError(f"{out} exists already: choose another name, or add --overwrite")


def _write(out: Path | None, content: Mapping[str, Any]) -> None:
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(out) as part:
            part.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print_path("the numbers: ", out)
