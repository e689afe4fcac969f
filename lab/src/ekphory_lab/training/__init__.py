"""Training the models, and fitting the constants."""
