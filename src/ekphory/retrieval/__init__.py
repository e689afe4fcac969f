"""Finding memories: terms, both arms, fusion, stages and pipelines."""
