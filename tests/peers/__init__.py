"""The expectations of other projects' tests; `data/parity/suites.csv` lists them, one per line."""
