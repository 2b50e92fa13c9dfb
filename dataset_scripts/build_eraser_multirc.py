"""ERASER MultiRC's files → a dataset repository: python dataset_scripts/build_eraser_multirc.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("eraser_multirc", __doc__)
