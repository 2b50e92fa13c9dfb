"""Build a dataset repository of SST-2: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("sst2")
