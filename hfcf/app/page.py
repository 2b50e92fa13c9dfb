"""The page: a form, a system and its settings for each task, and what a run did."""

# Not `from __future__ import annotations`: Gradio reads the annotations of handlers, and is imported when it is needed.

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from markupsafe import Markup, escape

from hfcf.app import run as runs
from hfcf.core.task import Task
from hfcf.corpora.custom.export import to_dataset
from hfcf.hub.render import render
from hfcf.report.page import read_template

if TYPE_CHECKING:
    import gradio as gr

LONGEST = 20_000
"""Characters of an entry that is worked on."""
EMPTY = '<div class="hfcf" data-state="empty"><p class="empty">Press Run: the counterfactuals, what each stage did and \
the rejected candidates appear here.</p></div>'
_FONTS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif"]


def launch(*, preset: str, host: str, port: int | None, quiet: bool = False) -> None:
    """Serve the page; see `hfcf.app.serve`."""
    build(preset).queue(api_open=False, max_size=32).launch(
        server_name=host, server_port=port, share=False, quiet=quiet, theme=theme(), head=head(), footer_links=[], show_error=False,
        run_history=False, ssr_mode=False, mcp_server=False, enable_monitoring=False,
    )  # fmt: skip


def head() -> str:
    """Return the style of the page: the report's colours and cards, these within `.hfcf`, and the page's own."""
    card = f".hfcf {{\n{read_template('card.css')}}}\n"
    return Markup("<style>{}</style>").format(Markup(read_template("colours.css") + card + read_template("app.css", "hfcf.app")))


def theme() -> "gr.themes.Base":
    """Return Gradio's plain theme with the fonts of the machine and the colours of the report."""
    import gradio as gr

    base = gr.themes.Base(
        primary_hue=gr.themes.colors.blue, neutral_hue=gr.themes.colors.slate, font=_FONTS, font_mono=["ui-monospace", "monospace"],
        radius_size=gr.themes.sizes.radius_md, text_size=gr.themes.sizes.text_md,
    )  # fmt: skip
    return base.set(
        body_background_fill="#fbfaf8", body_background_fill_dark="#14171b", body_text_color="#1d242c",
        body_text_color_dark="#e4e8ec", body_text_color_subdued="#59636e", body_text_color_subdued_dark="#a0abb6",
        block_background_fill="#ffffff", block_background_fill_dark="#1b1f24", block_border_color="#e2dfd9",
        block_border_color_dark="#30373f", block_label_text_color="#59636e", block_label_text_color_dark="#a0abb6",
        block_info_text_color="#59636e", block_info_text_color_dark="#a0abb6", block_title_text_color="#1d242c",
        block_title_text_color_dark="#e4e8ec", input_background_fill="#ffffff", input_background_fill_dark="#14171b",
        input_border_color="#a9aeb4", input_border_color_dark="#5a6470", input_placeholder_color="#59636e",
        input_placeholder_color_dark="#a0abb6", button_primary_background_fill="#24598f",
        button_primary_background_fill_hover="#1c4874", button_primary_background_fill_dark="#7db3ec",
        button_primary_background_fill_hover_dark="#a3caf3", button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#14171b", input_border_width="1px", input_border_width_dark="1px", color_accent="#24598f",
        button_secondary_background_fill="#ece9e4", button_secondary_background_fill_hover="#e2dfd9",
        button_secondary_text_color="#1d242c", button_secondary_background_fill_dark="#2a3037",
        button_secondary_background_fill_hover_dark="#30373f", button_secondary_text_color_dark="#e4e8ec",
        background_fill_primary="#ffffff", background_fill_primary_dark="#1b1f24", background_fill_secondary="#fbfaf8",
        background_fill_secondary_dark="#14171b", border_color_primary="#e2dfd9", border_color_primary_dark="#30373f",
        block_label_background_fill_dark="#1b1f24", panel_background_fill_dark="#14171b",
    )  # fmt: skip


def build(preset: str = "offline") -> "gr.Blocks":
    """Make the page, with a tab for each task whose rows a person can write."""
    import gradio as gr

    with gr.Blocks(title="hfcf: counterfactual data", analytics_enabled=False, delete_cache=(3600, 3600), fill_width=False) as page:
        gr.HTML(
            '<div class="hfcf-head"><h1>hfcf</h1><p>Paste a row, choose a system, and see what each of its stages does with it: '
            "what it marks, writes and rejects.</p></div>",
            apply_default_css=False,
            elem_classes="hfcf-out",
        )
        # Claims first, as in the tables of the papers.
        for task in reversed(runs.tasks_with_forms()):
            with gr.Tab(task.form[0].title, elem_id=f"tab-{task.name}"):
                _tab(task, preset)
    return page


def _tab(task: Task, preset: str) -> None:
    """Lay out one task, and connect its parts."""
    import gradio as gr

    names = runs.systems_for(task)
    presets = runs.presets_for(names[0], preset)
    first = min(1, len(runs.demo_rows(task.name)) - 1)  # of which every recipe's system makes something
    filled = runs.example(task, first)
    with gr.Row(equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="hfcf-form"):
            entries = [_entry(task, entry, filled[entry.name]) for entry in task.form]
            other = gr.Button("Another example", size="sm")
            with gr.Row():
                system = gr.Dropdown(names, value=names[0], label="System", min_width=140, elem_id=f"system-{task.name}")
                chosen = gr.Dropdown(presets, value=presets[0], label="Preset", min_width=140, elem_id=f"preset-{task.name}")
            needs = gr.HTML(_needs(task, names[0], presets[0]), apply_default_css=False, elem_classes="hfcf-out")
            with gr.Accordion("Settings", open=False):
                settings = gr.Textbox(
                    runs.write_settings(names[0], presets[0], task), label="Settings", lines=6,
                    info="Lines such as name=value; hfcf list SYSTEM prints the names.",
                )  # fmt: skip
            of = gr.Textbox(runs.owner(names[0], presets[0]), visible=False)
            go = gr.Button("Run", variant="primary", elem_id=f"run-{task.name}", min_width=120)
        with gr.Column(scale=7, min_width=320):
            made = gr.HTML(EMPTY, elem_id=f"result-{task.name}", apply_default_css=False, elem_classes="hfcf-out")
            with gr.Row(visible=False) as downloads:
                rows = gr.DownloadButton("Save with all columns (.jsonl)", size="sm", elem_id=f"rows-{task.name}")
                pasted = gr.DownloadButton("Save as pasted (.jsonl)", size="sm", elem_id=f"pasted-{task.name}")
            steps = gr.HTML("", elem_id=f"steps-{task.name}", apply_default_css=False, elem_classes="hfcf-out")
    number = gr.State(first)
    private: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    other.click(partial(_another, task), number, [number, *entries], **private)
    system.change(partial(_presets, preset), system, chosen, **private).then(
        partial(_choose, task), [system, chosen], [needs, settings, of], **private
    )
    chosen.input(partial(_choose, task), [system, chosen], [needs, settings, of], **private)
    results = [made, steps, go, downloads, rows, pasted]
    go.click(partial(_show, runs.ShownRun(), busy=True), None, results, queue=False, **private).then(
        partial(_run, task),
        [system, chosen, settings, of, *entries],
        results,
        concurrency_limit=1,
        concurrency_id="models",
        **private,
    )


def _entry(task: Task, entry: Any, value: str) -> Any:
    import gradio as gr

    name = f"{entry.name}-{task.name}"
    if entry.choices:
        return gr.Dropdown(list(entry.choices), value=value, label=entry.title, info=entry.hint or None, elem_id=name)
    return gr.Textbox(
        value=value, label=entry.title, info=entry.hint or None, lines=entry.lines, max_lines=max(entry.lines, 12),
        max_length=LONGEST, elem_id=name,
    )  # fmt: skip


def _needs(task: Task, system: str, preset: str) -> str:
    text = runs.describe_needs(system, preset, task)
    return f'<p class="hfcf-note">{escape(text)}</p>' if text else ""


def _another(task: Task, number: int) -> list[Any]:
    number = (number + 1) % len(runs.demo_rows(task.name))
    return [number, *(runs.example(task, number)[entry.name] for entry in task.form)]


def _presets(preset: str, system: str) -> Any:
    import gradio as gr

    names = runs.presets_for(system, preset)
    return gr.Dropdown(names, value=names[0])


def _choose(task: Task, system: str, preset: str) -> list[str]:
    return [_needs(task, system, preset), runs.write_settings(system, preset, task), runs.owner(system, preset)]


def _run(task: Task, system: str, preset: str, lines: str, of: str, *values: str) -> Iterator[list[Any]]:
    """Run, and yield the page's results as they come."""
    preset, lines = runs.settle_fields(task, system, preset, lines or "", of)
    texts = {entry.name: str(value or "") for entry, value in zip(task.form, values, strict=True)}
    for run in runs.run(task, texts, system, preset, lines):
        yield _show(run, busy=True)
    folder = Path(tempfile.mkdtemp(prefix="hfcf-app-"))
    try:
        yield _show(run, busy=False, files=write_files(run.rows, task.read_form(texts), folder) if run.made else ())
    finally:  # Gradio has its own copies
        shutil.rmtree(folder, ignore_errors=True)


def _show(run: runs.ShownRun, *, busy: bool, files: tuple[Path, ...] = ()) -> list[Any]:
    """Return how a run stands, and the buttons for it."""
    import gradio as gr

    parts = [render("run.html.jinja", package="hfcf.app", part=part, run=run) for part in ("made", "steps")]
    buttons = [gr.DownloadButton(value=str(file)) for file in files] or [None, None]
    return [*parts, gr.Button(interactive=not busy), gr.Row(visible=bool(files)), *buttons]


def write_files(rows: Dataset, record: dict[str, Any], folder: Path) -> tuple[Path, ...]:
    """Write counterfactuals as JSON lines: with all their columns, and in the form of the pasted row."""
    files = folder / "counterfactuals.jsonl", folder / "counterfactuals-as-pasted.jsonl"
    rows.to_json(files[0], force_ascii=False)
    Dataset.from_list(to_dataset(rows, like=[record])).to_json(files[1], force_ascii=False)
    return files
