"""Tables that commands print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Column, Table
from rich.text import Text

from hfcf.cli import console
from hfcf.cli.console import data_text, print_fields, print_hanging, print_lines

if TYPE_CHECKING:
    from hfcf.core.model_facts import ModelFacts

_COMMIT = re.compile(r"@([0-9a-f]{7})[0-9a-f]{33}\b")
_TITLES = {"macro_f1": "macro-F1", "micro_f1": "micro-F1"}
_WIDE = 6
"""Scores that fit next to a corpus's name on 80 columns."""
_GROUPS = 4
"""Groups of rows that fit next to a score's name on 80 columns."""


def commonest(reasons: Mapping[str, int], examples: Mapping[str, str] = MappingProxyType({})) -> Text:
    """Return the commonest reason with its count as text, with the numbers of an example: what it quotes is not markup."""
    reason, n = max(reasons.items(), key=itemgetter(1), default=("", 0))
    like = " like this" if reason in examples and n > 1 else ""
    return data_text(f"{examples.get(reason, reason)} ({n}{like})" if n else "")


def print_funnel(report: dict[str, Any]) -> None:
    """Print the rows that each stage accepted, each stage's commonest reason for rejection, and how skewed the labels are."""
    from hfcf.metrics.label_balance import describe_skew

    width = max((len(entry["stage"]) for entry in report["funnel"]), default=0)
    header = f"{'':<{width}}  rows in  rows out  candidates rejected"
    console.out.print(Text("Funnel", style="bold"), Text(header[len("Funnel") + 1 :], style="dim"))
    for entry in report["funnel"]:
        counts = f"  {entry['rows_in']:>7,}  {entry['rows_out']:>8,}  {entry['candidates_rejected']:>19,}"
        console.out.print(data_text(f"{entry['stage']:<{width}}").append(counts), soft_wrap=True)
        if reason := commonest({**entry["candidate_reasons"], **entry["reasons"]}, entry.get("examples") or {}):
            reason.stylize("dim")
            print_hanging(reason, indent=4)
    if skew := describe_skew(report.get("labels") or {}):
        print_hanging(data_text(skew, style="yellow"))


def print_preset_models(name: str, preset: str, changes: Sequence[str]) -> None:
    """Print the models of a system's preset: one table, or one for each task whose rows need other models."""
    from hfcf.core import recipe as recipes
    from hfcf.core.model_facts import list_models
    from hfcf.pipeline.run import make_system
    from hfcf.systems import system_class

    content = recipes.apply_changes({"preset": preset}, changes)
    recipes.check_keys(content, ("preset", "settings"), "--set")
    settings: Mapping[str, Any] = content.get("settings") or {}
    tables: dict[tuple[ModelFacts, ...], list[str]] = {}
    for task in [settings["task"]] if "task" in settings else system_class(name).works_on():
        others = {key: value for key, value in settings.items() if key != "task"}
        system = make_system(name, preset=preset, settings=others, task=task)
        tables.setdefault(tuple(list_models(system)), []).append(task)
    for models, of_rows in tables.items():
        rows = f" on {', '.join(of_rows)} rows" if len(tables) > 1 else ""
        print_models(models, f"Models of {name}, preset {preset}{rows}")


def print_models(models: Sequence[ModelFacts], title: str = "Models that will load") -> None:
    """Print a table of models, and below it how to get what is not there."""
    from hfcf.core.model_facts import write_number

    if not models:
        console.out.print(Text(f"{title}: none", style="bold"))
        return
    table = Table(
        Column("model, and what for", overflow="fold"), Column("licence", overflow="fold", max_width=12),
        Column("parameters", justify="right", no_wrap=True), Column("where", max_width=12), title=title, box=box.SIMPLE,
    )  # fmt: skip
    for facts in models:
        name = data_text(_COMMIT.sub(r"@\1", facts.model), "bold").append(f"\n{', '.join(facts.used_by)}", style="not bold dim")
        if facts.classes:
            reads = f", reads {facts.inputs}" if facts.inputs else ""
            name.append(f"\nclasses {', '.join(facts.classes)}{reads}", style="not bold dim")
        table.add_row(name, data_text(facts.licence or "unknown"), write_number(facts.parameters), facts.place)
    console.out.print(table)
    for note in dict.fromkeys(facts.note for facts in models if facts.note):
        print_hanging(data_text(note, "dim"))


def print_scores(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Print a model's scores by corpus; a corpus with many scores, or with scores of groups of rows, gets its own tables."""
    few = {title: scores for title, scores in results.items() if len(scores) <= _WIDE and not _groups(scores)}
    if few:
        columns = list(dict.fromkeys(key for scores in few.values() for key in scores))
        table = Table("corpus", *(_TITLES.get(key, key) for key in columns))
        for title, scores in few.items():
            table.add_row(title, *(str(scores.get(key, "–")) for key in columns))
        console.out.print(table)
    for title, scores in results.items():
        if title not in few:
            _print_groups(title, scores)


def print_pairs(numbers: Mapping[str, Any], title: str) -> None:
    """Print how many pairs of a set a model answers right: all, then by the field that was changed, then by the kind of edit."""
    sides = ("source", "counterfactual", "both")
    header = ("original right", "counterfactual right", "both right")
    table = Table(Column("pairs of", overflow="fold"), *(Column(name, justify="right") for name in ("pairs", *header)), title=title)
    table.add_row("all", str(numbers["pairs"]), *(str(numbers[side]) for side in sides), style="bold")
    for what, groups in (("changed", numbers.get("change", {})), ("edited", numbers["kind"])):
        table.add_section()
        for name, part in groups.items():
            table.add_row(f"{what}: {name}", str(part["pairs"]), *(str(part[side]) for side in sides))
    console.out.print(table)
    low, high = numbers["both_interval"]
    print_hanging(data_text(f"both sides are right in {numbers['both']} of the pairs, 95 % interval {low} to {high}."), hang=2)
    for why, number in numbers["left_out"].items():
        print_hanging(data_text(f"{number} pairs are left out: {why}."), hang=2)


def print_coverage(kinds: Mapping[str, Mapping[str, Any]], pairs: int, title: str) -> None:
    """Print how many pairs of a set have each kind of edit, the empty kinds first."""
    table = Table("kind of edit", Column("pairs", justify="right"), Column("share", justify="right"), "such as", title=title)
    for name, part in kinds.items():
        before, after = part["example"] or ("", "")
        example = f"{before or '∅'} → {after or '∅'}" if part["example"] else ""
        table.add_row(name, str(part["pairs"]), f"{part['share']:.0%}", data_text(example), style="" if part["pairs"] else "yellow")
    console.out.print(table)
    empty = [name for name, part in kinds.items() if not part["pairs"]]
    print_hanging(
        data_text(f"{pairs} pairs; none has an edit of: {', '.join(empty)}" if empty else f"{pairs} pairs of all kinds"), hang=2
    )


def print_training(report: Mapping[str, Any], out: Any) -> None:
    """Print on how many rows a model was trained, its scores, and where they are."""
    from hfcf.core.progress import duration

    rows = report["rows"]
    dropped = f", {rows['dropped as repeats']} dropped as repeats" if rows.get("dropped as repeats") else ""
    counts = f"trained on {rows['train']} rows, {rows['held_out']} held out{dropped}, in {duration(report['seconds'])}"
    console.out.print(data_text(counts), soft_wrap=True)
    print_scores(dict(_leaves(report["scores"])))
    console.print_path("the model, its card and scores.json: ", out)


def _leaves(scores: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what nested scores hold at each place, by the keys that lead to it."""
    values = {key: value for key, value in scores.items() if not isinstance(value, Mapping)}
    if values:
        yield ", ".join(path) or "all", values
    for key, value in _groups(scores).items():
        yield from _leaves(value, (*path, str(key)))


def print_training_plan(plan: Mapping[str, Any]) -> None:
    """Print what a training would do."""
    rows, about = plan["rows"], "" if plan["exact"] else "about "
    lines = [
        ("rows", f"{rows['train']} to train on, {rows['held_out']} held out"),
        *([("labels", ", ".join(f"{number} {label}" for label, number in plan["labels"].items()))] if plan["labels"] else []),
        ("steps", f"{about}{plan['steps']}, which read each row {plan['passes']:g} times"),
        ("batch", f"{plan['batch_size']} inputs, {plan['micro_batch_size']} computed at a time"),
        ("gradient checkpointing", "yes" if plan["gradient_checkpointing"] else "no"),
    ]
    print_fields(lines, 0)


def _groups(scores: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {key: value for key, value in scores.items() if isinstance(value, Mapping)}


def _print_groups(title: str, scores: Mapping[str, Any]) -> None:
    groups = _groups(scores)
    everything = {"all": {key: value for key, value in scores.items() if key not in groups}, **groups}
    for start in range(0, len(everything), _GROUPS):
        names = list(everything)[start : start + _GROUPS]
        table = Table("score", *(Column(name, justify="right") for name in names), title=title)
        for key in dict.fromkeys(key for name in names for key in everything[name]):
            table.add_row(_TITLES.get(key, key), *(str(everything[name].get(key, "–")) for name in names))
        console.out.print(table)


def print_page(text: str) -> None:
    """Print a page of Markdown; a table that is wider than the terminal becomes a block for each row."""
    for is_table, group in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        lines = [data_text(line) for line in group]
        if not is_table or max(line.cell_len for line in lines) <= console.out.width:
            for line in lines:
                print_hanging(line, hang=0)
            continue
        cells_of = (line.plain.strip().removeprefix("|").removesuffix("|").split(" | ") for line in lines)
        header, _, *rows = [[cell.strip() for cell in cells] for cells in cells_of]
        for first, *cells in rows:
            console.out.print(Text(first, style="bold"))
            print_fields(zip(header[1:], cells, strict=False))


def print_push(contents: Any, repo: str, public: bool) -> None:
    """Print the files of a push."""
    visibility = "public" if public else "private"
    table = Table("file", Column("bytes", justify="right"), title=f"The {contents.kind} repository {repo} ({visibility})")
    for path in contents.files:
        table.add_row(Text(path, overflow="fold"), f"{(contents.root / path).stat().st_size:,}")
    console.out.print(table)
    if contents.left_out:
        console.out.print(Text(f"not sent: {', '.join(contents.left_out)}"), soft_wrap=True)


def print_plan(plan: dict[str, Any], *, marks: bool = False) -> None:
    """Print a dry run: the cost of each stage and of all, then a few rows with each stage's outcome and what was made."""
    from hfcf.report.peek import pair_lines, row_lines

    columns = [
        "calls",
        "tokens",
        "minutes",
        *(key for key in ("attempts", "cost") if any(key in entry for entry in plan["stages"])),
    ]
    table = Table(
        Column("stage", overflow="fold"), *(Column(key, justify="right", no_wrap=True) for key in columns),
        title=f"{plan['rows']} rows of {plan['corpus']}, estimated from the first {plan['tried']}",
    )  # fmt: skip
    everything = {key: _total(plan["stages"], key) for key in columns if key not in ("calls", "tokens")}
    for entry in plan["stages"]:
        table.add_row(entry["stage"], *(_amount(entry, key) for key in columns))
    table.add_section()
    # A tagger's texts and a language model's are not added up.
    table.add_row("all", *(_amount(everything, key) if key in everything else "" for key in columns), style="bold")
    console.out.print(table)
    print_estimate(plan)
    if any(entry["tokens"] is None for entry in plan["stages"]):
        why = "–: the answers to these rows were in the cache, so what further rows cost is not known"
        console.out.print(Text(why, style="dim"))
    if plan["rejected"]:
        rejected = f"rejected while loading: {plan['rejected']} of {plan['rows']} rows, most often because "
        print_hanging(Text(rejected, style="bold").append_text(data_text(plan["reason"], "not bold")))
    if plan.get("about"):
        print_hanging(data_text(plan["about"], "dim"))
    console.out.print()
    for example in plan["examples"]:
        pairs = example["counterfactuals"]
        print_lines(row_lines(example["row"], texts=not pairs, end=False))
        for stage, outcome in example["stages"]:
            print_hanging(Text(f"{stage}: ", style="bold").append_text(data_text(outcome, "not bold")), indent=2)
        for pair in pairs:
            print_lines(pair_lines(pair, example["row"].get("label"), (), marks=marks))
        if not pairs:
            console.out.print()


def print_estimate(plan: Mapping[str, Any]) -> None:
    """Print how often a run asks language models and how long an answer takes, then how long all rows take."""
    from hfcf.core.progress import duration

    for entry in plan["stages"]:
        if "request_seconds" in entry:
            requests, each = entry["requests"], entry["request_seconds"]
            text = f"{entry['stage']} asks a language model {requests:,} times, {each:g} s each: {duration(requests * each)}"
            print_hanging(data_text(text))
    if "seconds" in plan:
        loading = f", and {plan['loading']:.0f} s to load the models" if plan["loading"] >= 1 else ""
        unknown = [entry["stage"] for entry in plan["stages"] if entry["tokens"] is None]
        besides = f", besides {', '.join(unknown)}, whose first answers were in the cache" if unknown else ""
        text = f"all rows take {duration(plan['seconds'])} in one process on this machine{loading}{besides}"
        print_hanging(Text(text, style="bold"))


def _amount(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if key == "minutes" and value == 0 and entry.get("calls"):
        return "< 0.1"
    return "–" if value is None else f"{value:,}"


def _total(entries: Sequence[Mapping[str, Any]], key: str) -> float | None:
    amounts = [entry[key] for entry in entries if entry.get(key) is not None]
    return round(sum(amounts), 4) if amounts else None


def print_comparison(plan: Mapping[str, Any]) -> None:
    """Print what a comparison has to compute: its cells by method, the rows of its sets, and what is missing."""
    from hfcf.core.progress import time_left

    for path in plan["absent"]:
        console.out.print(data_text(f"missing: {path}"), soft_wrap=True)
    if "methods" not in plan:
        state = (
            "its cells are not known without these; docs/reference/corpora.md says how to get each corpus"
            if plan["absent"]
            else "all its rows and models are there"
        )
        console.out.print(data_text(f"{plan['name']}: {state}"))
        return
    table = Table("method", "cells finished", "cells to compute", title=data_text(plan["name"]))
    for name, cells in plan["methods"].items():
        table.add_row(data_text(name), str(cells["finished"]), str(cells["to_compute"]))
    console.out.print(table)
    train = " or ".join(map(str, plan["rows"]["train"]))
    sets = ", ".join(f"{name} ({rows})" for name, rows in plan["rows"]["sets"].items())
    console.out.print(data_text(f"trained on {train} rows, scored on {sets}"))
    time = "how long is not known before the first cell" if plan["seconds"] is None else time_left(plan["seconds"])
    left = f"{plan['trainings']} models to train: {time}" if plan["trainings"] else "nothing to compute: all cells are finished"
    console.out.print(data_text(left))
