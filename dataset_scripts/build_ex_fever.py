"""EX-FEVER's original files → a dataset repository: python dataset_scripts/build_ex_fever.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("ex_fever", __doc__)
