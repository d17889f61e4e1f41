"""Definitions: what lenses and quadrilaterals do, in plain torch operations."""
