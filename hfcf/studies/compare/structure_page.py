"""The page of a comparison on CheckWhy's tasks: its Tables 3 to 8, the paper's figures below ours, and rows for raters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hfcf.core.model import named
from hfcf.metrics.scores.structures import STEPS, encoder_of
from hfcf.pipeline.predictions import write_lines
from hfcf.studies.compare import tables
from hfcf.studies.compare.age import age, age_notes
from hfcf.studies.compare.frame import long_table
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.structure_recipe import StructureComparison
from hfcf.studies.compare.structures import (
    LETTERS,
    PIPELINE,
    TASKS,
    Column,
    Place,
    Study,
    fewer,
    fill,
    open_study,
    read,
    shown,
    versions_of,
)
from hfcf.tasks.structures.model import CLAIM, Structure
from hfcf.training.structure_answers import read_answer

ANSWERS = "answers"
"""The folder of the structures that models wrote, as rows."""
_LABEL, _BOTH = (("Acc.", "accuracy"), ("F1", "macro_f1")), (("SS", "ss"), ("ES", "es"))
_PARTS = tuple(
    (f"{part.title()}, {title}", f"{part}_{name}")
    for part in ("leaves", "steps", "intermediates") for title, name in (("F1", "f1"), ("AllCorrect", "all"))
)  # fmt: skip
_HUMAN = ("Win", "Tie", "Lose", "Validity")
Cell = Mapping[str, Any]


class Table(NamedTuple):
    """One of the paper's tables: its title, and for each heading the column of cells and the metric; None: people judge."""

    title: str
    headings: tuple[tuple[str, tuple[str, str] | None], ...]


def _of(column: Column, *metrics: tuple[str, str], prefix: str = "") -> tuple[tuple[str, tuple[str, str] | None], ...]:
    return tuple((prefix + heading, (column.name, metric)) for heading, metric in metrics)


_PEOPLE = tuple((name, None) for name in _HUMAN)
TABLES = (
    Table(
        "Table 3: Tasks 1 and 2",
        tuple(
            heading
            for column, name in zip(TASKS[:3], ("Task 1 (Y₃) ", "Task 1 (Y₂) ", "Task 2 "), strict=True)
            for heading in _of(column, *_LABEL, prefix=name)
        ),
    ),
    *(Table(f"Table 4: {column.name}", (*_of(column, *_BOTH), *_PEOPLE, *_of(column, *_LABEL))) for column in TASKS[3:]),
    Table("Table 7: Task 4 by two models in a row", _of(PIPELINE, *_LABEL, *_BOTH)),
    *(Table(f"Table 8: {column.name}", _of(column, *_PARTS)) for column in TASKS[3:]),
)
BY_DISTRACTORS, BY_STEPS = "Table 5: Task 4 by the number of distractors", "Table 6: Task 4 by the number of steps"


def compare_structures(
    recipe: StructureComparison, out: Path, results: Path, command: str, *, full: bool = False, stored: bool = False
) -> dict[str, Any]:
    """Compute the missing cells of a recipe, and write `table.md`, `table.csv` and `answers/` into a folder."""
    study = open_study(recipe, results, full=full, stored=stored)
    if not stored:
        fill(study, out / "work")
    cells = read(study, older=stored)
    (out / "table.md").write_text(markdown(study, cells, command), encoding="utf-8")
    (out / "table.csv").write_text(long_table(_by_group(cells)).to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    write_answers(study, cells, out / ANSWERS)
    return {"table": str(out / "table.md"), "missing": len(study.missing)}


def _by_group(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Yield a cell for each group of rows, its numbers with their intervals."""
    about = ("recipe", "method", "seed", "corpus", "ids")
    for cell in cells:
        yield {name: value for name, value in cell.items() if name not in ("groups", "predicted")}
        for group, part in cell["groups"].items():
            place = {name: cell[name] for name in about} | {"setting": group, "rows": part["rows"]}
            bounds = {
                f"{metric}_{end}": values[i] for metric, values in part["scores"].items() for i, end in ((1, "low"), (2, "high"))
            }
            yield place | ({metric: values[0] for metric, values in part["scores"].items()} if group != "all" else {}) | bounds


def markdown(study: Study, cells: Sequence[Cell], command: str) -> str:
    """Return the page."""
    recipe = study.recipe
    done = {(cell["method"], cell["seed"], cell["corpus"]) for cell in cells}
    missing = [(name, column, seed) for name, seed, column in study.requested if (name, seed, column) not in done]
    legend = [
        *(f"†: {note}" for note in age_notes(cells)),
        f"Points. Of several seeds mean ± sample standard deviation. Seeds: {', '.join(map(str, recipe.seeds))}.",
        f"SS is by {encoder_of(recipe.encoder).model.name}, the paper's by {encoder_of('paper').model.name}: two scales.",
        "Rows in italics are the paper's figures, on its own rows. –: not computed. People fill the columns Win to Validity.",
        "F1 of labels is macro-F1. Acc. of the commonest label is what always giving it scores.",
    ]
    sections = [
        "## Rows", _rows(study), _not_computed(study), *tables_of(recipe, cells), "## Intervals", intervals(cells),
        "## People's judgements", people(study), "## How it was made", _provenance(study, cells, command),
    ]  # fmt: skip
    return tables.page(recipe.name, tables.partial(missing, len(study.requested), "requested cells"), legend, sections)


def newest_cells(recipe: StructureComparison, results: Path) -> list[dict[str, Any]]:
    """Read the newest stored cell of each place of a recipe's table without its rows; `age` says whether it is of older code."""
    found: dict[Place, dict[str, Any]] = {}
    for cell in Cells(results / f"{recipe.name}.jsonl").every():
        name = cell["method"]
        if cell["encoder"] == recipe.encoder and name in recipe.models:
            said = age(cell["versions"], versions_of(recipe.models[name]))
            found[name, cell["seed"], cell["corpus"]] = {**cell, "age": said}
    return list(found.values())


def tables_of(recipe: StructureComparison, cells: Sequence[Cell]) -> list[str]:
    """Return the paper's tables in its order, each with its heading."""
    found = [(table.title, _table(recipe, cells, table)) for table in TABLES]
    found += [(BY_DISTRACTORS, _by_distractors(recipe, cells)), (BY_STEPS, _by_steps(recipe, cells))]
    return [text for title, body in sorted(found, key=lambda part: part[0].split(":")[0]) for text in (f"## {title}", body)]


def _table(recipe: StructureComparison, cells: Sequence[Cell], table: Table) -> str:
    lines = []
    for name in recipe.models:
        texts = ["–" if place is None else _value(cells, name, *place) for _, place in table.headings]
        if set(texts) != {"–"}:
            lines.append([name, *texts])
    floors = ["" if place is None or place[1] != "accuracy" else _floor(cells, place[0]) for _, place in table.headings]
    commonest = [["commonest label", *floors]] if any(floors) else []
    return tables.table(["Model", *(heading for heading, _ in table.headings)], [*commonest, *lines, *_papers(recipe, table.title)])


def _by_distractors(recipe: StructureComparison, cells: Sequence[Cell]) -> str:
    lines = [
        [name, str(number), *(_value(cells, name, fewer(number).name, metric) for _, metric in (*_LABEL, *_BOTH))]
        for name, numbers in recipe.distractors.items() for number in numbers
    ]  # fmt: skip
    header = ["Model", "At most so many distractors", *(heading for heading, _ in (*_LABEL, *_BOTH))]
    return tables.table(header, [*lines, *_papers(recipe, BY_DISTRACTORS)])


def _by_steps(recipe: StructureComparison, cells: Sequence[Cell]) -> str:
    task, lines = TASKS[4].name, []
    for name in recipe.models:
        own = [cell for cell in cells if (cell["method"], cell["corpus"]) == (name, task)]
        for step in STEPS:
            group = f"{step} step{'s' * (step != '1')}"
            if own and (part := own[0]["groups"].get(group)):
                values = (_value(cells, name, task, metric, group) for _, metric in (*_LABEL, *_BOTH))
                lines.append([name, step, str(part["rows"]), *values])
    header = ["Model", "Steps", "Rows", *(heading for heading, _ in (*_LABEL, *_BOTH))]
    return tables.table(header, [*lines, *_papers(recipe, BY_STEPS)])


def _papers(recipe: StructureComparison, title: str) -> list[list[str]]:
    """Return the paper's lines of a table."""
    own = recipe.paper.tables.get(title, {})
    return [[f"*{name}, the paper*", *("–" if value is None else str(value) for value in values)] for name, values in own.items()]


def _value(cells: Sequence[Cell], name: str, column: str, metric: str, group: str = "all") -> str:
    own = [cell for cell in cells if (cell["method"], cell["corpus"]) == (name, column)]
    scores = [
        cell["groups"][group]["scores"][metric][0] for cell in own if metric in cell["groups"].get(group, {}).get("scores", {})
    ]
    if not scores:
        return "–"
    mark = "†" if any(cell["age"] for cell in own) else ""
    return tables.points(fmean(scores)) + (f" ± {tables.points(stdev(scores))}" if len(scores) > 1 else "") + mark


def _floor(cells: Sequence[Cell], column: str) -> str:
    return next((tables.points(cell["majority"]) for cell in cells if cell["corpus"] == column), "–")


def intervals(cells: Sequence[Cell]) -> str:
    """Return the scores of each cell with their intervals."""
    lines = []
    for cell in cells:
        scores = cell["groups"]["all"]["scores"]
        texts = [
            "{} [{}, {}]".format(*map(tables.points, scores[metric])) if metric in scores else "–"
            for _, metric in (*_LABEL, *_BOTH)
        ]
        numbers = (str(cell[name]) for name in ("seed", "rows", "cut", "unreadable"))
        lines.append([cell["method"], cell["corpus"], *numbers, *texts])
    header = ["Model", "Column", "Seed", "Rows", "Cut rows", "Unreadable answers", *(heading for heading, _ in (*_LABEL, *_BOTH))]
    return "95 %, over groups of test rows drawn again, for one seed.\n\n" + tables.table(header, lines)


def _rows(study: Study) -> str:
    lines, notes = [], []
    for ways, rows in study.rows.items():
        lines.append([f"{ways} labels", f"{len(rows.train):,}", f"{len(rows.test):,}", f"{rows.removed:,}"])
        for part, reasons in rows.refused.items():
            notes += [
                f"{ways} labels, {part}: {number:,} records can't be read, and are left out: {why}"
                for why, number in reasons.items()
            ]
    header = ["Rows of", "trained on", "scored", "left out of these: they share a group or a text with training"]
    return "\n\n".join(part for part in (tables.table(header, lines), tables.bullets(notes)) if part)


def _not_computed(study: Study) -> str:
    """Say what is wanted for the rest."""
    notes = [f"Columns of {ways} labels are not computed: {why}" for ways, why in study.absent.items()]
    notes += [f"{name} is not asked: HFCF_LLM_URL names no endpoint." for name in study.unasked]
    return tables.bullets(notes)


def people(study: Study) -> str:
    """Say by which commands the columns of Table 4 that people fill are made."""
    names = [file_of(place) for place in study.places if study.places[place][1] in TASKS[3:]]
    if not names:
        return "No model writes structures."
    name = names[0]
    return (
        f"`{ANSWERS}/` holds the structures that models wrote, as rows, and `{ANSWERS}/gold.jsonl` those of the test rows. Fifty "
        "rows go to three raters:\n\n"
        f"```\nhfcf rate export checkwhy_validity 'MODEL={ANSWERS}/{name}' --out validity\n"
        f"hfcf rate export checkwhy_preference 'MODEL={ANSWERS}/{name}' --sources {ANSWERS}/gold.jsonl --out preference\n"
        "hfcf rate import validity\nhfcf rate import preference\n```"
    )


def _provenance(study: Study, cells: Sequence[Cell], command: str) -> str:
    recipe, spent = study.recipe, sum(cell["cpu_seconds"] for cell in cells)
    lines = [f"Command: `{command}`.", f"All {len(cells)} cells took {spent / 60:.1f} CPU minutes, training included."]
    for name, model in recipe.models.items():
        given = {key: getattr(model, key) for key in type(model).model_fields if key in model.model_fields_set and key != "model"}
        given = {"model": None if model.model is None else named(model.model), **given}
        trained = sorted({cell["train_rows"] for cell in cells if cell["method"] == name and cell["train_rows"]})
        rows = f", trained on {' or '.join(map(str, trained))} rows" if trained else ""
        lines.append(f"{name}{rows}: {json.dumps(given, ensure_ascii=False)}.")
    return tables.bullets([*lines, recipe.paper.about, *recipe.notes])


# --- the structures that models wrote, as rows


def file_of(place: Place) -> str:
    """Return the name of the file of a cell's structures."""
    name, seed, column = place
    return f"{name}, {column}, seed {seed}.jsonl".replace("/", "-").replace(" ", "-").replace(",", "")


def write_answers(study: Study, cells: Sequence[Cell], folder: Path) -> None:
    """Write the structures of each cell of Tasks 3 and 4, and of the test rows, as rows; `hfcf rate export` reads them."""
    for cell in cells:
        place = (cell["method"], cell["seed"], cell["corpus"])
        column = study.places[place][1]
        if column not in TASKS[3:]:
            continue
        rows, seen = shown(study, place)
        lines = []
        for row_id, view, (letter, text) in zip(rows["id"], seen, cell["predicted"], strict=True):
            structure = Structure(()) if text is None else read_answer(text, view, [*LETTERS.values()]).structure
            lines.append(
                {**as_row(row_id, view.claim, structure), "label": LETTERS.get(letter), "program": text, "names": dict(view.ids)}
            )
        write_lines(folder / file_of(place), lines)
        write_lines(folder / "gold.jsonl", (as_row(row["id"], row["claim"], Structure.from_row(row)) for row in study.rows[2].test))


def as_row(row_id: str, claim: str, structure: Structure) -> dict[str, Any]:
    """Return a structure as a row of the pieces that it uses, named in its order: names say nothing of where they come from."""
    used = [name for name in structure.nodes() if name != CLAIM]
    names = {name: f"E{i}" for i, name in enumerate(used, 1)}
    evidence = [{"title": "", "text": structure.texts.get(name, name)} for name in used]
    info = [{"id": names[name], "useful": True, "leaf": name in structure.leaves()} for name in used]
    return {
        "id": row_id, "claim": claim, "evidence": evidence, "evidence_info": info,
        "structure": structure.rename(names).to_columns(),
    }  # fmt: skip
