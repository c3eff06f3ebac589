"""`streamjoin-driver`, and `python -m jobs.driver`."""

from joinlib.lean import lean, loading


def main() -> None:
    """Run the command line."""
    lean()
    with loading():
        from jobs.driver import driver  # it makes values of pyarrow while it is loaded

    driver.main()


if __name__ == "__main__":
    main()
