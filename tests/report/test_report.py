"""The report's file, without a browser: what is in it, and that data can't be anything but text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import run_folder
from datasets import Dataset
from markupsafe import escape
from run_folder import EVIL, attacked, measured, published, relation, verification
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.hub.render import render
from hfcf.metrics.shared.summary import summary
from hfcf.report import report
from hfcf.report.figures import metric_figures
from hfcf.report.page import read_style

PARTS = ("pairs", "funnel", "metrics", "rows")


class Page(HTMLParser):
    """The elements of a page, its visible text, and the JSON that it holds."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.tags, self.text, self.data, self.headings = path, [], "", {}, []  # type: ignore[var-annotated]
        self.attributes: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_data(self, data: str) -> None:
        inside = self.tags[-1] if self.tags else ""
        if inside == "script" and data.startswith("{"):
            self.data = json.loads(data)
        elif inside not in ("script", "style"):
            self.text += data


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return attacked(tmp_path)


def test_a_run_writes_its_report_and_the_report_can_be_made_again(tmp_path: Path) -> None:
    found = published(verification(), tmp_path)
    first = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").unlink()
    assert report(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_bytes() == first
    page = Page(tmp_path / "report.html")
    assert page.data["accepted"] == found["counterfactuals"] == 4
    assert page.data["labels"] == ["REFUTES"]
    # A source stands once, with its label and whatever came of it.
    assert [(one["id"], one["label"]) for one in page.data["sources"]] == [("0", "SUPPORTS"), ("1", "SUPPORTS")]
    assert [row["source"] for row in page.data["rows"]] == [0, 0, 1, 1, 0, 1]
    row = page.data["rows"][1]
    assert [row[key] for key in ("id", "label", "change", "reason")] == ["0:made:evidence", "REFUTES", "evidence", None]
    assert list(row["changed"]) == ["1"]
    assert "Founded in <del>1994</del> <ins>2006</ins>: Rome is old." in row["changed"]["1"]
    for part in ("check", "is cut off at N tokens <b>", "hfcf run made", "model.name", "1, 2", "transformers"):
        assert part in page.text


def test_whatever_is_in_the_data_is_text(bad: Path) -> None:
    page = Page(bad / "report.html")
    assert page.tags.count("script") == 2
    assert not {"img", "b", "iframe", "object", "embed", "form"} & {*page.tags} - {"b", "form"}
    assert not [name for name in page.attributes if name.startswith("on")]
    raw = (bad / "report.html").read_text(encoding="utf-8")
    assert "window.pwned = 1</script>" not in raw
    assert "<img src=x" not in raw
    assert 'href="javascript' not in raw
    assert "\u2028" not in raw[raw.index('id="data"') :].split("</script>")[0]
    blocks = [block for source in page.data["sources"] for block in source["blocks"]]
    assert all(any(str(escape(evil)) in block for block in blocks) for evil in EVIL)
    assert not [block for block in blocks if re.search(r"<(?!/?(p|b|ins|del|mark)\b)", block)]
    assert page.text.count(EVIL[0]) > 3


def test_a_policy_lets_nothing_run_but_the_pages_own_script_and_nothing_load(bad: Path) -> None:
    raw = (bad / "report.html").read_text(encoding="utf-8")
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', raw)
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy.replace("&#43;", "+"))
    assert not re.findall(r'(?:src|href)="(?!#|data:)', raw)


def test_metrics_are_shown_if_there_are_some(tmp_path: Path) -> None:
    published(verification(), tmp_path)
    report(tmp_path)
    assert "Metrics" not in Page(tmp_path / "report.html").text
    summary = {"n": 4, "mean": 0.5, "median": 0.5, "histogram": {"edges": [0, 0.5, 1], "counts": [1, 3]}}
    measured(
        tmp_path,
        {"fluency": [30.0, None, 20.0, float("nan")], "minimality": [{"share": n / 4, "distance": n} for n in range(4)]},
        {"fluency": {"after": {**summary, "mean": 25}, "before": summary}, "flips": {"after": {"share": 0.625, "n": 8}},
         "minimality": {"after": {"share": summary, "distance": {**summary, "n": 0}}}, "labels": {"after": {"SUPPORTS": 0.25}}},
    )  # fmt: skip
    page = Page(report(tmp_path))
    assert page.data["measures"] == [
        ["minimality.share", True],
        ["minimality.distance", True],
        ["fluency", True],
        ["verifier", False],
    ]
    assert [row["measures"] for row in page.data["rows"]][1:4] == [[0.25, 1, None, 0], [0.5, 2, 20, 0.5], [0.75, 3, None, 0.5]]
    for part in ("Metrics, before and after", "minimality.share", "flips", "62.5 %", "SUPPORTS", "0.25"):
        assert part in page.text


def test_pairs_come_first_then_the_funnel_then_metrics(tmp_path: Path) -> None:
    published(verification(), tmp_path)
    measured(tmp_path, {"fluency": [1.0, 2.0, 3.0, 4.0]}, {"fluency": {"after": {"n": 4, "share": 0.5}}})
    report(tmp_path)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    for start in ('<section id="', '<a href="#'):
        places = [f'{start}{part}"' for part in PARTS]
        assert [*sorted(places, key=html.index)] == places
    before = html[html.index("<main") : html.index('<section id="pairs"')]
    assert [tag for tag in ("<table", "<section", "<figure") if tag in before] == []


def test_a_reason_with_numbers_has_an_example(tmp_path: Path) -> None:
    published(verification(), tmp_path)
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    [entry] = [entry for entry in run["funnel"] if entry["examples"]]
    [(reason, example)] = entry["examples"].items()
    assert re.sub(r"\d+", "N", example) == reason != example
    assert f"{reason}, such as {example}" in Page(tmp_path / "report.html").text


def test_the_labels_are_bars(tmp_path: Path) -> None:
    told = summary(Dataset.from_dict({"label": ["A", "B", "A", None], "label_balance": [0.67, 0.33, 0.67, None]}))["label_balance"]
    assert told == {"A": {"n": 3, "null": 1, "yes": 2, "share": 0.66667}, "B": {"n": 3, "null": 1, "yes": 1, "share": 0.33333}}
    [figure] = metric_figures({"label_balance": {"after": told}})
    assert [(label, its["share"]) for label, _, its in figure["shares"]] == [("A", 0.66667), ("B", 0.33333)]


def test_a_figures_bars_are_shares_by_width() -> None:
    before = {"n": 4, "median": 1.0, "histogram": {"edges": [0, 1, 2, 4], "counts": [1, 1, 2]}}
    after = {"n": 2, "median": 3.0, "histogram": {"edges": [2, 3, 4], "counts": [2, 0]}}
    [figure] = metric_figures({"m": {"before": before, "after": after}})
    assert figure["bars"]["after"] == [(160.0, 0.0, 80.0, 120.0)]  # all of it within 1
    assert figure["bars"]["before"] == [(0.0, 90.0, 80.0, 30.0), (80.0, 90.0, 80.0, 30.0), (160.0, 90.0, 160.0, 30.0)]
    assert figure["medians"] == {"before": 80.0, "after": 240.0}
    same = {"n": 3, "median": 1.0, "histogram": {"edges": [1, 1], "counts": [3]}}
    assert metric_figures({"m": {"after": same}})[0]["bars"]["after"] == [(0.0, 0.0, 320.0, 120.0)]
    assert metric_figures({"m": {"after": {"n": 0}}, "none": {}, "null": {"after": None}}) == [{"name": "m", "table": [("n", "0")]}]


def test_verdicts_of_one_metric_stand_together() -> None:
    told = {"repeat": {"n": 4, "share": 0.25}, "leak": {"n": 0, "share": None}, "near": {"n": 4, "share": 0}}
    score = {"n": 2, "median": 9, "max": 50, "histogram": {"edges": [0, 10], "counts": [2]}}
    figures = metric_figures({"duplicates": {"after": told}, "flip": {"after": {"flipped": told["near"], "probability": score}}})
    assert [[label for label, _, _ in one.get("shares", [])] for one in figures] == [["repeat", "near"], [], ["flipped"]]
    assert [one["name"] for one in figures] == ["duplicates", "flip.probability", "flip"]
    assert figures[1]["high"] == "10 and more"
    whole = {"labels, whole set": {"after": {"majority": 0.75, "SUPPORTS": {"share": 0.75}}}}
    assert metric_figures(whole)[0]["table"] == [("majority", "0.75"), ("SUPPORTS.share", "0.75")]


def test_a_page_of_too_many_rows_has_an_even_sample_and_says_so(tmp_path: Path) -> None:
    published(verification([f"City {i} is old." for i in range(30)]), tmp_path)
    page = Page(report(tmp_path, limit=20))
    accepted = [row for row in page.data["rows"] if not row["reason"]]
    assert (len(page.data["rows"]), len(accepted), page.data["accepted"], page.data["rejected"]) == (20, 10, 40, 60)
    ids = [int(row["id"].split(":")[0]) for row in accepted]
    assert min(ids) < 5
    assert max(ids) > 25
    assert "20 of 100 rows" in page.text
    assert " rows are in this page" not in Page(report(tmp_path)).text


def test_rows_that_could_not_be_loaded_are_shown_all_the_same(tmp_path: Path) -> None:
    ds = verification().to_list()
    ds[1] |= {"claim": None, "evidence": None, "label": None, "candidates": None, "counterfactuals": []}
    ds[1]["status"] = {"accepted": False, "stage": "load", "reason": "the claim is null"}
    published(verification().from_list(ds, features=verification().features), tmp_path)
    page = Page(tmp_path / "report.html")
    assert (page.data["sources"][1]["id"], page.data["sources"][1]["label"]) == ("1", None)
    assert ["load", "row", "the claim is null", "the claim is null"] in [row["reason"] for row in page.data["rows"]]


def test_sources_of_the_same_texts_stand_apart(tmp_path: Path) -> None:
    rows = verification(["Rome is old."] * 2).to_list()
    rows[1]["label"] = "REFUTES"
    published(verification().from_list(rows, features=verification().features), tmp_path)
    page = Page(tmp_path / "report.html")
    assert [(one["id"], one["label"]) for one in page.data["sources"]] == [("0", "SUPPORTS"), ("1", "REFUTES")]
    assert [row["id"].split(":")[0] for row in page.data["rows"] if row["source"] == 1] == ["1"] * 3


def test_a_rejected_source_has_the_label_that_it_shows(tmp_path: Path) -> None:
    published(verification(["a", "b", "c"]), tmp_path)
    data = Page(tmp_path / "report.html").data
    assert [row["label"] for row in data["rows"] if row["reason"] and row["reason"][1] == "row"] == ["SUPPORTS"]


def test_pairs_are_ranked_by_the_runs_first_metric_before_any_score(tmp_path: Path) -> None:
    published(verification(), tmp_path)
    measured(tmp_path, {"fluency": [1.0] * 4, "similarity": [1.0] * 4}, {"similarity": {}, "fluency": {}})
    assert [name for name, _ in Page(report(tmp_path)).data["measures"]] == ["similarity", "fluency", "verifier"]


def test_ratings_are_read_where_a_rating_wrote_them(tmp_path: Path) -> None:
    published(verification(), tmp_path)
    (tmp_path / "rating").mkdir()
    # Beside the table lies every answer, which is none of the page's.
    (tmp_path / "ratings.json").write_text(json.dumps({"answers": ["an answer"]}))
    assert "Human ratings" not in Page(report(tmp_path)).text
    (tmp_path / "rating" / "ratings.md").write_text("# Human evaluation: race\n\n| method | rows |\n|---|---|\n| mine | 60 |\n")
    text = Page(report(tmp_path)).text
    assert "Human evaluation: race" in text
    assert "an answer" not in text


def test_relations_have_their_entities(tmp_path: Path) -> None:
    published(relation(), tmp_path)
    page = Page(tmp_path / "report.html")
    [source], changed = page.data["sources"][0]["blocks"], page.data["rows"][0]["changed"]["0"]
    for text in (source, changed):
        assert 'The <mark class="head" title="head">eggs</mark> were' in text
        assert '<mark class="tail" title="tail">buckets</mark> .' in text
    assert "<del>moved into</del> <ins>taken out of</ins>" in changed


def test_the_report_of_a_comparison_alone(tmp_path: Path) -> None:
    (tmp_path / "table.md").write_text(
        "# Mine\n\n- one seed\n\n## Accuracy (%)\n\n| Method | FEVER |\n|---|---|\n| RACE | **71.2** |\n"
    )
    (tmp_path / "figure.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 0
    page = Page(tmp_path / "report.html")
    assert page.headings == [1, 2, 3, 4]
    assert "71.2" in page.text
    assert page.tags.count("img") == 1


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda out: (out / "run.json").unlink(), r"run.json.*table.md"),
        (lambda out: (out / "run.json").write_text("{"), r"run\.json.*property name"),
        (lambda out: (out / "run.json").write_text("{}"), r"run\.json.*hfcf run"),
        (lambda out: (out / "README.md").unlink(), r"has no README\.md"),
        (lambda out: next(out.glob("data/default/*")).unlink(), "data/default/"),
    ],
)
def test_a_folder_that_is_no_finished_run_is_named(tmp_path: Path, spoil: Any, told: str) -> None:
    published(verification(), tmp_path)
    spoil(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        report(tmp_path)


def _luminance(colour: str) -> float:
    short = colour.lstrip("#")
    wide = "".join(2 * digit for digit in short) if len(short) == 3 else short
    parts = [int(wide[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


ON = {"page": "ink soft accent", "card": "ink soft accent out-ink", "track": "soft", "in": "in-ink", "out": "out-ink"}
ON |= {"head": "ink soft", "tail": "ink soft", "found": "ink"}
BARS = [(ground, ink) for ground in ("page", "card", "track") for ink in ("accent", "before")]


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(("ground", "ink"), [(ground, ink) for ground, inks in ON.items() for ink in inks.split()])
def test_colours_contrast_enough_to_be_read(mode: str, ink: str, ground: str) -> None:
    assert _contrast(mode, ink, ground) >= 4.5


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(("ground", "ink"), BARS)
def test_bars_stand_out(mode: str, ink: str, ground: str) -> None:
    assert _contrast(mode, ink, ground) >= 3


def _contrast(mode: str, ink: str, ground: str) -> float:
    colours = {name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", read_style())}
    light, dark = sorted((_luminance(colours[name][mode == "dark"]) for name in (ink, ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_page_is_rendered_with_all_values_or_not_at_all() -> None:
    with pytest.raises(Exception, match="undefined"):
        render("report.html.jinja", package="hfcf.report", title="x")
    assert run_folder.HEBREW in EVIL
