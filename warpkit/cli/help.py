"""A command whose help shows the names of its arguments without Python's types."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """`FILE` in place of `FILE <list[str]>`, and `IMAGE...` in place of `{IMAGE}...`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line; optional ones are in brackets."""
        return [word.strip("{}").replace("}", "") for word in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Lists arguments first, then options."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is None:
                continue
            name, words = record
            if param.param_type_name == "argument":
                name = name.split(" <")[0]
                # the usage line shows which ones are required
                sections["Arguments"].append((name, words.removesuffix("  [required]")))
            else:
                sections["Options"].append((name, words))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
