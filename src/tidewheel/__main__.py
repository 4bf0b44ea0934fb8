"""Makes ``python -m tidewheel`` the same as ``tidewheel``."""

from tidewheel.cli.main import main

if __name__ == "__main__":
    main()
