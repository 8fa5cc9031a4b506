"""`python -m leakmeter` is the command line."""

from leakmeter.cli import main

if __name__ == "__main__":
    main()
