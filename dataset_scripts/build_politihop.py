"""PolitiHop's original files → a dataset repository: python dataset_scripts/build_politihop.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("politihop", __doc__)
