"""A run on one self-contained HTML page: pairs with what changed in colour, funnel, metrics, every row to search, settings.

The page is made from the run's folder alone, so that it can be made again. Metrics or ratings may be added first, and people who
download the folder from the Hub can also make it.
"""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from hfcf.core.paths import replace_file
from hfcf.hub.render import render
from hfcf.hub.run_folder import list_files, read_run
from hfcf.metrics.label_balance import describe_skew
from hfcf.report.figures import metric_figures
from hfcf.report.page import COMPARISONS, RATINGS, embed_json, flat, hash_script, read_style, read_template, tables
from hfcf.report.rows import LIMIT, page_rows


def report(folder: str | Path, *, limit: int = LIMIT) -> Path:
    """Write `report.html` into the folder of a run, or of a comparison.

    The page makes no request, and data is text in it, never markup: it is escaped where the page is written. A
    Content-Security-Policy names the hash of the page's only script.

    Args:
        folder: what `hfcf run` or `hfcf compare` left. For a run, the page reads `run.json`, the Parquet files that `README.md`
            lists and `recipe.yaml`. It also reads human ratings (`ratings.md`) and the tables of a comparison (`table.md`,
            `rationales.md`, `figure.svg`). Ratings and tables may be in the folder or in a folder right below it.
        limit: rows that the page holds. From more rows, accepted and rejected, an even sample is taken, which the page mentions.

    Returns:
        The page.

    Raises:
        FileNotFoundError: the folder holds neither a run nor a comparison.
        ValueError: a file in it can't be read; the message names it.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "table.md").write_text("# Mine\\n\\n| Method | FEVER |\\n|---|---|\\n| RACE | 71.2 |\\n")
    53
    >>> "<td>71.2</td>" in report(folder).read_text()
    True
    """
    folder = Path(folder)
    recipe = folder / "recipe.yaml"
    compared, run = tables(folder, COMPARISONS), read_run(folder)
    if run is None and not compared:
        raise FileNotFoundError(f"{folder} holds neither run.json nor table.md: give the folder of hfcf run or hfcf compare")
    rows = page_rows(list_files(folder), limit=limit, first=run.get("metrics") or {}, funnel=run.get("funnel") or ()) if run else {}
    script = read_template("report.js")
    page = render(
        "report.html.jinja",
        package="hfcf.report",
        title=str(run["name"] if run else compared[0]["title"]),
        run=run,
        skew=describe_skew((run or {}).get("labels") or {}),
        figures=metric_figures((run or {}).get("metrics") or {}),
        data=Markup(embed_json(rows)),
        shown=len(rows.get("rows", [])),
        left_out=rows["accepted"] + rows["rejected"] - len(rows["rows"]) if run else 0,
        tables=compared,
        ratings=tables(folder, RATINGS),
        settings=flat((run or {}).get("settings") or {}),
        recipe=recipe.read_text(encoding="utf-8") if recipe.is_file() else "",
        style=Markup(read_style()),
        script=Markup(script),
        script_hash=hash_script(script),
    )
    with replace_file(folder / "report.html") as part:
        # Half of a surrogate pair, which a broken source file can hold, is an escape in JSON and has no place in UTF-8.
        part.write_text(page, encoding="utf-8", errors="backslashreplace")
    return folder / "report.html"
