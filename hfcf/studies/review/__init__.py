"""Review of argument structures: people edit claim, evidence and structure, and filter rows by four criteria (CheckWhy, 3.3)."""
