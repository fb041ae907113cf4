"""Run the command as ``python -m microagg``."""

from microagg.cli.main import main

if __name__ == "__main__":
    main()
