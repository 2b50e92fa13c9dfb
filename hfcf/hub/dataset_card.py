"""Write the card of a counterfactual set from its run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCardData

from hfcf.core.recipe import command as command_line
from hfcf.core.recipe import resolve_folder
from hfcf.core.schema import TOKENS
from hfcf.core.task import get_task
from hfcf.corpora import builder_class, names
from hfcf.hub.ratings import describe_models, describe_rating
from hfcf.hub.render import citation, render
from hfcf.hub.source import list_names
from hfcf.metrics import is_published
from hfcf.metrics import names as metric_names
from hfcf.metrics.label_balance import describe_skew
from hfcf.systems import system_class, systems

SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")
"""The Hub's size categories."""
OWN = ("jsonl", "csv", "parquet", "relations")
"""Corpora of a user's own rows, whose language is unknown."""
NOT_REPUBLISHED = "These rows, and counterfactuals of them, must not be republished: they are for holders of the corpus's licence"
"""A sentence of the card of every set whose corpus has such a licence; `republish_key` holds the same for programs."""


def dataset_card(
    *, name: str, command: str, corpus: Mapping[str, Any], configs: Sequence[Mapping[str, Any]], empty: Sequence[str],
    run: Mapping[str, Any], examples: Sequence[Mapping[str, Any]], files: Any = None,
) -> str:  # fmt: skip
    """Write the front matter that the Hub reads, and the text for readers."""
    stated = run["corpus"] in names() and corpus["title"] != builder_class(run["corpus"]).INFO.title  # in a SOURCE.yaml
    is_users = (run["corpus"] in OWN or corpus.get("release") == "yours") and not stated
    task = get_task(run["task"])
    system, flips = _describe_system(run["system"])
    if inputs := [Path(one).name or one for one in list_names(files) if not resolve_folder(one)] if is_users else []:
        # The user's recipe is not in the repository; `recipe.yaml` is, with every setting.
        command = command_line("run", {}, name, limit=run.get("limit"))
    front = DatasetCardData(
        pretty_name=name, license=corpus["licence"] or "unknown", language=None if is_users else [corpus.get("language") or "en"],
        task_categories=list(task.hub.categories), task_ids=list(task.hub.ids),
        tags=["counterfactual", "data-augmentation", task.hub.tag, "hfcf", f"hfcf-{run['system']}"],
        size_categories=[next((name for digits, name in enumerate(SIZES, 3) if run["counterfactuals"] < 10**digits), SIZES[-1])],
        # A corpus that is not on the Hub is named as in this library.
        source_datasets=["original" if stated else corpus["hub_id"] or f"extended|other-{run['corpus']}"],
        **republish_key(corpus.get("republish", True)), configs=list(configs),
    )  # fmt: skip
    return render(
        "dataset_card.md.jinja", front=front.to_yaml() + "\n", name=name, command=command, corpus=corpus, run=run, empty=empty,
        examples=examples, columns=list(task.features), outcome=task.outcome_name,
        changes=task.change_names, shared=task.shared,
        tokenised=TOKENS in task.columns.values(), not_republished=NOT_REPUBLISHED,
        is_users=is_users, system=system, flips=flips, inputs=inputs,
        splits=[file["split"] for config in configs if config["config_name"] == "default" for file in config["data_files"]],
        metrics=metrics_table(run.get("metrics") or {}, run.get("models") or {}), citation=citation(),
        flip_rate=describe_flip_rate(run), decoys=describe_decoys(run),
        rating=describe_rating(run["system"], run["preset"], run.get("settings")),
        ran=describe_models((run.get("models") or {}).values()),
        skew=describe_skew(run.get("labels") or {}),
    )  # fmt: skip


def describe_flip_rate(run: Mapping[str, Any]) -> str:
    """Say how many counterfactuals have their label according to a model that had no part in making them."""
    what = "Flip rate by an independent verifier"
    flipped = (((run.get("metrics") or {}).get("flip_rate") or {}).get("after") or {}).get("flipped") or {}
    if "yes" not in flipped:
        return f"{what}: none was asked. The recipe's metrics name one, `flip_rate: {{verifier: MODEL}}`."
    unread = flipped.get("null", 0)
    rest = f"; {unread:,} that it could not read {'is' if unread == 1 else 'are'} not counted" if unread else ""
    name = (run.get("models") or {}).get("flip_rate.verifier", "of unknown name")
    return f"{what} (`{name}`): {flipped['yes']:,} of {flipped['n']:,}{rest}."


def describe_decoys(run: Mapping[str, Any]) -> str:
    """Say how often the judges accept a label that is known to be wrong, and what that says of a label; "" if none was shown."""
    decoys = run.get("decoys") or {}
    if not decoys.get("shown"):
        return ""
    wrong, right = decoys["wrong_accepted"], decoys["right_accepted"]
    text = (
        f"False acceptance of the judges: {_percent(decoys['false_acceptance'])}. {decoys['shown']:,} source rows were shown to "
        f"them with a wrong label, on purpose: they accepted {wrong:,}, and with the right label {right:,}."
    )
    if decoys["precision"] is None:
        return text
    return (
        f"{text} Label precision: {_percent(decoys['precision'])}, if as many wrong as right labels reach them. The sources are "
        "texts that the system did not edit: on edited texts judges may do worse."
    )


def _percent(share: Mapping[str, float]) -> str:
    low, value, high = (f"{100 * share[name]:.0f}" for name in ("low", "share", "high"))
    return f"{value} % (95 % interval {low}–{high} %)"


def _describe_system(name: str) -> tuple[str, bool]:
    """Return the name of a system's class, and whether its counterfactuals should have a different label from their source."""
    if name not in systems():
        return name, True
    system = system_class(name)
    return system.__name__, system.flips


def republish_key(allowed: bool) -> dict[str, Any]:
    """Return this library's key of a card's front matter that forbids republishing the rows; empty when it is allowed."""
    return {} if allowed else {"republish": False}


def metrics_table(metrics: Mapping[str, Any], models: Mapping[str, str] | None = None) -> list[tuple[str, str, str]]:
    """Turn the metrics in `run.json` into rows (metric, of the counterfactuals, of all candidates).

    A distribution is shown by its mean or share, with the number of rows that have a value when some rows have none. Metrics of
    whole sets (not `is_published`) are left out.
    """
    rows: dict[str, dict[str, str]] = {}
    for name, sides in metrics.items():
        if name in metric_names() and not is_published(name):
            continue
        by = [model for which, model in (models or {}).items() if which.startswith(f"{name}.")]
        named = f"{name} ({', '.join(by)})" if by else name
        for side in ("after", "before"):
            for path, text in _format(sides.get(side) or {}, (named,)):
                rows.setdefault(", ".join(path), {})[side] = text
    return [(metric, texts.get("after", ""), texts.get("before", "")) for metric, texts in rows.items()]


def _format(summary: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in summary.items():
        if isinstance(value, Mapping) and key != "histogram":
            yield from _format(value, (*path, key))
    some = f" ({summary['n']:,} of {summary['n'] + summary['null']:,} rows)" if summary.get("null") else ""
    shown = {key: summary[key] for key in ("mean", "share") if key in summary} if "n" in summary else summary
    for key, value in shown.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*path, str(key)), f"{round(value, 4):,}{some}"
