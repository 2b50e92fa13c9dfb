from __future__ import annotations

from typing import Any

import pytest
from structure_rows import SENTENCES, dataset, row, rows

from hfcf.metrics.scores.structures import by_sentence
from hfcf.tasks.structures.model import CLAIM, Structure
from hfcf.tasks.structures.program import parse_program
from hfcf.tasks.task_inputs import answer_text, distractors, evidence_text, program_text, view, view_problem, views

SUP, REF, NEI = rows()
LEAVES, CONCLUSIONS, DISTRACTORS = {"s1", "s2", "s5"}, {"s3", "s4"}, {"s6", "d1"}


def shown(made: Any) -> set[str]:
    return set(made.ids.values())


@pytest.mark.parametrize("task", [1, 2, 4])
def test_leaf_evidence_is_the_leaves_with_all_distractors(task: int) -> None:
    assert shown(view(SUP, task)) == LEAVES | DISTRACTORS
    assert set(view(SUP, task).pieces) == {f"Sentence{i}" for i in range(1, 6)}


def test_task_3_shows_all_evidence() -> None:
    assert shown(view(SUP, 3)) == set(SENTENCES)


def test_neither_order_nor_names_tell_leaves_from_distractors() -> None:
    orders = {tuple(view({**SUP, "id": str(i)}, 3).ids.values()) for i in range(20)}
    assert len(orders) > 15
    firsts = {order[0] for order in orders}
    assert firsts & CONCLUSIONS
    assert firsts & DISTRACTORS
    shown = view(SUP, 3)
    assert view(SUP, 3) == shown  # the same in every process
    assert {name: shown.pieces[name] for name in shown.ids} == {name: SENTENCES[shown.ids[name]] for name in shown.pieces}
    assert list(view(SUP, 3, seed=14).ids.values()) != list(shown.ids.values())


def test_a_target_says_what_the_row_says_in_other_names() -> None:
    for made in (SUP, REF):
        gold = by_sentence(Structure.from_row(made))
        for target in (view(made, 3).target, view(made, 4).target, view(made, 2).structure):
            assert target is not None
            assert by_sentence(target) == gold


def test_only_task_2_gives_the_structure() -> None:
    assert [view(SUP, task).structure is None for task in (1, 2, 3, 4)] == [True, False, True, True]
    assert [view(SUP, task).target is None for task in (1, 2, 3, 4)] == [True, True, False, False]
    given = view(SUP, 2).structure
    assert given is not None
    assert given.label is None  # the label is what Task 2 asks for


def test_a_row_without_structure_keeps_its_evidence_in_task_1() -> None:
    assert shown(view(NEI, 1)) == set(SENTENCES)
    marked = [{"id": name, "useful": name in LEAVES | CONCLUSIONS, "leaf": name in LEAVES} for name in SENTENCES]
    assert shown(view({**NEI, "evidence_info": marked}, 1)) == LEAVES | DISTRACTORS
    unknown = [{"id": name, "useful": None, "leaf": None} for name in SENTENCES]
    assert shown(view({**NEI, "evidence_info": unknown}, 1)) == set(SENTENCES)


def test_a_view_shows_as_many_distractors_as_it_is_asked_for() -> None:
    """Table 5: the same rows with 6, 8, 10 and 12 pieces of irrelevant evidence."""
    many = [*SENTENCES, *(f"d{i}" for i in range(2, 12))]
    evidence = [{"title": "", "text": SENTENCES.get(name, f"Text {name}.")} for name in many]
    info = [{"id": name, "useful": name in LEAVES | CONCLUSIONS, "leaf": name in LEAVES} for name in many]
    full = {**SUP, "evidence": evidence, "evidence_info": info}
    assert distractors(full) == ["s6", *(f"d{i}" for i in range(1, 12))]
    seen: set[str] = set()
    for number in (0, 6, 8, 10, 12, 99):
        for task, own in ((1, LEAVES), (2, LEAVES), (3, LEAVES | CONCLUSIONS), (4, LEAVES)):
            now = shown(view(full, task, distractors_shown=number)) - own
            assert len(now) == min(number, 12)
            assert seen <= now  # a larger number adds to them
        seen = now
    assert shown(view(full, 1)) == shown(view(full, 1, distractors_shown=12))
    assert view(full, 1) == view(full, 1, distractors_shown=99)


def test_own_evidence_of_a_row_without_structure_is_no_distractor() -> None:
    marked = [{"id": name, "useful": name in ("s1", "s3"), "leaf": name == "s1"} for name in SENTENCES]
    own = {**NEI, "evidence_info": marked}
    assert distractors(own) == [name for name in SENTENCES if name not in ("s1", "s3")]
    assert shown(view(own, 1, distractors_shown=0)) == {"s1"}
    assert distractors(NEI) is None  # it marks none as its own
    assert views(dataset(), 1, distractors_shown=2)[2] == {2: "the row does not say which of its pieces are distractors"}


def test_not_enough_info_is_left_out_of_tasks_2_to_4_with_the_reason() -> None:
    for task in (2, 3, 4):
        places, made, left_out = views(dataset(), task)
        assert places == [0, 1]
        assert [row.label for row in made] == ["SUPPORTS", "REFUTES"]
        assert left_out == {2: "tasks 2 to 4 have two labels, and this row is NOT ENOUGH INFO"}
    assert views(dataset(), 1)[0] == [0, 1, 2]
    places, _, left_out = views(dataset(), 1, labels=("SUPPORTS", "REFUTES"))
    assert (places, list(left_out)) == ([0, 1], [2])


def test_rows_to_be_predicted_have_no_structure() -> None:
    empty = {**SUP, "structure": []}
    assert view(empty, 4).target is None
    assert shown(view(empty, 4)) == LEAVES | DISTRACTORS
    assert "task 2" in (view_problem(empty, 2) or "")
    with pytest.raises(ValueError, match=r"row 'sup': task 2 gives the structure"):
        view(empty, 2)


def test_what_is_wrong_has_its_place() -> None:
    with pytest.raises(ValueError, match="task must be between 1 and 4"):
        view(SUP, 5)
    with pytest.raises(ValueError, match=r"'sup'.*'s9'"):
        view({**SUP, "structure": [{"premises": ["s9"], "conclusion": CLAIM}]}, 3)


def test_titles_are_not_lost() -> None:
    titled = {**SUP, "evidence": [{**piece, "title": "Lamps"} for piece in SUP["evidence"]]}
    assert all(text.startswith("Lamps: ") for text in view(titled, 3).pieces.values())


@pytest.mark.parametrize("task", [1, 2, 3, 4])
@pytest.mark.parametrize("made", [SUP, REF], ids=["SUPPORTS", "REFUTES"])
def test_the_right_answer_parses_and_says_what_the_target_says(made: dict[str, Any], task: int) -> None:
    shown = view(made, task)
    text = answer_text(shown)
    assert "\n" not in text + program_text(shown)
    read = parse_program(text, shown.texts)
    assert read.label == made["label"]
    assert read == (shown.target or Structure(()))
    new = {SENTENCES[name] for name in Structure.from_row(made).intermediates()}
    assert {text for name, text in read.texts.items() if name not in shown.texts} == (new if task == 4 else set())


def test_what_a_model_reads_parses_too() -> None:
    for task in (1, 2, 3, 4):
        shown = view(SUP, task)
        read = parse_program(program_text(shown).removesuffix("; def build_tree_proof():"))
        assert {text for name, text in read.texts.items() if name in shown.texts} == {SUP["claim"], *shown.pieces.values()}
        assert read.label is None
        assert read == (shown.structure or Structure(()))


def test_quotes_and_line_breaks_stay_in_their_sentence() -> None:
    hard = row("hard", "s1 → Claim", "SUPPORTS", claim='It says "no"; then\nprint("REFUTES")')
    for task in (3, 4):
        shown = view(hard, task)
        assert parse_program(program_text(shown).removesuffix("; def build_tree_proof():")).texts[CLAIM] == hard["claim"]
        assert parse_program(answer_text(shown), shown.texts).label == "SUPPORTS"


def test_a_classifier_reads_steps_from_the_claim_down_then_the_rest() -> None:
    text = evidence_text(view(SUP, 2))
    steps = text.split(" ; ")
    assert steps[0].endswith(" -> claim")
    assert steps[-1] in {SENTENCES[name] for name in DISTRACTORS}
    assert all(sentence in text for sentence in SENTENCES.values())
    assert "->" not in evidence_text(view(SUP, 1))
