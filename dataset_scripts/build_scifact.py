"""SciFact's original files → a dataset repository: python dataset_scripts/build_scifact.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("scifact", __doc__)
