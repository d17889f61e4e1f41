"""What other projects ask in their own tests; `data/parity/suites.csv` lists them, one a line."""
