"""Build a dataset repository of MRQA 2019: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("mrqa")
