"""Build a dataset repository of SQuAD v1.1: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("squad")
