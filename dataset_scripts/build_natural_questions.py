"""Build a dataset repository of Natural Questions: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("natural_questions")
