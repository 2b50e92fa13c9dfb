"""The original files → a dataset repository: python dataset_scripts/build_fever_adversarial.py --data-dir FOLDER --out OUT."""

from hfcf.pipeline.build_corpus import main

if __name__ == "__main__":
    main("fever_adversarial", __doc__)
