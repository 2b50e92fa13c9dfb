"""SemEval-2010 Task 8 → a dataset repository: python dataset_scripts/build_semeval.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("semeval", __doc__)
