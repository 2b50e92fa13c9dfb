"""`hfcf train`: from a training recipe to a stored model with its scores and its card."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf import corpora
from hfcf.core.contamination import save_seen, seen_rows
from hfcf.core.lock import hold_folder
from hfcf.core.model import SEEN, Model, named
from hfcf.core.model_checks import check_weights
from hfcf.core.preflight import check_disk
from hfcf.core.recipe import RecipeError, apply_changes, locate, parse
from hfcf.core.recipe import command as command_line
from hfcf.core.redact import redact, redact_values
from hfcf.core.splits import divide, group_safe_split
from hfcf.core.system import check_limit
from hfcf.core.task import task_of
from hfcf.core.trainer import evaluate, load_trainer
from hfcf.engines.classifier import Classifier
from hfcf.hub.model_card import model_card
from hfcf.hub.previous_run import RECORD, ExistingResultError, check_result, read_paths, read_record, write_record
from hfcf.pipeline import recipes
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO
from hfcf.training.classifier import classes_of
from hfcf.training.data import drop_overlap, drop_related, load_rows
from hfcf.training.steps import read_steps
from hfcf.training.trainer import CHECKPOINTS, WEIGHTS, remove_checkpoints, trained_model
from hfcf.training.verifier import two_way

log = logging.getLogger(__name__)

CALIBRATION = "calibration"
"""The key of `scores` of a verifier's calibration."""


def train(
    recipe: Mapping[str, Any], out: Path, *, where: str = "the recipe", limit: int | None = None, command: str = "",
    overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run a training recipe; stopped or killed, and run again, it continues from its last checkpoint."""
    check_limit(limit)
    parsed = recipes.parse_train(recipe, where)
    check_disk([out])
    check_weights(parsed.hyperparameters().model, f"{where}: {parsed.start}")
    limit = parsed.limit if limit is None else limit
    content = {**parsed.model_dump(exclude_unset=True), **({} if limit is None else {"limit": limit})}
    command = command or command_line("train", recipe, out, limit=limit)
    with hold_folder(out, command):
        return _train(parsed, content, out, command, limit, overwrite)


def _train(
    parsed: recipes.TrainRecipe, content: dict[str, Any], out: Path, command: str, limit: int | None, overwrite: bool
) -> dict[str, Any]:
    """Train in a folder that this process holds."""
    if check_result(out, content, command, limit=limit, overwrite=overwrite, files=WEIGHTS):
        remove_checkpoints(out)
    elif (out / CHECKPOINTS).exists() and not (out / RECORD).exists():  # the end of the training would remove it
        raise ExistingResultError(
            f"{out / CHECKPOINTS} belongs to no training that hfcf began here: give another folder, or move it"
        )
    training, held_out, dropped = divide_rows(parsed)
    if "label" in training.column_names:  # of all rows: the first rows may lack a label
        parsed = parsed.model_copy(update={"ways": _ways(parsed, training)})
    training = training if limit is None else training.select(range(min(limit, len(training))))
    report: dict[str, Any] = {"rows": {"train": len(training), "held_out": len(held_out), "dropped as repeats": dropped}}
    out.mkdir(parents=True, exist_ok=True)
    (out / "scores.json").unlink(missing_ok=True)  # written last: a folder without it is not finished
    write_record(out, content, command)
    save_seen(out, training, parsed.hyperparameters().model)
    start = time.perf_counter()
    scores = _TRAIN[type(parsed)](parsed, training, held_out, out)
    report |= {"training": read_steps(out), "scores": scores}
    report["seconds"] = round(time.perf_counter() - start)
    _write_report(content, parsed, report, command, out)
    return report


def select_rows(recipe: recipes.TrainRecipe) -> tuple[Dataset, int]:
    """Load the rows of a training recipe; return the rows that may be trained on, and the number of dropped repeats."""
    sources = _arguments(recipe.data, recipe.data_dir, split=recipe.split, half=recipe.half, ways=recipe.ways)
    rows, dropped = load_rows(sources, training=True, extra=recipe.columns()), 0
    if recipe.exclude:
        rows, dropped = drop_overlap(rows, load_rows(_arguments(recipe.exclude, recipe.data_dir)))
    kept = two_way(rows) if recipe.ways == 2 else rows
    if left_out := len(rows) - len(kept):
        log.warning("%d of %d rows are not trained on: ways is 2, and they are neither %s nor %s", left_out, len(rows), *LABELS[:2])
    return kept, dropped


def _ways(recipe: recipes.TrainRecipe, rows: Dataset) -> int:
    """Return how many labels a training has: the recipe's number, else that of the rows, of what is added, and of the model."""
    if recipe.ways is not None or not isinstance(recipe, recipes.VerifierRecipe | recipes.StructuresRecipe):
        return recipe.ways or 3
    added = getattr(recipe, "nei", ()) or getattr(recipe, "derive", None)
    return 3 if added or NOT_ENOUGH_INFO in rows["label"] or NOT_ENOUGH_INFO in classes_of(recipe.model) else 2


def divide_rows(recipe: recipes.TrainRecipe) -> tuple[Dataset, Dataset, int]:
    """Load a recipe's rows; return the rows to train on, the held-out rows, and the number that an evaluation set repeats."""
    rows, dropped = select_rows(recipe)
    # Salted: the halves of `half` are chosen with the same seed.
    split = group_safe_split(rows, recipe.held_out, seed=recipe.hyperparameters().seed, salt="held out:")
    return split["train"], split["validation"], dropped


def calibrate_trained(out: Path, changes: Sequence[str] = ()) -> dict[str, Any]:
    """Calibrate a verifier that `train` stored without `calibrate`, on the rows that its recipe holds out; write its card again.

    Args:
        out: its folder, with the recipe.
        changes: "key=value" each, as `--set` takes them: the recipe in the folder has only the last part of a path, so give
            "data_dir=/home/me/fever" here.

    Returns:
        The content of `scores.json` in `out`, with the calibration.

    Raises:
        RecipeError: the recipe in the folder does not train a verifier, or holds out no rows.
        ValueError: the folder has no recipe, or it is calibrated already. Also if the rows that are held out now are not the rows
            that were held out of its training; or see `hfcf.training.calibration.calibrate`.
    """
    if (record := read_record(out)) is None or not (out / "scores.json").is_file():
        raise ValueError(f"{out} holds no finished training: there is no {RECORD} and no scores.json in it")
    command, content = record
    content = {**(apply_changes(content, changes) if changes else content), "calibrate": True}
    parsed = parse(recipes.VerifierRecipe, content, str(out / RECORD))
    report = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    if CALIBRATION in report["scores"]:
        raise ValueError(f"{out} is calibrated already: a second temperature would hide what the first one changed")
    held_out = divide_rows(parsed)[1]
    _check_unseen(held_out, trained_model(parsed.hyperparameters(), out))
    held_out = with_nei(held_out, parsed.nei, parsed.hyperparameters().seed)
    report["scores"] = {**report["scores"], CALIBRATION: _calibrate(parsed, held_out, out)}
    write_record(out, content, command, read_paths(out))
    _write_report(content, parsed, report, command, out)
    return report


def _check_unseen(held_out: Dataset, model: Model) -> None:
    """Raise where a model was trained on rows that its recipe holds out now: the data changed, or how rows are held out."""
    if (seen := seen_rows(held_out, model)) is None:
        raise ValueError(
            f"calibrate: {named(model)} has no record of its training rows ({SEEN}), so no row is known to be held out"
        )
    if any(seen):
        raise ValueError(
            f"calibrate: {named(model)} was trained on the group or a text of {sum(seen)} of the {len(seen)} rows that its recipe "
            "holds out now: train it again with calibrate: true"
        )


def _calibrate(recipe: recipes.TrainRecipe, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.calibration import calibrate

    hp = recipe.hyperparameters()
    return calibrate(trained_model(hp, out), out, held_out, max_length=hp.max_length)


def _write_report(
    content: Mapping[str, Any], recipe: recipes.TrainRecipe, report: Mapping[str, Any], command: str, out: Path
) -> None:
    card = model_card({**content, "ways": recipe.ways}, recipe.hyperparameters(), report, command)
    (out / "README.md").write_text(redact(card, content), encoding="utf-8")
    scores = json.dumps(redact_values(report, content), indent=1, ensure_ascii=False)
    (out / "scores.json").write_text(scores + "\n")


def _train_verifier(recipe: recipes.VerifierRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.calibration import check_held_out
    from hfcf.training.verifier import evaluate_verifier, train_verifier

    hp, labels, calibration = recipe.hyperparameters(), LABELS[: recipe.ways], {}
    training, held_out = (with_nei(rows, recipe.nei, hp.seed) for rows in (training, held_out))
    if recipe.calibrate:
        check_held_out(held_out, labels)  # before hours of training
    train_verifier(training, hp, out, labels=labels)
    if recipe.calibrate:
        calibration = {CALIBRATION: _calibrate(recipe, held_out, out)}
    engines = {"verifier": (Classifier(model=trained_model(hp, out), max_length=hp.max_length), False)}
    if recipe.baselines:
        train_verifier(training, hp, out / "claim-only", labels=labels, claim_only=True)
        engines["claim only"] = (Classifier(model=trained_model(hp, out / "claim-only"), max_length=hp.max_length), True)
    sets = {**_by_corpus(held_out), **load_evaluation_sets(recipe.evaluate, recipe.data_dir, training)}
    return {
        name: {
            f"{ways}-way": {
                model: evaluate_verifier(rows, engine, ways=ways, claim_only=hidden).scores
                for model, (engine, hidden) in engines.items()
            }
            for ways in range(2, len(labels) + 1)
        }
        for name, rows in sets.items()
    } | calibration


def _train_generator(recipe: recipes.GeneratorRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.generator import evaluate_generator, train_generator

    hp = recipe.hyperparameters()
    train_generator(training, hp, out, prefixed=recipe.prefixed)
    if not len(held_out):
        return {}
    return {"held out": evaluate_generator(held_out, trained_model(hp, out), max_length=hp.max_length, prefixed=recipe.prefixed)}


def _train_corrector(recipe: recipes.CorrectorRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.corrector import evaluate_corrector, train_corrector

    hp, ner = recipe.hyperparameters(), recipe.ner.engine()
    scores: dict[str, Any] = {"trained on": {"pairs": train_corrector(training, ner, hp, out, masks=recipe.masks)}}
    model, sets = trained_model(hp, out), _by_corpus(held_out)
    return scores | {name: evaluate_corrector(rows, ner, model, max_length=hp.max_length) for name, rows in sets.items()}


def _train_rewriter(recipe: recipes.RewriterRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.generator import train_texts
    from hfcf.training.rewriter import claim_pairs, evaluate_rewriter

    hp, judge = recipe.hyperparameters(), recipe.judge
    engine = Classifier(model=judge.model, max_length=judge.max_length) if judge else None
    selector = engine if recipe.pairs == "paraphrase" else None  # the corpus marks negative pairs

    pairs_of = partial(claim_pairs, kind=recipe.pairs, judge=selector)
    pairs, held_out_pairs = pairs_of(training), pairs_of(held_out)
    if not len(pairs):
        labels = {"negative": "one supported and one refuted", "paraphrase": "both supported, that the judge takes for equal"}
        raise RecipeError(
            f"there is nothing to train on: no two claims, {labels[recipe.pairs]}, have the same evidence in one group of the "
            f"{len(training)} rows; rows of one case need a group_id in common"
        )
    train_texts(pairs, hp, out)
    others = load_evaluation_sets(recipe.evaluate, recipe.data_dir, training)
    sets = {**_by_corpus(held_out_pairs), **{name: pairs_of(rows) for name, rows in others.items()}}
    scores = {
        name: evaluate_rewriter(rows, trained_model(hp, out), max_length=hp.max_length, judge=engine) for name, rows in sets.items()
    }
    return {"trained on": {"pairs": len(pairs)}, **scores}


def _train_explainer(recipe: recipes.ExplainerRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.explainer import evaluate_explainer, train_explainer

    hp = recipe.hyperparameters()
    train_explainer(training, hp, out, recipe.explainer)
    return {name: evaluate_explainer(rows, hp, out) for name, rows in _by_corpus(held_out).items()}


def _train_masked_lm(recipe: recipes.MaskedLMRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.masked_lm import cloze, collect, evaluate_masked_lm, train_masked_lm

    hp = recipe.hyperparameters()
    excluded = [load_rows(_arguments([source], recipe.data_dir)) for source in recipe.exclude]
    texts, sets, dropped = collect(training, held_out, excluded, wordnet=recipe.wordnet, held_out=recipe.held_out, seed=hp.seed)
    train_masked_lm(texts, hp, out, share=recipe.mask)
    scores: dict[str, Any] = {"sentences": {"train": len(texts), "dropped because an excluded set holds them": dropped}}
    models = {"as shipped": hp.model, "trained": trained_model(hp, out)}
    for name, sentences in sets.items():
        scores[f"held out: {name}"] = {
            label: evaluate_masked_lm(sentences, model, max_length=hp.max_length, seed=hp.seed) for label, model in models.items()
        }
    return {**scores, "cloze": cloze(models, max_length=hp.max_length)}


def _train_relation(recipe: recipes.RelationRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.engines.relation_classifier import RelationClassifier
    from hfcf.training.relation import evaluate_relation, train_relation

    hp = recipe.hyperparameters()
    dev = [recipe.dev.model_copy(update={"name": "dev, which chose the epoch"})] if recipe.dev else []
    chosen_on = load_evaluation_sets(dev, recipe.data_dir, training)
    train_relation(training, hp, out, dev=next(iter(chosen_on.values()), None))
    engine = RelationClassifier(model=trained_model(hp, out), max_length=hp.max_length)
    sets = {**chosen_on, **_by_corpus(held_out), **load_evaluation_sets(recipe.evaluate, recipe.data_dir, training)}
    return {name: evaluate_relation(rows, engine).scores for name, rows in sets.items()}


def _train_model(recipe: recipes.ModelRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    hp, task = recipe.hyperparameters(), task_of(training.features)
    if not task.trainer:
        raise RecipeError(f"train: model: no model of this library answers {task.name} rows")
    trainer, labels = load_trainer(task.trainer), task.class_names(training["label"]) if task.labelled else []
    trainer.train(training, hp, out, labels=labels)
    model = trained_model(hp, out)
    sets = {**_by_corpus(held_out), **load_evaluation_sets(recipe.evaluate, recipe.data_dir, training)}
    ways = recipe.ways if task.labels else None
    return {name: evaluate(rows, model, max_length=hp.max_length, ways=ways).scores for name, rows in sets.items()}


def _train_reader(recipe: recipes.ReaderRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.reader import train_reader
    from hfcf.training.reader_trainer import TRAINER

    hp, sizes = recipe.hyperparameters(), {}
    if clozes := recipe.clozes:
        from hfcf.training.cloze import cloze_questions

        ner = clozes.engine()
        training, held_out = (cloze_questions(rows, ner, seed=hp.seed, words=clozes.words) for rows in (training, held_out))
        sizes = {"trained on": {"clozes": len(training)}}
    train_reader(training, hp, out)
    # With the corpora's own columns: some have aliases of the answers.
    sets = {**_by_corpus(held_out), **load_evaluation_sets(recipe.evaluate, recipe.data_dir, training, None)}
    model = trained_model(hp, out)
    return {**sizes, **{name: TRAINER.evaluate(rows, model, max_length=hp.max_length).scores for name, rows in sets.items()}}


def _train_open_reader(recipe: recipes.OpenReaderRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.open_reader import train_open_reader
    from hfcf.training.reader_trainer import TRAINER

    hp = recipe.open_domain.hyperparameters(recipe.hyperparameters(), recipe.data_dir)
    counts = train_open_reader(training, hp, out)
    sets = {**_by_corpus(held_out), **load_evaluation_sets(recipe.evaluate, recipe.data_dir, training, None)}
    model = trained_model(hp, out)
    scores = {name: TRAINER.evaluate(rows, model, max_length=hp.max_length).scores for name, rows in sets.items()}
    return {"trained on": counts, **scores}


def _train_question_writer(recipe: recipes.QuestionWriterRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.question_writers import evaluate_writer, train_writer

    hp = recipe.hyperparameters()
    train_writer(recipe.train, training, hp, out)
    sets = {**_by_corpus(held_out), **load_evaluation_sets(recipe.evaluate, recipe.data_dir, training, recipe.columns())}
    model = trained_model(hp, out)
    return {name: evaluate_writer(recipe.train, rows, model, max_length=hp.max_length) for name, rows in sets.items()}


def _train_structures(recipe: recipes.StructuresRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.metrics.scores.structures import encoder_of
    from hfcf.training.derived_labels import derive_labels
    from hfcf.training.structures import StructureTrainer, check_classes, train_structures

    hp, derive = recipe.hyperparameters(), recipe.derive
    check_weights(encoder_of(recipe.encoder).model, "encoder")
    sets = {**_by_corpus(held_out), **load_evaluation_sets(recipe.evaluate, recipe.data_dir, training, ways=recipe.ways)}
    if derive:
        training = derive_labels(training, distractors=derive.distractors, seed=hp.seed)
        sets = {name: derive_labels(rows, distractors=derive.distractors, seed=hp.seed) for name, rows in sets.items()}
    ways = recipe.ways if recipe.task == 1 else 2
    for name, rows in sets.items():  # before hours of training
        check_classes(rows["label"], ways, f"evaluate: {name}")
    trainer, scores = StructureTrainer(repaired=recipe.repaired, encoder=recipe.encoder), dict[str, Any]()
    left_out = train_structures(training, hp, out, task=recipe.task, kind=recipe.kind, labels=LABELS[:ways])
    for name, rows in sets.items():
        scores[name] = trainer.evaluate(rows, trained_model(hp, out), max_length=hp.max_length, ways=ways).scores
    if recipe.baselines:
        plain = out / "without-structure"
        # Task 1 also takes rows without a structure: here it learns only from the rows of task 2.
        both = training.select([i for i, steps in enumerate(training["structure"]) if steps])
        train_structures(both, hp, plain, task=1, kind=recipe.kind, labels=LABELS[:2])
        for name, rows in sets.items():
            asked = rows.select([i for i, steps in enumerate(rows["structure"]) if steps])
            result = trainer.evaluate(asked, trained_model(hp, plain), max_length=hp.max_length, ways=2)
            scores[f"{name}, without the structure"] = result.scores
    return {"trained on": {"rows": len(training) - left_out.total(), **left_out}, **scores}


_TRAIN: dict[type[recipes.TrainRecipe], Callable[[Any, Dataset, Dataset, Path], dict[str, Any]]] = {
    recipes.VerifierRecipe: _train_verifier,
    recipes.GeneratorRecipe: _train_generator,
    recipes.CorrectorRecipe: _train_corrector,
    recipes.RewriterRecipe: _train_rewriter,
    recipes.ExplainerRecipe: _train_explainer,
    recipes.MaskedLMRecipe: _train_masked_lm,
    recipes.RelationRecipe: _train_relation,
    recipes.ModelRecipe: _train_model,
    recipes.ReaderRecipe: _train_reader,
    recipes.OpenReaderRecipe: _train_open_reader,
    recipes.QuestionWriterRecipe: _train_question_writer,
    recipes.StructuresRecipe: _train_structures,
}
"""The function that trains and scores a recipe of each kind; it takes the training rows, the held-out rows and the folder."""


def _arguments(
    sources: Sequence[recipes.Source], data_dir: str | None, *, split: str | None = None, half: int | None = None,
    ways: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the arguments of `load_rows` for sources whose folders lie in `data_dir`, with a different split or half if given.

    A corpus that has so many labels in separate files is read from these files, unless its source says otherwise.
    """
    other = {**({"split": split} if split else {}), **({} if half is None else {"half": half})}
    return [
        {
            **corpora.options_of(source.corpus, ways, files=source.data_files is not None),
            **locate(source.arguments(), data_dir),
            **other,
        }
        for source in sources
    ]


def load_evaluation_sets(
    sources: Sequence[recipes.Source], data_dir: str | None, training: Dataset, extra: Sequence[str] | None = (),
    ways: int | None = None,
) -> dict[str, Dataset]:  # fmt: skip
    """Load the rows to score on, of so many labels, without rows that overlap with the training rows."""
    sets: dict[str, Dataset] = {}
    for source in sources:
        name, rows = (
            source.name or corpora.corpus_name(source.corpus),
            load_rows(_arguments([source], data_dir, ways=ways), extra=extra),
        )
        sets[name] = drop_related(rows, training)
        if left_out := len(rows) - len(sets[name]):
            why = "their group or a text of theirs is among the rows to train on"
            log.warning("evaluate: %s: %d of %d rows are left out: %s", name, left_out, len(rows), why)
    return sets


def with_nei(rows: Dataset, names: Sequence[str], seed: int) -> Dataset:
    """Add NEI rows for the corpora that have none."""
    from hfcf.training.verifier import add_nei

    parts = divide(rows, rows["corpus"]).items()
    extended = [add_nei(part, seed=seed) if corpus in names else part for corpus, part in parts]
    return concatenate_datasets(extended) if extended else rows


def _by_corpus(held_out: Dataset) -> dict[str, Dataset]:
    return {f"held out: {corpus}": part for corpus, part in sorted(divide(held_out, held_out["corpus"]).items())}
