"""RGF's human evaluation (section 4): questions and their answers."""

from __future__ import annotations

from hfcf.core.rating import Display, Protocol, Question, Row, Unit

_YES_NO = {"1": "yes", "0": "no"}

PROTOCOLS = (
    Protocol(
        name="rgf",
        title="Questions and answers",
        guide="Each line has a question, a passage, and what should be the question's answer in that passage.",
        # Section 4 names 100 questions; appendix B, which has the rubric and table 6, names 300. The paper's raters are its
        # authors, and it does not say how many rated each question.
        paper="Paranjape et al. 2022, RGF, section 4, appendix B and table 6",
        unit="question",
        shows=("question", "context", "answer"),
        questions=(
            Question(
                "fluency", "Is the question grammatically well formed? Spelling and capitals of names don't count.", _YES_NO,
                "“who captained richmond in 1994” → 1: names without capitals are fine. “who captained the in 1994 richmond” → 0.",
                level="nominal",
            ),
            Question(
                "correctness", "Can the question be answered by the passage, and is the answer shown the right one?", _YES_NO,
                "Passage: “Jeff Hogg led the side in 1994.” Question: “who led the side in 1995” Answer: “Jeff Hogg” → 0: the "
                "passage tells of another year.",
                level="nominal",
            ),
        ),
        rows=300,
    ),
)  # fmt: skip


def _question(row: Row, source: Row | None, side: str) -> Display:
    # In quotation marks, because a spreadsheet turns "12 May 2010" into a date.
    answers = " / ".join(f"“{text}”" for text in dict.fromkeys(row["answers"]["text"]))
    passage = f"[{row['title']}] {row['context']}" if row.get("title") else row["context"]
    return Display({"question": row["question"], "context": passage, "answer": answers})


UNITS = {"question": Unit(("id", "question", "context", "answers"), _question)}
