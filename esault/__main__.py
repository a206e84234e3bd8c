"""`python -m esault` is `esault`."""

from esault.cli.main import main

if __name__ == "__main__":
    main()
