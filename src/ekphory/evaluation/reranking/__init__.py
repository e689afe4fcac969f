"""The reranker's benchmark: fixed candidates, ranking, calibration, abstention, context, gate."""
