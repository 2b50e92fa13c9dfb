"""The shared code of metrics: reading rows, fitting, settings, measuring a set, summaries, MoverScore."""
