"""The table of trainings: what each kind makes of the rows, how it trains, and how it scores a set of rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf import corpora
from hfcf.core.model import Model
from hfcf.core.model_checks import check_weights
from hfcf.core.recipe import RecipeError, check_distinct, locate
from hfcf.core.splits import divide
from hfcf.core.task import task_of
from hfcf.core.trainer import evaluate, load_trainer
from hfcf.engines.classifier import Classifier
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.metrics.scores.structures import encoder_of
from hfcf.pipeline import recipes
from hfcf.pipeline import training_recipes as kinds
from hfcf.tasks.verification import LABELS
from hfcf.training.calibration import calibrate
from hfcf.training.cloze import cloze_questions
from hfcf.training.corrector import evaluate_corrector, train_corrector
from hfcf.training.data import drop_related, load_rows
from hfcf.training.derived_labels import derive_labels
from hfcf.training.explainer import evaluate_explainer, train_explainer
from hfcf.training.generator import evaluate_generator, train_generator, train_texts
from hfcf.training.masked_lm import cloze, collect, evaluate_masked_lm, train_masked_lm
from hfcf.training.open_reader import train_open_reader
from hfcf.training.question_writers import evaluate_writer, train_writer
from hfcf.training.reader import train_reader
from hfcf.training.reader_trainer import TRAINER as READER
from hfcf.training.relation import evaluate_relation, train_relation
from hfcf.training.rewriter import claim_pairs, evaluate_rewriter
from hfcf.training.structures import StructureTrainer, check_classes, train_structures
from hfcf.training.trainer import trained_model
from hfcf.training.verifier import add_nei, evaluate_verifier, train_verifier

log = logging.getLogger(__name__)

DEV = "dev, which chose the epoch"
Scores = dict[str, Any]


@dataclass
class Rows:
    """The rows of a training.

    Args:
        training: the rows to train on.
        held_out: the rows that are held out.
        sets: the rows to score on, by name: the held-out rows of each corpus, then the recipe's `evaluate`.
        counts: what `scores.json` says of the rows.
    """

    training: Dataset
    held_out: Dataset
    sets: dict[str, Dataset]
    counts: Scores = field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """A kind of training.

    Args:
        train: trains on rows in a folder; returns entries of `scores.json` such as "trained on".
        evaluate: scores the model in the folder on a set; gets the set's name and returns {name: scores}.
        rows: gets the rows to train on and the held-out rows, and returns what is trained and scored on.
        usable: returns those of the rows to train on that it can learn from.
    """

    train: Callable[[Any, Rows, Path], Scores]
    evaluate: Callable[[Any, str, Dataset, Path], Scores]
    rows: Callable[[Any, Dataset, Dataset], Rows]
    usable: Callable[[Any, Dataset], Dataset] = lambda _, rows: rows


def read_rows(
    recipe: Any, training: Dataset, held_out: Dataset, *, change: Callable[[Any, Dataset], Dataset] = lambda _, rows: rows,
    sets_too: bool = False, extra: Sequence[str] | None = (), ways: bool = False,
) -> Rows:  # fmt: skip
    """Return the rows of a training.

    Args:
        recipe: the recipe.
        training: the rows to train on.
        held_out: the rows that are held out.
        change: what the training makes of the rows to train on and the held-out rows.
        sets_too: whether it is also made of the rows of `evaluate`.
        extra: columns that the rows of `evaluate` keep; None: all.
        ways: whether the rows of `evaluate` have as many labels as the recipe.
    """
    sources = getattr(recipe, "evaluate", ())
    sets = load_evaluation_sets(sources, recipe.data_dir, training, extra, recipe.ways if ways else None)
    training, held_out = change(recipe, training), change(recipe, held_out)
    by_corpus = {f"held out: {corpus}": part for corpus, part in sorted(divide(held_out, held_out["corpus"]).items())}
    return Rows(
        training, held_out, {**by_corpus, **{name: change(recipe, rows) if sets_too else rows for name, rows in sets.items()}}
    )


def source_arguments(
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
    names = [source.name or corpora.corpus_name(source.corpus) for source in sources]
    check_distinct(names, "evaluate")
    for name, source in zip(names, sources, strict=True):
        rows = load_rows(source_arguments([source], data_dir, ways=ways), extra=extra)
        sets[name] = drop_related(rows, training)
        if left_out := len(rows) - len(sets[name]):
            why = "their group or a text of theirs is among the rows to train on"
            log.warning("evaluate: %s: %d of %d rows are left out: %s", name, left_out, len(rows), why)
    return sets


def with_nei(rows: Dataset, names: Sequence[str], seed: int) -> Dataset:
    """Add NEI rows for the corpora that have none."""
    parts = divide(rows, rows["corpus"]).items()
    extended = [add_nei(part, seed=seed) if corpus in names else part for corpus, part in parts]
    return concatenate_datasets(extended) if extended else rows


def _model(recipe: kinds.TrainRecipe, out: Path) -> Model:
    return trained_model(recipe.hyperparameters(), out)


def _length(recipe: kinds.TrainRecipe) -> int:
    return recipe.hyperparameters().max_length


def _train_verifier(recipe: kinds.VerifierRecipe, rows: Rows, out: Path) -> Scores:
    hp, labels = recipe.hyperparameters(), LABELS[: recipe.ways]
    train_verifier(rows.training, hp, out, labels=labels)
    scores: Scores = {}
    if recipe.calibrate:
        scores["calibration"] = calibrate(_model(recipe, out), out, rows.held_out, max_length=hp.max_length)
    if recipe.baselines:
        train_verifier(rows.training, hp, out / "claim-only", labels=labels, claim_only=True)
    return scores


def _evaluate_verifier(recipe: kinds.VerifierRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    folders = {"verifier": (out, False), **({"claim only": (out / "claim-only", True)} if recipe.baselines else {})}
    engines = {
        model: (Classifier(model=_model(recipe, folder), max_length=_length(recipe)), hidden)
        for model, (folder, hidden) in folders.items()
    }
    return {
        name: {
            f"{ways}-way": {
                model: evaluate_verifier(rows, engine, ways=ways, claim_only=hidden).scores
                for model, (engine, hidden) in engines.items()
            }
            for ways in range(2, len(LABELS[: recipe.ways]) + 1)
        }
    }


def _train_generator(recipe: kinds.GeneratorRecipe, rows: Rows, out: Path) -> Scores:
    train_generator(rows.training, recipe.hyperparameters(), out, prefixed=recipe.prefixed)
    return {}


def _evaluate_generator(recipe: kinds.GeneratorRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    return {name: evaluate_generator(rows, _model(recipe, out), max_length=_length(recipe), prefixed=recipe.prefixed)}


def _train_corrector(recipe: kinds.CorrectorRecipe, rows: Rows, out: Path) -> Scores:
    pairs = train_corrector(rows.training, recipe.ner.engine(), recipe.hyperparameters(), out, masks=recipe.masks)
    return {"trained on": {"pairs": pairs}}


def _evaluate_corrector(recipe: kinds.CorrectorRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    return {name: evaluate_corrector(rows, recipe.ner.engine(), _model(recipe, out), max_length=_length(recipe))}


def _judge(recipe: kinds.RewriterRecipe) -> Classifier | None:
    return Classifier(model=recipe.judge.model, max_length=recipe.judge.max_length) if recipe.judge else None


def _pair_claims(recipe: kinds.RewriterRecipe, rows: Dataset) -> Dataset:
    # The corpus marks negative pairs.
    return claim_pairs(rows, kind=recipe.pairs, judge=_judge(recipe) if recipe.pairs == "paraphrase" else None)


def _train_rewriter(recipe: kinds.RewriterRecipe, rows: Rows, out: Path) -> Scores:
    if not len(rows.training):
        labels = {"negative": "one supported and one refuted", "paraphrase": "both supported, that the judge takes for equal"}
        raise RecipeError(
            f"there is nothing to train on: no two claims, {labels[recipe.pairs]}, have the same evidence in one group of the "
            "rows; rows of one case need a group_id in common"
        )
    train_texts(rows.training, recipe.hyperparameters(), out)
    return {"trained on": {"pairs": len(rows.training)}}


def _evaluate_rewriter(recipe: kinds.RewriterRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    return {name: evaluate_rewriter(rows, _model(recipe, out), max_length=_length(recipe), judge=_judge(recipe))}


def _train_explainer(recipe: kinds.ExplainerRecipe, rows: Rows, out: Path) -> Scores:
    train_explainer(rows.training, recipe.hyperparameters(), out, recipe.explainer)
    return {}


def _evaluate_explainer(recipe: kinds.ExplainerRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    return {name: evaluate_explainer(rows, recipe.hyperparameters(), out)}


def _collect_sentences(recipe: kinds.MaskedLMRecipe, training: Dataset, held_out: Dataset) -> Rows:
    excluded = [load_rows(source_arguments([source], recipe.data_dir)) for source in recipe.exclude]
    seed = recipe.hyperparameters().seed
    texts, sets, dropped = collect(training, held_out, excluded, wordnet=recipe.wordnet, held_out=recipe.held_out, seed=seed)
    counts = {"sentences": {"train": len(texts), "dropped because an excluded set holds them": dropped}}
    parts = {f"held out: {name}": Dataset.from_dict({"text": list(sentences)}) for name, sentences in sets.items()}
    return Rows(Dataset.from_dict({"text": list(texts)}), held_out, parts, counts)


def _train_masked_lm(recipe: kinds.MaskedLMRecipe, rows: Rows, out: Path) -> Scores:
    hp = recipe.hyperparameters()
    train_masked_lm(list(rows.training["text"]), hp, out, share=recipe.mask)
    models = {"as shipped": hp.model, "trained": _model(recipe, out)}
    return {"cloze": cloze(models, max_length=hp.max_length)}


def _evaluate_masked_lm(recipe: kinds.MaskedLMRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    hp = recipe.hyperparameters()
    models = {"as shipped": hp.model, "trained": _model(recipe, out)}
    sentences = list(rows["text"])
    return {
        name: {
            label: evaluate_masked_lm(sentences, model, max_length=hp.max_length, seed=hp.seed) for label, model in models.items()
        }
    }


def _relation_rows(recipe: kinds.RelationRecipe, training: Dataset, held_out: Dataset) -> Rows:
    dev = [recipe.dev.model_copy(update={"name": DEV})] if recipe.dev else []
    chosen_on = load_evaluation_sets(dev, recipe.data_dir, training)
    if not all(map(len, chosen_on.values())):
        raise RecipeError("dev: no row is left to choose the epoch by: take rows that are not trained on, or leave dev out")
    rows = read_rows(recipe, training, held_out)
    return Rows(rows.training, rows.held_out, {**chosen_on, **rows.sets})


def _train_relation(recipe: kinds.RelationRecipe, rows: Rows, out: Path) -> Scores:
    train_relation(rows.training, recipe.hyperparameters(), out, dev=rows.sets.get(DEV))
    return {}


def _evaluate_relation(recipe: kinds.RelationRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    return {name: evaluate_relation(rows, RelationClassifier(model=_model(recipe, out), max_length=_length(recipe))).scores}


def _train_model(recipe: kinds.ModelRecipe, rows: Rows, out: Path) -> Scores:
    task = task_of(rows.training.features)
    if not task.trainer:
        raise RecipeError(f"train: model: no model of this library answers {task.name} rows")
    labels = task.class_names(rows.training["label"]) if task.labelled else []
    load_trainer(task.trainer).train(rows.training, recipe.hyperparameters(), out, labels=labels)
    return {}


def _usable_by_model(recipe: kinds.ModelRecipe, rows: Dataset) -> Dataset:
    trainer = task_of(rows.features).trainer
    usable = getattr(load_trainer(trainer), "usable", None) if trainer else None
    return usable(rows, recipe.hyperparameters()) if usable else rows


def _evaluate_model(recipe: kinds.ModelRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    ways = recipe.ways if task_of(rows.features).labels else None
    return {name: evaluate(rows, _model(recipe, out), max_length=_length(recipe), ways=ways).scores}


def _make_clozes(recipe: kinds.ReaderRecipe, rows: Dataset) -> Dataset:
    if recipe.clozes is None:
        return rows
    return cloze_questions(rows, recipe.clozes.engine(), seed=recipe.hyperparameters().seed, words=recipe.clozes.words)


def _train_reader(recipe: kinds.ReaderRecipe, rows: Rows, out: Path) -> Scores:
    train_reader(rows.training, recipe.hyperparameters(), out, unanswerable=recipe.unanswerable)
    return {"trained on": {"clozes": len(rows.training)}} if recipe.clozes else {}


def _usable_by_reader(recipe: kinds.ReaderRecipe, rows: Dataset) -> Dataset:
    return rows if recipe.clozes else READER.usable(rows, recipe.hyperparameters())


def _train_open_reader(recipe: kinds.OpenReaderRecipe, rows: Rows, out: Path) -> Scores:
    hp = recipe.open_domain.hyperparameters(recipe.hyperparameters(), recipe.data_dir)
    return {"trained on": train_open_reader(rows.training, hp, out)}


def _evaluate_reader(recipe: kinds.ReaderRecipe | kinds.OpenReaderRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    return {name: READER.evaluate(rows, _model(recipe, out), max_length=_length(recipe)).scores}


def _train_writer(recipe: kinds.QuestionWriterRecipe, rows: Rows, out: Path) -> Scores:
    train_writer(recipe.train, rows.training, recipe.hyperparameters(), out)
    return {}


def _evaluate_writer(recipe: kinds.QuestionWriterRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    return {name: evaluate_writer(recipe.train, rows, _model(recipe, out), max_length=_length(recipe))}


def _derive(recipe: kinds.StructuresRecipe, rows: Dataset) -> Dataset:
    if recipe.derive is None:
        return rows
    return derive_labels(rows, distractors=recipe.derive.distractors, seed=recipe.hyperparameters().seed)


def _with_structure(rows: Dataset) -> Dataset:
    return rows.select([i for i, steps in enumerate(rows["structure"]) if steps])


def _train_structures(recipe: kinds.StructuresRecipe, rows: Rows, out: Path) -> Scores:
    hp, ways = recipe.hyperparameters(), _ways_of_task(recipe)
    check_weights(encoder_of(recipe.encoder).model, "encoder")
    for name, part in rows.sets.items():  # before hours of training
        check_classes(part["label"], ways, f"evaluate: {name}")
    left_out = train_structures(rows.training, hp, out, task=recipe.task, kind=recipe.kind, labels=LABELS[:ways])
    if recipe.baselines:
        # Task 1 also takes rows without a structure: here it learns only from the rows of task 2.
        both = _with_structure(rows.training)
        train_structures(both, hp, out / "without-structure", task=1, kind=recipe.kind, labels=LABELS[:2])
    return {"trained on": {"rows": len(rows.training) - left_out.total(), **left_out}}


def _ways_of_task(recipe: kinds.StructuresRecipe) -> int:
    return (recipe.ways or 2) if recipe.task == 1 else 2


def _evaluate_structures(recipe: kinds.StructuresRecipe, name: str, rows: Dataset, out: Path) -> Scores:
    trainer, length = StructureTrainer(repaired=recipe.repaired, encoder=recipe.encoder), _length(recipe)
    scores = {name: trainer.evaluate(rows, _model(recipe, out), max_length=length, ways=_ways_of_task(recipe)).scores}
    if recipe.baselines:
        model = _model(recipe, out / "without-structure")
        scores[f"{name}, without the structure"] = trainer.evaluate(_with_structure(rows), model, max_length=length, ways=2).scores
    return scores


def _add_nei(recipe: kinds.VerifierRecipe, rows: Dataset) -> Dataset:
    return with_nei(rows, recipe.nei, recipe.hyperparameters().seed)


def _writer_rows(recipe: kinds.QuestionWriterRecipe, training: Dataset, held_out: Dataset) -> Rows:
    return read_rows(recipe, training, held_out, extra=recipe.columns())


# The corpora's own columns of questions stay: some have aliases of the answers.
_READER_ROWS = partial(read_rows, change=_make_clozes, extra=None)
TRAININGS: Mapping[type[kinds.TrainRecipe], Training] = {
    kinds.VerifierRecipe: Training(_train_verifier, _evaluate_verifier, partial(read_rows, change=_add_nei)),
    kinds.GeneratorRecipe: Training(_train_generator, _evaluate_generator, read_rows),
    kinds.CorrectorRecipe: Training(_train_corrector, _evaluate_corrector, read_rows),
    kinds.RewriterRecipe: Training(_train_rewriter, _evaluate_rewriter, partial(read_rows, change=_pair_claims, sets_too=True)),
    kinds.ExplainerRecipe: Training(_train_explainer, _evaluate_explainer, read_rows),
    kinds.MaskedLMRecipe: Training(_train_masked_lm, _evaluate_masked_lm, _collect_sentences),
    kinds.RelationRecipe: Training(_train_relation, _evaluate_relation, _relation_rows),
    kinds.ModelRecipe: Training(_train_model, _evaluate_model, read_rows, _usable_by_model),
    kinds.ReaderRecipe: Training(_train_reader, _evaluate_reader, _READER_ROWS, _usable_by_reader),
    kinds.OpenReaderRecipe: Training(_train_open_reader, _evaluate_reader, partial(read_rows, extra=None)),
    kinds.QuestionWriterRecipe: Training(_train_writer, _evaluate_writer, _writer_rows),
    kinds.StructuresRecipe: Training(
        _train_structures, _evaluate_structures, partial(read_rows, change=_derive, sets_too=True, ways=True)
    ),
}
"""How each kind of recipe is trained and scored."""
