"""Build a dataset repository of CCG's SemEval: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("ccg_semeval")
