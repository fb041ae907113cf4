"""What the name of a column says about it: its words, and which of them mean what.

The words stand in ``rules.toml``, by language, for speakers to correct. A name alone never decides: drafting/
asks whether the values can be what the name says.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "de", "fr", "es")
RULES: Mapping[str, Any] = tomllib.loads(
    files("microagg.drafting").joinpath("rules.toml").read_text(encoding="utf-8")
)
"""The table of rules, as it is written."""


def _words_of(entry: Mapping[str, Any]) -> frozenset[str]:
    """Return the words of an entry of the table in all languages."""
    return frozenset(word for language in LANGUAGES for word in entry.get(language, "").split())


_NAMES = {name: _words_of(entry) for name, entry in RULES["names"].items()}
IDENTIFIER, NUMBER, COUNT = _NAMES["identifier"], _NAMES["number"], _NAMES["count"]
COUNTED, MEASURE, HEIGHT = _NAMES["counted"], _NAMES["measure"], _NAMES["height"]
CODE, SORT, SCALE, PLACE = _NAMES["code"], _NAMES["sort"], _NAMES["scale"], _NAMES["place"]
WEIGHT, WEIGHT_ONLY, SAMPLING = _NAMES["weight"], _NAMES["weight_only"], _NAMES["sampling"]
YEAR, TIME, NAME, PERSONAL = (_NAMES[name] for name in ("year", "time", "name", "personal"))
WITH_DIGITS = _words_of(RULES["units"]["subject"])
"""Words for units of which a text without a digit is something else."""
THINGS, RECORDS = _NAMES["thing"], _NAMES["record"]
# The noun of each word that says whom an identifier stands for.
HOUSEHOLDS, UNITS, CONTAINERS = (
    {word: noun for noun, entry in RULES[section].items() for word in _words_of(entry)}
    for section in ("households", "units", "containers")
)
ENTITY = frozenset({*HOUSEHOLDS, *UNITS, *CONTAINERS, *THINGS, *RECORDS})
# The lowest and the highest number under each word.
PARTS_OF_DATES, COORDINATE = (
    {word: (e["low"], e["high"]) for e in RULES[section].values() for word in _words_of(e)}
    for section in ("parts_of_dates", "coordinates")
)

_WORD = re.compile(r"ID(?=[a-z]{2})|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_ENDS, _BEGINS = RULES["joined"]["ends"], frozenset(RULES["joined"]["begins"].split())
# How words are written together, which words are so by accident, and which words alone may come first.
_JOINED: tuple[tuple[str, frozenset[str], frozenset[str] | None], ...] = (
    # An entity, with what numbers or names it: UTILITYID, custno, utilname.
    (rf"(.+?)({_ENDS.replace(' ', '|')})(k|kn|kg)?", IDENTIFIER, ENTITY | PLACE | _BEGINS),
    # A code or sort of anything: occcode, indcode, jobkind, hhtype.
    (r"(.+)(code)|(.{2,})(kind|type)", CODE | SORT, None),
    # A number of something: numlt5.
    (r"(num)([a-z]{2,})", NUMBER | COUNT | {"numeric", "numerical", "numerator", "nummer"}, None),
    # What is counted, together with something: nkids, youngkids, bedrooms.
    (r"(.*)(kids|children|visits|rooms)(.*)", frozenset(), None),
)


def plain(text: Any) -> str:
    """Return a text without accents.

    >>> plain("Année"), plain("Straße")
    ('Annee', 'Strasse')
    """
    apart = unicodedata.normalize("NFKD", str(text).replace("ß", "ss"))
    return "".join(c for c in apart if not unicodedata.combining(c))


def words(name: Any) -> tuple[str, ...]:
    """Split the name of a column into words.

    Snake case, camel case, dots and blanks part them; a known entity is parted from its id.

    >>> words("householdID"), words("UTILITYID"), words("grid.width"), words("Année_2")
    (('household', 'id'), ('utility', 'id'), ('grid', 'width'), ('annee', '2'))
    >>> words("IDunit"), words("numlt5")
    (('id', 'unit'), ('num', 'lt', '5'))
    """
    parts: list[str] = []
    for word in map(str.lower, _WORD.findall(plain(name))):
        for pattern, by_accident, first in _JOINED:
            match = re.fullmatch(pattern, word)
            if match and word not in by_accident and (first is None or match[1] in first):
                parts += filter(None, match.groups())
                break
        else:
            parts.append(word)
    return tuple(parts)
