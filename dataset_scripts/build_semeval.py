"""Build a dataset repository of SemEval-2010 Task 8: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("semeval")
