"""SPSS."""

from __future__ import annotations

from microagg.formats.programs import Program

__all__ = ["Spss"]


class Spss(Program):
    """SPSS; portable files (.por) are read only."""

    name = "spss"
    words = "an SPSS file"
    name_pattern = r"[^\W\d][\w.$#@]*"
    name_words = "begin with a letter and have letters, digits and . _ $ # @"
    longest_name = 64
    reserved = "ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH"
    longest_text = 32_767
    longest_label, longest_value_label = 255, 120
    missing_codes = True
    pads_text = True
