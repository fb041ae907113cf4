"""The table of settings: a setting is one field of a section, and its row says all that is known of it.

    class Weight(Section):
        release: str = setting("mean", choices={"mean": "as the mean of its group", ...}, help="...")

Checks, keywords, flags, TOML in and out, the page's fields and the reference are all made from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Self

from microagg.plan.checks import Check, check_keys, check_word
from microagg.plan.forms import FORM_OF_TYPE, NAME, SWITCH, WORD, Form


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    help: str  # for the help of the flag and for the reference
    check: Check | None = None
    """Returns a value as the plan holds it, or refuses it, in place of the form's check."""
    choices: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The words that it may be, where there is no check, and how the page puts them."""
    flag: str = ""  # of the command, where its section's ``flags`` do not make it of the name
    form: Form = WORD  # how its value is written, where its type does not tell
    keyword: str = ""  # of :func:`microagg.protect`, where it is not the name
    is_spread: bool = False  # whether the settings of its section are keywords, and not the section
    key: str = ""  # in a plan file, where it is not the name
    section: type[Section] | None = None
    """Of a setting that is a section, or a table of sections by column: the section."""
    label: str = ""  # of the page's field; empty: the page has none
    hint: str = ""  # what the page says under the field
    placeholder: str = ""
    fits: tuple[str | None, ...] = ()  # the kinds of column that have the setting; empty: all
    name: str = ""  # this and the next two are filled in by :func:`rows_of`
    default: Any = None
    message_name: str = ""

    @property
    def argument(self) -> str:
        """The name of the flag as that of a parameter: missing_code for --missing-code."""
        return self.flag.split(",")[0].split("/")[0].removeprefix("--").replace("-", "_")

    @property
    def is_switch(self) -> bool:
        """Whether the setting is on or off."""
        return self.form is SWITCH and not self.choices

    def checked(self, value: Any) -> Any:
        """Return the value as the plan holds it; refuse a wrong one."""
        if self.choices and self.check is None:
            check_word(self.message_name, value, tuple(self.choices))
            return value
        check = self.check or self.form.check
        return value if check is None else check(self.message_name, value)

    def from_flag(self, given: Any) -> Any:
        """Return the value that the words of a flag give."""
        return self.form.read(self.flag.split(",")[0], given)

    def changed(self, before: Any, given: Any) -> Any:
        """Return the value that a keyword gives; of a section, what it does not name stays."""
        if given is None and (self.section is not None or self.default == ()):
            return self.default
        return given if self.section is None else self.section.changed(before, given)

    def read(self, given: Any) -> Any:
        """Return the value that a file gives."""
        if self.form.from_file is not None:
            return self.form.from_file(self.message_name, given)
        return given if self.section is None else self.section.from_file(given)

    def in_file(self, section: Any) -> Any:
        """Return what a file holds of the setting in ``section``."""
        value = getattr(section, self.name)
        # The name of a column may be a tuple, which it stays.
        return value if self.form is NAME else self.form.to_file(plain(value))


def setting(default: Any, **row: Any) -> Any:
    """Return a field of a section with its row; a default that can be called makes the default."""
    metadata = {"setting": Setting(**row)}
    if default is not MISSING and callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def rows_of(section: Any) -> tuple[Setting, ...]:
    """Return the rows of ``section``, a class, in the order of its fields."""
    return _rows(section)


@cache  # which asks for an argument that mypy takes for hashable
def _rows(section: Any) -> tuple[Setting, ...]:
    rows = []
    for f in fields(section):
        if "setting" not in f.metadata:
            continue
        # What follows from the name of the field, from its type (a text, unless the annotation was evaluated)
        # and from the section is filled in.
        row: Setting = f.metadata["setting"]
        default = f.default if f.default_factory is MISSING else f.default_factory()
        flag, check, form = section.flags + f.name.replace("_", "-"), row.check, row.form
        keyword = row.keyword or f.name
        if section.flags and not section.title:  # what has a title is a keyword as a whole
            keyword = row.keyword or flag.removeprefix("--").replace("-", "_")
        message_name = f"{f.name}, of {section.title}," if section.title else keyword
        if f.name == section.shorthand:
            flag, message_name = section.flags.rstrip("-"), section.__name__.lower()
        kind = str(getattr(f.type, "__name__", f.type))
        if not section.flags or row.section is not None or kind.startswith("Mapping"):
            flag = ""
        if row.section is not None and (default is None or isinstance(default, row.section)):
            check = row.section.checked
        if form is WORD:
            form = FORM_OF_TYPE.get(kind.removesuffix(" | None"), WORD)
        whole = replace(
            row, name=f.name, default=default, message_name=message_name, keyword=keyword
        )
        rows.append(
            replace(whole, key=row.key or f.name, flag=row.flag or flag, check=check, form=form)
        )
    return tuple(rows)


class Section:
    """Settings that belong together: a frozen dataclass whose fields are rows of the table."""

    shorthand: ClassVar[str] = ""
    """The setting that may stand for the whole section."""
    flags: ClassVar[str] = ""
    """How its flags begin, such as --max-; empty: a row names its own, if it has one."""
    title: ClassVar[str] = ""
    """The section in messages about its settings; empty: its settings are keywords of their own."""

    def __post_init__(self) -> None:
        for row in rows_of(type(self)):
            value = getattr(self, row.name)
            if value is not None or row.default is not None:
                object.__setattr__(self, row.name, row.checked(value))
        self.check_together()

    def check_together(self) -> None:
        """Refuse settings that do not fit each other."""

    @classmethod
    def table(cls, given: Any) -> dict[str, Any]:
        """Return what is given for the section as a table of known settings."""
        if not isinstance(given, Mapping) and cls.shorthand:
            given = {cls.shorthand: given}
        check_keys(cls.__name__.lower(), given, [row.name for row in rows_of(cls)])
        return dict(given)

    @classmethod
    def changed(cls, before: Self | None, given: Any) -> Self:
        """Return the section as a keyword or flag changes it: what is not named stays.

        Tables by column are changed column by column.
        """
        if isinstance(given, cls):
            return given
        changes = cls.table(given)
        if before is None:
            return cls(**changes)
        for name, value in changes.items():
            had = getattr(before, name)
            if isinstance(had, Mapping) and isinstance(value, Mapping):
                changes[name] = {**had, **value}
        return replace(before, **changes)  # type: ignore[type-var]

    @classmethod
    def checked(cls, _: str, given: Any) -> Self:
        """Build the section from what a keyword gives."""
        return cls.changed(None, given)

    @classmethod
    def from_file(cls, given: Any) -> Self:
        """Build the section from what a file holds."""
        table, rows = cls.table(given), {row.name: row for row in rows_of(cls)}
        return cls.changed(None, {name: rows[name].read(value) for name, value in table.items()})

    def as_dict(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults as plain data."""
        rows = rows_of(type(self))
        return {r.key: r.in_file(self) for r in rows if getattr(self, r.name) != r.default}


def plain(value: Any) -> Any:
    """Return ``value`` as lists and tables; of a section the settings that differ from the defaults."""
    if isinstance(value, Section):
        return value.as_dict()
    if isinstance(value, tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {name: plain(entry) for name, entry in value.items()}
    return value
