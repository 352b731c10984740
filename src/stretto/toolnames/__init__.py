"""The tools that an agent lists: their names, and what the filters behind them allow."""
