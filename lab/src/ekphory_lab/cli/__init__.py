"""The commands `ekphory eval`, `bench` and `train`."""
