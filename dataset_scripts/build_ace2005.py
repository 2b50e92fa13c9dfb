"""ACE 2005's original files → a dataset repository: python dataset_scripts/build_ace2005.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("ace2005", __doc__)
