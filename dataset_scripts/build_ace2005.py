"""Build a dataset repository of ACE 2005: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("ace2005")
