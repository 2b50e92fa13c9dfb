"""From a recipe to a published folder: run, train, build, dry run."""
