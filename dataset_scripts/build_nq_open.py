"""Build a dataset repository of NQ-open: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("nq_open")
