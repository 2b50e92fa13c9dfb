"""A self-contained page on which one person reviews rows, and which saves the file that `import_` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from hfcf.hub.render import render
from hfcf.report.page import embed_json, hash_script, read_template
from hfcf.studies.review.protocol import DECISION, FILTER, OF_STRUCTURE
from hfcf.studies.review.version import ROLES, needs_structure

PACKAGE = "hfcf.studies"
SCRIPTS = ("review_rules.js", "review_drawing.js", "review_page.js")


def render_page(entries: Sequence[Mapping[str, Any]], number: int) -> str:
    """Write the page of one person.

    It asks the network for nothing. The legality check and the drawing follow every edit, in the page's own script, by the rules of
    `hfcf.core.structures`; what people type stays text. The page works by keyboard: nodes of the drawing are buttons.
    """
    data = {
        "entries": entries,
        "structured": {entry["id"]: needs_structure(entry["label"], bool(entry["structure"])) for entry in entries},
        # Names that a piece had: a new one under the name of a deleted one would be taken for it.
        "names": {entry["id"]: [piece["id"] for piece in entry["evidence"]] for entry in entries},
        "questions": [{"name": one.name, "asks": one.asks, "answers": list(one.answers.items())} for one in FILTER.questions],
        "roles": ROLES,
        "decision": DECISION,
        "structural": OF_STRUCTURE,
        "file": f"rater-{number}.jsonl",
    }
    script = "\n".join([read_template("report_element.js"), *(read_template(name, PACKAGE) for name in SCRIPTS)])
    return render(
        "review.html.jinja",
        package=PACKAGE,
        protocol=FILTER,
        file=data["file"],
        data=Markup(embed_json(data)),
        style=Markup(read_template("report.css") + read_template("review.css", PACKAGE)),
        script=Markup(script),
        script_hash=hash_script(script),
    )
