"""Build a dataset repository of Quoref's contrast set: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("quoref_contrast")
