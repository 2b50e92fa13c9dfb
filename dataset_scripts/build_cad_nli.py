"""CAD NLI's original files → a dataset repository: python dataset_scripts/build_cad_nli.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("cad_nli", __doc__)
