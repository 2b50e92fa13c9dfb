"""The page: a form, a system and its settings for each task, and what a run did."""

# Not `from __future__ import annotations`: Gradio reads the annotations of handlers, and is imported when it is needed.

import shutil
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hfcf.app import choices, export, forms, run
from hfcf.app.jobs import Desk, Job
from hfcf.app.log import say, to_file
from hfcf.app.show import EMPTY, downloads, head, note, show
from hfcf.core.task import Task

if TYPE_CHECKING:
    import gradio as gr

TICK = 0.2
"""Seconds between two looks at a run."""
_FONTS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif"]


def launch(*, preset: str, host: str, port: int | None, quiet: bool = False, block: bool = True) -> "gr.Blocks":
    """Serve the page; see `hfcf.app.serve`. Without `block` it returns while a thread serves."""
    to_file()
    page = build(preset)
    page.queue(api_open=False, max_size=32).launch(
        server_name=host, server_port=port, share=False, quiet=quiet, prevent_thread_lock=not block, theme=theme(), head=head(),
        footer_links=[], show_error=False, run_history=False, ssr_mode=False, mcp_server=False, enable_monitoring=False,
    )  # fmt: skip
    return page


def theme() -> "gr.themes.Base":
    """Return Gradio's plain theme with the fonts of the machine and the colours of the report."""
    import gradio as gr

    plain = gr.themes.Base(
        primary_hue=gr.themes.colors.blue, neutral_hue=gr.themes.colors.slate, font=_FONTS, font_mono=["ui-monospace", "monospace"],
        radius_size=gr.themes.sizes.radius_md, text_size=gr.themes.sizes.text_md,
    )  # fmt: skip
    return plain.set(
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

    desk = Desk()
    with gr.Blocks(title="hfcf: counterfactual data", analytics_enabled=False, delete_cache=(3600, 3600), fill_width=False) as page:
        gr.HTML(
            '<div class="hfcf-head"><h1>hfcf</h1><p>Paste a row, choose a system, and see what each of its stages does with it: '
            "what it marks, writes and rejects.</p></div>",
            apply_default_css=False,
            elem_classes="hfcf-out",
        )
        # Claims first, as in the tables of the papers.
        for task in reversed(forms.tasks_with_forms()):
            with gr.Tab(task.form[0].title, elem_id=f"tab-{task.name}"):
                _tab(task, preset, desk)

        # Gradio passes a request to functions that name its type, not to partial functions.
        def leave(request: gr.Request) -> None:
            desk.leave(str(request.session_hash))

        page.unload(leave)
    return page


def _tab(task: Task, preset: str, desk: Desk) -> None:
    """Lay out one task, and connect its parts."""
    import gradio as gr

    names = choices.systems_for(task)
    first = names[0]
    presets = choices.presets_for(first, preset)
    rows = len(forms.demo_rows(task.name))
    with gr.Row(equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="hfcf-form"):
            filled = forms.example(task, _first(task))
            entries = [_entry(task, entry, filled[entry.name]) for entry in task.form]
            other = gr.Button("Another example", size="sm")
            with gr.Row():
                system = gr.Dropdown(names, value=first, label="System", min_width=140, elem_id=f"system-{task.name}")
                chosen = gr.Dropdown(presets, value=presets[0], label="Preset", min_width=140, elem_id=f"preset-{task.name}")
            needed = gr.HTML(**_needed(first, presets[0], task, rows), apply_default_css=False, elem_classes="hfcf-out")
            with gr.Accordion("Settings", open=False):
                fields = [gr.Textbox(**one, max_lines=1, min_width=130) for one in _fields(first, presets[0], task)]
                lines = gr.Textbox(
                    label="Other settings", info=f"Lines such as name=value; hfcf list {first} prints the names.", lines=2
                )
            with gr.Row():
                go = gr.Button("Run", variant="primary", elem_id=f"run-{task.name}", min_width=120)
                halt = gr.Button("Stop", interactive=False, elem_id=f"stop-{task.name}", min_width=120)
        with gr.Column(scale=7, min_width=320):
            made = gr.HTML(EMPTY, elem_id=f"result-{task.name}", apply_default_css=False, elem_classes="hfcf-out")
            with gr.Row(visible=False) as downloads:
                ours = gr.DownloadButton("Save with all columns (.jsonl)", size="sm", elem_id=f"rows-{task.name}")
                theirs = gr.DownloadButton("Save as pasted (.jsonl)", size="sm", elem_id=f"pasted-{task.name}")
            steps = gr.HTML("", elem_id=f"steps-{task.name}", apply_default_css=False, elem_classes="hfcf-out")
    number = gr.State(_first(task))
    private: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    other.click(partial(_another, task), number, [number, *entries], **private)
    system.change(partial(_presets, preset), system, chosen, **private).then(
        partial(_choose, task, rows), [system, chosen], [needed, lines, *fields], **private
    )
    chosen.input(partial(_choose, task, rows), [system, chosen], [needed, lines, *fields], **private)
    results = [made, steps, go, halt, downloads, ours, theirs]

    def begin(request: gr.Request) -> list[Any]:
        return _state(desk.open(str(request.session_hash)), True)

    def follow(request: gr.Request, system: str, preset: str, lines: str, *values: str) -> Iterator[list[Any]]:
        yield from _run(task, desk, str(request.session_hash), system, preset, lines, values)

    def stop(request: gr.Request) -> None:
        desk.stop(str(request.session_hash))

    go.click(begin, None, results, queue=False, **private).then(
        follow, [system, chosen, lines, *entries, *fields], results, concurrency_limit=1, concurrency_id="models", **private
    )
    halt.click(stop, None, None, queue=False, **private)


def _first(task: Task) -> int:
    """Return the number of the example that a form holds at first: the second, of which every recipe's system makes something."""
    return min(1, len(forms.demo_rows(task.name)) - 1)


def _entry(task: Task, entry: Any, value: str) -> Any:
    import gradio as gr

    name = f"{entry.name}-{task.name}"
    if entry.choices:
        return gr.Dropdown(list(entry.choices), value=value, label=entry.title, info=entry.hint or None, elem_id=name)
    return gr.Textbox(
        value=value, label=entry.title, info=entry.hint or None, lines=entry.lines, max_lines=max(entry.lines, 12),
        max_length=forms.LONGEST, elem_id=name,
    )  # fmt: skip


def _fields(system: str, preset: str, task: Task) -> list[dict[str, Any]]:
    """Describe the entries of settings; entries that are not needed are hidden."""
    own = choices.shown_settings(system, preset, task)
    made: list[dict[str, Any]] = [
        {"label": setting.name, "value": value, "info": setting.range or setting.type, "visible": True} for setting, value in own
    ]
    return made + [{"label": "", "value": "", "info": "", "visible": False}] * (choices.SHOWN - len(made))


def _needed(system: str, preset: str, task: Task, rows: int) -> dict[str, Any]:
    """Describe the note below the system, hidden where there is nothing to say."""
    text = note(choices.needs(system, preset, task, rows)) + downloads(choices.models(system, preset, task))
    return {"value": text, "visible": bool(text)}


def _another(task: Task, number: int) -> list[Any]:
    number = (number + 1) % len(forms.demo_rows(task.name))
    filled = forms.example(task, number)
    return [number, *(filled[entry.name] for entry in task.form)]


def _presets(preset: str, system: str) -> Any:
    import gradio as gr

    names = choices.presets_for(system, preset)
    return gr.Dropdown(names, value=names[0])


def _choose(task: Task, rows: int, system: str, preset: str) -> list[Any]:
    import gradio as gr

    info = f"Lines such as name=value; hfcf list {system} prints the names."
    needed = _needed(system, preset, task, rows)
    return [gr.HTML(**needed), gr.Textbox(info=info), *(gr.Textbox(**one) for one in _fields(system, preset, task))]


def _state(job: Job, running: bool) -> list[Any]:
    """Return a run, and the buttons for it."""
    import gradio as gr

    buttons = [gr.Button(interactive=not running), gr.Button(interactive=running)]
    return [*show(job), *buttons, gr.Row(visible=False), None, None]


def _run(
    task: Task, desk: Desk, visitor: str, system: str, preset: str, lines: str, values: Sequence[str]
) -> Iterator[list[Any]]:  # fmt: skip
    """Run, and yield the page's results as they come."""
    import gradio as gr

    texts = {entry.name: str(value or "") for entry, value in zip(task.form, values, strict=False)}
    shown = [setting.name for setting, _ in choices.shown_settings(system, preset, task)]
    entries = {name: str(value or "") for name, value in zip(shown, values[len(task.form) :], strict=False)}

    def work(job: Job) -> None:
        settings = choices.read_settings(entries, lines or "")
        run.run(run.Request(task=task.name, texts=texts, system=system, preset=preset, settings=settings), job)

    begun = time.monotonic()
    job = desk.start(visitor, work)
    folder = None
    try:
        yield from _follow(job)
        if job.result is None or not job.result.made:
            yield _state(job, False)
            return
        job.first = time.monotonic() - begun
        folder = export.new_folder()
        try:
            files: Sequence[Any] = export.files(job.result.rows, forms.record_of(task, texts), folder)
        except Exception as error:
            job.error, files = say(error), (None, None)
        written = [gr.DownloadButton(value=str(file) if file else None, visible=bool(file)) for file in files]
        yield [*_state(job, False)[:4], gr.Row(visible=True), *written]
    except Exception as error:  # of the page itself: its buttons must not stay as they are
        job.error, job.result, job.steps = say(error), None, []
        yield _state(job, False)
    finally:
        job.stop.set()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _follow(job: Job) -> Iterator[list[Any]]:
    """Yield a run whenever it has changed or a second has passed, until it ends or is stopped."""
    last: Any = None
    while not job.done.wait(TICK) and not job.stop.is_set():
        now = (job.state, [(step.state, int(step.elapsed)) for step in job.steps])
        if now != last:
            last = now
            yield _state(job, True)
