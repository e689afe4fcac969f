"""`python -m ekphory`: the `ekphory` command."""

from ekphory.cli.app import main

if __name__ == "__main__":
    main()
