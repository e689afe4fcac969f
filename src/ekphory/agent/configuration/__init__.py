"""The agent's configuration: a YAML file, the environment, arguments; one reader."""
