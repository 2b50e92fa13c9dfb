"""What several baselines share: words that may be edited, and the chain of MICE, AutoCAD and CoCo."""
