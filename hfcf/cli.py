"""`hfcf`: run, peek, report, list, train, evaluate, compare, push, attack, rate. Each imports only what it needs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

app = typer.Typer(
    help="Counterfactual data for language tasks.", no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False
)
out_console = Console()
err_console = Console(stderr=True)

attack = typer.Typer(help="Adversarial test sets of relation corpora, as CCG's paper makes them.", no_args_is_help=True)
app.add_typer(attack, name="attack")
rate = typer.Typer(help="Human evaluation: rating sheets with hidden methods, as the papers have them.", no_args_is_help=True)
app.add_typer(rate, name="rate")

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="key=value, any key of the recipe: preset=offline, data_dir=FOLDER, split=NAME, seed=N, settings.num_beams=10 …",
    ),
]


def _version(asked: bool) -> None:
    if asked:
        from hfcf import __version__

        out_console.print(f"hfcf {__version__}")
        raise typer.Exit


@app.callback()
def _first(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Counterfactual data for language tasks."""


_SCORES = {"macro_f1": "macro-F1", "micro_f1": "micro-F1"}


def main() -> None:
    """The entry point: user errors become one line, not a traceback."""
    from hfcf.engines.remote.settings import RemoteError

    logging.basicConfig(format="%(levelname)s: %(message)s")
    logging.getLogger("hfcf").setLevel(logging.INFO)
    try:
        app()
    except (ValueError, FileNotFoundError, ImportError, RemoteError) as error:
        err_console.print(_of_data(f"hfcf: {error}", "bold red"))
        raise SystemExit(2) from error


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or the name of a recipe that ships with hfcf.")],
    out: Annotated[Path | None, typer.Option(help="The folder for the result (not needed with --dry-run).")] = None,
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Run only the first rows, after fitting on all.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and show three rows through every stage.")] = False,
) -> None:
    """Run a recipe: from the corpus's files to a dataset repository with card and report."""
    _quiet()
    from hfcf.pipeline.run import run as run_recipe

    if dry_run:
        from hfcf.pipeline.dry_run import dry_run as try_recipe

        _print_plan(try_recipe(recipe, changes=set_ or [], limit=limit))
        return
    if out is None:
        raise ValueError("say where the result goes: --out DIR")
    found = run_recipe(recipe, out, changes=set_ or [], limit=limit)
    _print_funnel(found)
    made = f"{found['counterfactuals']} counterfactuals of {found['sources_accepted']} sources"
    where = Text(str(out), style="bold")
    out_console.print(Text(f"{made}: ").append(where).append(f", report: {out / 'report.html'}"), soft_wrap=True)


@app.command()
def peek(
    what: Annotated[str, typer.Argument(help="The folder of a run, or the name of a corpus (with --set data_dir=FOLDER).")],
    rows: Annotated[int, typer.Option(help="How many rows.", min=1)] = 5,
    config: Annotated[str, typer.Option(help="default or rejected.")] = "default",
    best: Annotated[int | None, typer.Option(help="Only the best N.", min=1)] = None,
    worst: Annotated[int | None, typer.Option(help="Only the worst N.", min=1)] = None,
    random: Annotated[int | None, typer.Option(help="N at random.", min=1)] = None,
    by: Annotated[
        str | None, typer.Option(help="What ranks them: else minimality, else the first metric, else the first score.")
    ] = None,
    find: Annotated[str | None, typer.Option(help="Only rows with all these words.")] = None,
    set_: Set = None,
) -> None:
    """Print rows of a result, with what changed in colour, or else as [-old-] {+new+}, and its funnel; or rows of a corpus."""
    _quiet()
    from hfcf import corpora
    from hfcf.report import peek as peeking
    from hfcf.report.files import read_run

    if what in corpora.names() and not Path(what).is_dir():
        from hfcf.core import recipe as recipes
        from hfcf.pipeline import run as runner

        for line in peeking.rows_of_corpus(runner.load(recipes.changed({"corpus": what}, set_ or [])), rows, find):
            out_console.print(line)
        return
    # Without colours there are no styles either, by which a terminal shows what changed.
    marks = out_console.color_system is None
    lines = peeking.peek(what, config=config, rows=rows, best=best, worst=worst, random=random, by=by, find=find, marks=marks)
    for line in lines:
        out_console.print(line)
    if found := read_run(Path(what)):
        _print_funnel(found)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="What hfcf run or hfcf compare left.")],
    limit: Annotated[int, typer.Option(help="Rows that the page holds at most.")] = 50_000,
) -> None:
    """Write the page of a run anew: after metrics, ratings or a comparison were added to its folder."""
    from hfcf.report import report as write_report

    out_console.print(Text("the report: ").append(str(write_report(folder, limit=limit)), style="bold"), soft_wrap=True)


@app.command("list")
def list_(what: Annotated[str, typer.Argument(help="systems, corpora or recipes; nothing lists all.")] = "all") -> None:
    """List systems with their stages, corpora and recipes."""
    choices = ("systems", "corpora", "recipes", "all")
    if what not in choices:
        raise ValueError(f"list {what}: choose one of {', '.join(choices)}")
    if what in ("systems", "all"):
        _list_systems()
    if what in ("corpora", "all"):
        _list_corpora()
    if what in ("recipes", "all"):
        _list_recipes()


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A training recipe: train_verifier, train_generator or a YAML file.")],
    out: Annotated[Path, typer.Option(help="Where the model, its scores and its card go.")],
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(help="Train on the first rows alone, to try a recipe out.")] = None,
) -> None:
    """Train a verifier, a generator or rewriter of claims, an explainer, a masked language model or a relation classifier."""
    from hfcf.core import recipe as recipes
    from hfcf.pipeline.train import train as train_recipe

    path = recipes.find(recipe)
    command = recipes.command("train", recipe, out, set_ or [], limit)
    content = recipes.read(path, set_ or [])
    out_console.print_json(json.dumps(train_recipe(content, out, where=path.name, limit=limit, command=command)))


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A Hub id, a folder, or offline:NAME.")],
    corpus: Annotated[
        list[str], typer.Option(help="NAME=FOLDER, or NAME=FOLDER:SPLIT (validation if not said); may be given several times.")
    ],
    adapter: Annotated[str | None, typer.Option(help="An adapter to merge in; hfcf:verifier is ours.")] = None,
    max_length: Annotated[int, typer.Option(help="Tokens of claim and evidence, or of a relation's sentence.")] = 130,
    ways: Annotated[int, typer.Option(help="Of a verifier: 2 drops NOT ENOUGH INFO, as RACE's evaluation does; 3 keeps it.")] = 2,
) -> None:
    """Score a verifier on corpora, beside the majority baseline, or a relation classifier on relation corpora."""
    _quiet()
    from hfcf import corpora
    from hfcf.core.model import Model
    from hfcf.core.task import task_of
    from hfcf.engines.classifier import Classifier
    from hfcf.engines.relation import RelationClassifier
    from hfcf.training.relation import evaluate_relation
    from hfcf.training.verifier import evaluate_verifier

    given = Model(model, adapter=adapter)
    found: dict[str, dict[str, Any]] = {}
    for one in corpus:
        name, _, where = one.partition("=")
        folder, split = where.rsplit(":", 1) if ":" in where else (where, "validation")
        rows = corpora.load(name, data_dir=folder, split=split)
        if task_of(rows.features).name == "relation":
            scores = evaluate_relation(rows, RelationClassifier(model=given, max_length=max_length))
        else:
            scores = evaluate_verifier(rows, Classifier(model=given, max_length=max_length), ways=ways)
        found[f"{name} ({split})"] = scores
    columns = list(dict.fromkeys(key for scores in found.values() for key in scores))
    table = Table("corpus", *(_SCORES.get(key, key) for key in columns))
    for title, scores in found.items():
        table.add_row(title, *(str(scores.get(key, "–")) for key in columns))
    out_console.print(table)


@app.command()
def compare(
    recipe: Annotated[str, typer.Argument(help="A comparison recipe: compare_race, compare_rationales or a YAML file.")],
    out: Annotated[Path, typer.Option(help="Where the tables and the figure go.")],
    set_: Set = None,
    results: Annotated[Path, typer.Option(help="Where finished cells are kept, not to be computed again.")] = Path("results"),
    full: Annotated[bool, typer.Option("--full", help="All rows, not the samples that the recipe names.")] = False,
) -> None:
    """Compare methods: a verifier for each method and seed, scored on each corpus, in tables with intervals."""
    _quiet()
    from hfcf.studies.compare.run import compare as compare_methods

    found = compare_methods(recipe, out, changes=set_ or [], results=results, full=full)
    if found["missing"]:
        err_console.print(f"{found['missing']} cells are missing: another process has them, or was stopped; run this again")
    out_console.print(Text("the table: ").append(found["table"], style="bold"), soft_wrap=True)


@app.command()
def push(
    folder: Annotated[Path, typer.Argument(help="What hfcf run or hfcf train left: it becomes a dataset or a model repository.")],
    repo: Annotated[str, typer.Argument(metavar="REPO_ID", help="The repository's name: NAMESPACE/NAME.")],
    public: Annotated[bool, typer.Option("--public", help="Let everyone see it; else the repository is private.")] = False,
    revision: Annotated[str | None, typer.Option(help="A branch, in the place of the main one.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent, without asking the Hub.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it may be public.")] = False,
) -> None:
    """Push a finished folder to the Hub: private unless you say otherwise, in one commit, as often as you like."""
    from hfcf.hub.push import plan
    from hfcf.hub.push import push as push_folder

    planned = plan(folder, repo)
    if dry_run:
        _print_push(planned, public)
        return
    if public and not yes:
        typer.confirm(f"Everyone will see the {planned.kind} {repo}. Go on?", abort=True)
    done = push_folder(folder, repo, public=public, revision=revision)
    told = "no change"
    if done.sent or done.removed:
        told = f"{len(done.sent)} files sent, {len(done.removed)} of an older push removed"
    seen = "private" if done.private else "public"
    if public and done.private:
        seen = "private, as it was: make it public in its settings"
    out_console.print(Text(f"{told} ({seen}): ").append(done.url, style="bold"), soft_wrap=True)


@attack.command("candidates")
def attack_candidates(
    recipe: Annotated[str, typer.Argument(help="attack_semeval or a YAML file.")],
    out: Annotated[Path, typer.Option(help="Where the candidates go: candidates.csv is for a person, who marks the best.")],
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(help="Alter only the first rows; all lend their entities.")] = None,
) -> None:
    """Replace causal terms and entities of a test set, and keep the least perplexing sentences."""
    _quiet()
    from hfcf.studies.attack.run import SHEET, make_candidates

    told = make_candidates(recipe, out, changes=set_ or [], limit=limit)["report"]
    table = Table("kind", "rows with candidates", "candidates", "commonest reason for none", title=f"{told['rows']} rows")
    for kind in ("flipped", "invariant"):
        counts = told[kind]
        reason = next((f"{why} ({n})" for why, n in counts["reasons"].items()), "")
        table.add_row(kind, str(counts["rows"]), str(counts["candidates"]), _of_data(reason))
    out_console.print(table)
    where = Text(str(out / SHEET), style="bold")
    out_console.print(Text("mark the best in ").append(where).append(f", then: hfcf attack choose {out}"), soft_wrap=True)


@attack.command("choose")
def attack_choose(
    out: Annotated[Path, typer.Argument(help="The folder of hfcf attack candidates.")],
    automatic: Annotated[bool, typer.Option("--automatic", help="Take the least perplexing ones; nobody has read them.")] = False,
    ratio: Annotated[float, typer.Option(help="With --automatic: how many times as perplexing as its source one may be.")] = 1.5,
) -> None:
    """Make the attack set of the sentences that are marked: at most one of each row and kind."""
    _quiet()
    from hfcf.studies.attack.run import make_attack

    found = make_attack(out, automatic=automatic, max_perplexity_ratio=ratio)
    told = f"{found['rows']} rows, {found['flipped']} flipped and {found['invariant']} invariant: "
    out_console.print(Text(told).append(str(out), style="bold"), soft_wrap=True)


@rate.command("export")
def rate_export(
    protocol: Annotated[
        str, typer.Argument(help="race, ccg_terms, ccg_commonsense, checkwhy_validity, checkwhy_preference or rgf.")
    ],
    sets: Annotated[list[str], typer.Argument(help="METHOD=FOLDER, one or more: of a run, or of Parquet or JSON lines.")],
    out: Annotated[Path, typer.Option(help="Where the sheets and the key go.")],
    sources: Annotated[
        str | None, typer.Option(help="The source rows, of sets that are no run's folder; for checkwhy_preference, the references.")
    ] = None,
    raters: Annotated[int, typer.Option(help="How many people rate.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the draw and the order.")] = 13,
    rows: Annotated[int | None, typer.Option(help="Of each method (and label), in the place of the paper's number.")] = None,
) -> None:
    """Write a rating sheet for each rater, instructions, and the key to the methods."""
    from dataclasses import replace

    from hfcf.studies.human.export import RATERS, export, protocol_of

    if wrong := next((one for one in sets if "=" not in one), None):
        raise ValueError(f"{wrong!r}: write METHOD=FOLDER")
    given = dict(one.split("=", 1) for one in sets)
    if len(given) < len(sets):
        raise ValueError("two sets have the name of one method")
    chosen = protocol_of(protocol)
    chosen = chosen if rows is None else replace(chosen, rows=rows)
    found = export(given, chosen, out, sources=sources, raters=raters, seed=seed)
    title = f"{found['lines']} lines a sheet; {found['shared']} sources that every method has"
    table = Table("method", "rows", "too few", "not rated", title=title)
    for method, told in found["methods"].items():
        counts = (", ".join(f"{n} {stratum}" for stratum, n in told[key].items()) for key in ("rows", "short"))
        reason = next((f"{why} ({n})" for why, n in told["left_out"].items()), "")
        table.add_row(Text(method), *counts, _of_data(reason))
    out_console.print(table)
    where = Text("for the raters: ").append(str(out / RATERS), style="bold")
    out_console.print(where.append(f"; when the sheets are back: hfcf rate import {out}"), soft_wrap=True)


@rate.command("import")
def rate_import(
    out: Annotated[Path, typer.Argument(help="The folder of hfcf rate export, with the filled sheets.")],
    partial: Annotated[bool, typer.Option("--partial", help="Sum up what is there, though answers are missing.")] = False,
) -> None:
    """Sum up filled sheets: means, agreement, and which method is better."""
    from hfcf.studies.human.collect import TABLE, import_

    import_(out, partial=partial)
    out_console.print(Text((out / TABLE).read_text(encoding="utf-8")), soft_wrap=True)
    out_console.print(Text("the table: ").append(str(out / TABLE), style="bold"), soft_wrap=True)


def _print_funnel(found: dict[str, Any]) -> None:
    table = Table("stage", "rows in", "rows out", "candidates rejected", "commonest reason", title="Funnel")
    for entry in found["funnel"]:
        reasons = {**entry["candidate_reasons"], **entry["reasons"]}
        most = max(reasons.items(), key=lambda item: item[1], default=None)
        counts = [str(entry[key]) for key in ("rows_in", "rows_out", "candidates_rejected")]
        # As text: what a reason quotes from the data is no markup.
        cells = (entry["stage"], *counts, f"{most[0]} ({most[1]})" if most else "")
        table.add_row(*map(_of_data, cells))
    out_console.print(table)


def _print_push(planned: Any, public: bool) -> None:
    seen = "public" if public else "private"
    table = Table("file", Column("bytes", justify="right"), title=f"The {planned.kind} repository {planned.repo} ({seen})")
    for path, size in planned.files.items():
        table.add_row(Text(path, overflow="fold"), f"{size:,}")
    out_console.print(table)
    if planned.left_out:
        out_console.print(Text(f"not sent: {', '.join(planned.left_out)}"), soft_wrap=True)


def _of_data(text: str, style: str = "") -> Text:
    """A text that may hold data of a user's files."""
    from hfcf.report.peek import printable

    return printable(Text(text, style=style))


def _print_plan(plan: dict[str, Any]) -> None:
    remote = [key for key in ("attempts", "cost") if any(key in entry for entry in plan["stages"])]
    told = ["calls", "tokens", "minutes", *remote]
    title = f"{plan['rows']} rows of {plan['corpus']}, estimated from {plan['tried']}"
    table = Table("stage", "reads", "fills", *told, title=title)
    for entry in plan["stages"]:
        counts = ("–" if entry.get(key) is None else str(entry[key]) for key in told)
        table.add_row(entry["stage"], entry["reads"], entry["fills"], *counts)
    out_console.print(table)
    if plan["rejected"]:
        lost = f"rejected while loading: {plan['rejected']} of {plan['rows']} rows, most often because "
        out_console.print(Text(lost, style="bold") + _of_data(plan["reason"]))
    for row in plan["examples"]:
        out_console.print(_of_data(f"{row['id']}: ", "bold") + _of_data(row["text"]))
        for stage, told in row["stages"]:
            out_console.print(Text(f"  {stage}: ", style="dim") + _of_data(told))


def _list_systems() -> None:
    from hfcf.systems import system_class, systems

    table = Table("system", "stage", "reads", "fills", title="Systems")
    for name in systems():
        cls = system_class(name)
        for stage in cls.preset("offline" if "offline" in cls.presets else "paper").stages:
            table.add_row(name, stage.name, ", ".join(stage.inputs), ", ".join(stage.outputs))
            name = ""
    out_console.print(table)


def _list_corpora() -> None:
    from hfcf.corpora import builder_class, names

    reads = Column("reads", overflow="fold")
    title = "Corpora (docs/corpora.md tells of other files that they read)"
    table = Table("corpus", "title", reads, "official splits", "licence", "labels", title=title)
    for name in names():
        builder = builder_class(name)
        info = builder.INFO
        # Each split's first file is the release's.
        files: dict[str, str] = {}
        for split, file in builder.FILES:
            files.setdefault(split, file)
        splits = ", ".join(f"{split} {rows:,}" for split, rows in info.splits.items())
        labels = ", ".join(f"{raw} → {ours}" if raw != ours else ours for raw, ours in info.labels.items())
        table.add_row(name, info.title, "\n".join(files.values()), splits, info.licence or "the user's", labels or "the file's own")
    out_console.print(table)


def _list_recipes() -> None:
    from hfcf.core import recipe as recipes

    table = Table("recipe", "command", title="Recipes")
    for name in recipes.shipped():
        table.add_row(name, recipes.find(name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# "))
    out_console.print(table)


def _quiet() -> None:
    """Keep the model libraries' own bars and notes off the terminal: the stages have a bar each."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
