"""FM2's original files → a dataset repository: python dataset_scripts/build_fm2.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("fm2", __doc__)
