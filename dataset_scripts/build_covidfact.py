"""COVID-Fact's original files → a dataset repository: python dataset_scripts/build_covidfact.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("covidfact", __doc__)
