"""Build a dataset repository of EntailmentBank: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("entailment_bank")
