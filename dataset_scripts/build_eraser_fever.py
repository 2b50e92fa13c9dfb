"""ERASER FEVER's files → a dataset repository: python dataset_scripts/build_eraser_fever.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("eraser_fever", __doc__)
