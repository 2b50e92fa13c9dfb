"""CCG's SemEval → a dataset repository: python dataset_scripts/build_ccg_semeval.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("ccg_semeval", __doc__)
