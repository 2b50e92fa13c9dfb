"""MICE for relation extraction (Ross, Marasović and Peters 2021), as a baseline of CCG."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from datasets import Dataset, IterableDataset

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.store import save_artifact
from hfcf.core.system import System
from hfcf.engines.continuation import Continuation
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines._shared.relations import CONSISTENT, GRADIENT_TERMS, ProposeRelations, base_model, trainable_rows
from hfcf.systems.baselines.mice.edit import EditMinimally
from hfcf.systems.ccg.editor import learned_editor, train_editor
from hfcf.systems.ccg.gradients import WordGradients
from hfcf.systems.ccg.system import CLASSIFIER, EDITOR, OFFLINE
from hfcf.training.loop import Hyperparameters
from hfcf.training.store import ensure_steps, parse_trainings


@dataclass(frozen=True, kw_only=True)
class MICE(System):
    """Replace the words of the highest gradient by an editor's, as few as make the base model say another relation.

    Stages, in order: `identify_causal_terms`, `propose_relations`, `edit_minimally`, `judge_candidates`. It is "Explaining NLP
    Models via Minimal Contrastive Editing (MiCE)" (Findings of ACL 2021) as CCG compares with it (sections 1, 4.4, A.2): every
    other relation is tried, all editors are the same model, and what is kept is what the base model gives the new relation.

    The base model is the R-BERT that CCG trains as its indicator on the same rows; editor and relations are learned of these, too.

    Readings and deviations, where neither paper tells how MICE goes with entities that stay and with CCG's editor:

    - The editor reads CCG's template, which has entities and relation but not the sentence. So it is asked once for a row and a
      relation, not once for each share; and it is trained on the words that AutoCAD's rule takes (30 %), as a share drawn anew for
      each example, MICE's way, would change nothing but the answers' lengths. The words go, its term stands where the first stood.
    - Words are masked between the entities alone, as in CCG; shares are of these. Gradients are aggregated as in AutoCAD.
    - Of MICE's two searches we take the linear one, up to 55 % of the words in four steps: between two entities stand so few words
      that four steps come to two or three different edits, and the binary one presumes that what flips at a share flips at each
      larger one. One round of editing, of MICE's three.
    - Terms come of a beam search (MICE samples 15; beams give the same rows each time).

    Args:
        indicator: the base model, an R-BERT; None trains one on the rows.
        classifier: how that one is trained.
        editor: a trained editor; None trains one on the rows.
        editor_training: how that one is trained.
        least_steps: see `hfcf.systems.ccg.system.CCG`.
        share: see `EditMinimally`.
        levels: see there.
        words: see there.
        num_beams: see there.
        num_candidates: see there.
        max_new_tokens: see there.
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters in its place.
        max_length: pieces of a sentence that the models read.

    >>> [stage.name for stage in MICE.preset("offline").stages]
    ['identify_causal_terms', 'propose_relations', 'edit_minimally', 'judge_candidates']
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("identify_causal_terms", "propose_relations", "edit_minimally", "judge_candidates")
    presets: ClassVar = {
        "paper": {},
        "offline": {
            **{name: OFFLINE[name] for name in ("classifier", "editor_training", "least_steps")},
            "num_beams": 4,
            "num_candidates": 4,
        },
    }
    trainings: ClassVar = ("classifier", "editor_training")
    engines: ClassVar = (WordGradients, Continuation, RelationClassifier)
    citation: ClassVar[str] = """@inproceedings{ross-etal-2021-explaining,
  title = {Explaining {NLP} Models via Minimal Contrastive Editing ({M}i{CE})},
  author = {Ross, Alexis and Marasovi{\\'c}, Ana and Peters, Matthew},
  booktitle = {Findings of ACL-IJCNLP},
  year = {2021}
}"""

    indicator: Model | None = None
    classifier: Hyperparameters = CLASSIFIER
    editor: Model | None = None
    editor_training: Hyperparameters = EDITOR
    least_steps: int = 0
    share: float = 0.55
    levels: int = 4
    words: str = "between"
    num_beams: int = 15
    num_candidates: int = 15
    max_new_tokens: int = 24
    consistency: bool = True
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        self._as_models("indicator", "editor", "verifier")
        parse_trainings(self)

    identify_causal_terms = GRADIENT_TERMS
    propose_relations = StageOf(ProposeRelations)
    edit_minimally = StageOf(EditMinimally)
    judge_candidates = CONSISTENT

    @property
    def fit_after(self) -> tuple[str, ...]:
        return ("identify_causal_terms",)

    def fit_models(self, ds: Dataset | IterableDataset) -> Self:
        """MICE with a base model: the one that it was given, else one that is trained on `ds`."""
        return replace(self, indicator=base_model(self, ds))

    def fit_resources(self, ds: Dataset | IterableDataset) -> str:
        """Write the relations of the rows, and the digest of the editor, which is trained here."""
        rows = trainable_rows(ds, self, causal_terms="identify_causal_terms")
        known = [row for row in rows if row["causal_terms"]]
        trained = None
        if known and self.editor is None:
            hp = ensure_steps(self.editor_training, self.least_steps, len(known))
            trained = train_editor(known, hp, max_target=self.max_new_tokens)
        return save_artifact({"relations": sorted({row["label"] for row in rows}), **learned_editor(trained)})
