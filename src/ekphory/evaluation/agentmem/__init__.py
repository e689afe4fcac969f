"""Ranking one answer among seven hard negatives: AgentRank's protocol on text of our own."""
