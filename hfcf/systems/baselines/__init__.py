"""What the papers compare their systems with, each a `System` on the same contract."""
