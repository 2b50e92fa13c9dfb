"""Build a dataset repository of CAD IMDb: `--help` lists the arguments."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("cad_imdb")
