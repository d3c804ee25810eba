"""Protocols between features and what stands behind them: channel, agent, store, tools, clock."""
