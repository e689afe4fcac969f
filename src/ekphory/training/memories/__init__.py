"""Generated memories with queries and hard negatives, for training and testing embedders."""
