"""HTML of a run and of the page around it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from hfcf.app.jobs import Job
from hfcf.core.weights import Weights, size_text, total
from hfcf.hub.render import render
from hfcf.report.page import read_template

EMPTY = '<div class="hfcf" data-state="empty"><p class="empty">Press Run: the counterfactuals, what each stage did and \
the rejected candidates appear here.</p></div>'


def show(job: Job) -> tuple[str, str]:
    """Write a run so far, or its result: what was made, and the stages with what was rejected."""
    seconds = sum(step.elapsed for step in job.steps)
    made, steps = (render(f"{part}.html.jinja", package="hfcf.app", job=job, seconds=seconds) for part in ("made", "steps"))
    return made, steps


def note(text: str) -> str:
    """Write what the page says below an entry."""
    return f'<p class="hfcf-note">{escape(text)}</p>' if text else ""


def downloads(weights: Sequence[Weights]) -> str:
    """Write the table of models that must be downloaded first; "" if there is none."""
    missing = [one for one in weights if one.missing]
    return (
        render("downloads.html.jinja", package="hfcf.app", weights=missing, total=total(missing), size=size_text) if missing else ""
    )


def head() -> str:
    """Return the style of the page: the report's colours and cards, these within `.hfcf`, and the page's own."""
    card = f".hfcf {{\n{read_template('card.css')}}}\n"
    return Markup("<style>{}</style>").format(Markup(read_template("colours.css") + card + read_template("app.css", "hfcf.app")))
