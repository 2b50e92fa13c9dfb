"""What several metrics need: reading rows, fitting, settings, measuring a set, summaries, MoverScore."""
