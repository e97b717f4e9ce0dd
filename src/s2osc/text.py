"""Text: made safe once, where it enters, and written so that spreadsheets leave it alone.

    names    ``clean_text`` (any text), ``clean_name`` and ``check_name`` (classes), ``clean_items``
    tables   ``csv_cell`` and ``from_csv_cell``: cells that a spreadsheet would run
    answers  ``match_ids``: the items that the ids in a file mean, after a spreadsheet changed them
    words    lists, counts and shares for messages and pages

What is no text is escaped, never dropped: the byte E9 in a name of Latin-1 becomes ``\\xe9``, a
line break ``\\n``. So every name can be written to every file.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from math import ceil, floor

from s2osc.errors import DataError

UNSAFE = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's control characters, lone surrogates, and separators of lines and paragraphs."""
RUN = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four are the full-width forms
IS_RUN = re.compile(f"[{RUN}]")
IS_QUOTED = re.compile(f"'+[{RUN}]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
THOUSANDS = re.compile(r"[+-]?\d{1,3}([,'’ \u00a0\u202f]\d{3})+(\.0*)?")
MOST_DIGITS = 100


# --- names -----------------------------------------------------------------------------------


def clean_text(value: str | bytes) -> str:
    """Valid text on one line, without spaces around it; what is no text is escaped.

    >>> print(*map(clean_text, (b"caf\\xe9 ", "caf\\udce9", "two\\nlines", "é")))
    caf\\xe9 caf\\xe9 two\\nlines é
    """
    text = value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
    text = text.strip()
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in UNSAFE else c for c in text)


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte that is no UTF-8, as Python carries it
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def clean_name(value: str | bytes) -> str:
    """The name of a class as every file has it: clean text with its accents composed."""
    return unicodedata.normalize("NFC", clean_text(value))


def check_name(value: str | bytes, what: str) -> str:
    """The name of a class, or one line on why it cannot be one."""
    name = clean_name(value)
    if not name:
        raise DataError(f"{what} is empty; give a name")
    return name


def clean_items(names: Iterable[str | bytes]) -> list[str]:
    """Names of items, each of them once: an empty one gets its row, a repeated one a number.

    >>> clean_items(["a.png", "", "a.png", "b.png"])
    ['a.png', 'row 1', 'a.png (2)', 'b.png']
    """
    cleaned = [clean_text(name) or f"row {row}" for row, name in enumerate(names)]
    taken = set(cleaned)
    if len(taken) == len(cleaned):
        return cleaned
    n_before: Counter[str] = Counter()
    unique = []
    for name in cleaned:
        n_before[name] += 1
        if n_before[name] == 1:
            unique.append(name)
            continue
        while (numbered := f"{name} ({n_before[name]})") in taken:
            n_before[name] += 1
        taken.add(numbered)
        unique.append(numbered)
    return unique


# --- cells of a table ------------------------------------------------------------------------


def csv_cell(text: str) -> str:
    """Text for a CSV file: an apostrophe before what a spreadsheet would run as a formula.

    >>> [csv_cell(text) for text in ("=1+1", "-5", "'tis", "'=1")]
    ["'=1+1", '-5', "'tis", "''=1"]
    """
    is_run = IS_RUN.match(text) and not NUMBER.fullmatch(text)
    return f"'{text}" if is_run or IS_QUOTED.match(text) else text


def from_csv_cell(cell: str) -> str:
    """The text that ``csv_cell`` was given, whether or not a spreadsheet dropped the apostrophe."""
    return cell[1:] if IS_QUOTED.match(cell) else cell


# --- ids that went through a spreadsheet -----------------------------------------------------


def match_ids(
    returned: Iterable[str], wanted: Iterable[str], *, what: str = "item"
) -> dict[str, str]:
    """The wanted id that each returned one means; those that mean none are left out.

    An id means the same text, else the same number: spreadsheets turn 00012 into 12, 1200 into
    1,200 or 1200.0, and long numbers into 1.2E+12. Where two ids could be meant, a ``DataError``.

    >>> match_ids(["12", "1.2E+03", "x"], ["00012", "1200", "13"])
    {'12': '00012', '1.2E+03': '1200'}
    """
    ids, there = list(dict.fromkeys(returned)), dict.fromkeys(wanted)
    matched = {name: name for name in ids if name in there}
    changed = [name for name in there if name not in matched]
    by_number: defaultdict[Decimal | str, list[str]] = defaultdict(list)
    for name in changed:
        by_number[_number(name)].append(name)
    origin: dict[str, str] = {}
    for name in ids:
        alike = by_number.get(_number(name), [])
        if name in matched:
            # 012 is gone where 12 is also wanted: its row may be one of those with 12.
            alike = [name, *alike] if alike else []
        elif not alike:
            alike = _rounded_alike(name, changed)
        if len(alike) > 1:
            raise DataError(
                f"the {what} {name!r} may be {listed([repr(a) for a in alike], most=3)}: a "
                "spreadsheet has changed the column; read it as text there, and save it again"
            )
        if alike:
            if other := origin.get(alike[0]):
                raise DataError(
                    f"{other!r} and {name!r} may both be the {what} {alike[0]!r}; give one of them"
                )
            matched[name] = alike[0]
            origin[alike[0]] = name
    return {name: matched[name] for name in ids if name in matched}


def match_classes(labels: Iterable[str], classes: Sequence[str]) -> dict[str, str]:
    """The class that each label means which is none, but would be before a spreadsheet changed it.

    >>> match_classes(["4", "4.0", "00007", "owl"], ["00004", "00007"])
    {'4': '00004', '4.0': '00004'}
    """
    meant: dict[str, str] = {}
    for label in dict.fromkeys(labels):
        if label not in classes:  # each by itself: 4 and 4.0 may well be the same class
            meant |= match_ids([label], classes, what="label")
    return meant


def _number(name: str) -> Decimal | str:
    """A name as the number that spreadsheets take it for, else as plain text."""
    plain = unicodedata.normalize("NFC", name.strip())
    if len(plain) > MOST_DIGITS:
        return plain
    if THOUSANDS.fullmatch(plain):
        plain = re.sub(r"[^\d.+-]", "", plain)
    return Decimal(plain) if NUMBER.fullmatch(plain) else plain


def _rounded_alike(name: str, changed: Sequence[str]) -> list[str]:
    """The ids whose first digits are those of a number like 4.00638E+12."""
    found = NUMBER.fullmatch(name.strip())
    if not found or not found[2]:
        return []
    number = Decimal(name.strip())
    rounding = Context(prec=len(number.as_tuple().digits))
    values = [(other, _number(other)) for other in changed]
    return [
        other
        for other, value in values
        if isinstance(value, Decimal) and rounding.plus(value) == number
    ]


# --- words -----------------------------------------------------------------------------------


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a message, not too many of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shortened(text: str, most: int) -> str:
    """The beginning of a text of more than so many characters.

    >>> shortened("never too long", 10), shortened("short", 10)
    ('never too…', 'short')
    """
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "group"), plural(2000, "item"), plural(2, "class")
    ('1 group', '2,000 items', '2 classes')
    """
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def percent(share: float) -> str:
    """A share in as few digits as tell it.

    >>> percent(0.05), percent(0.0125), percent(0.001)
    ('5%', '1.25%', '0.1%')
    """
    return f"{100 * share:.3g}%"


def at_least(share: float) -> str:
    """A lower bound, rounded down.

    >>> at_least(0.3199), at_least(0.0567)
    ('31%', '5.6%')
    """
    steps = 1 if share >= 0.1 else 10
    return f"{floor(100 * share * steps + 1e-9) / steps:g}%"


def at_most(share: float) -> str:
    """An upper bound, rounded up.

    >>> at_most(0.3101), at_most(0.0312)
    ('32%', '3.2%')
    """
    steps = 1 if share >= 0.1 else 10
    return f"{ceil(100 * share * steps - 1e-9) / steps:g}%"


def rounded_percent(share: float) -> str:
    """A share for people: never 0% of something, never 100% of not all.

    >>> [rounded_percent(share) for share in (0.0, 0.0004, 0.123, 0.99999)]
    ['0%', '<0.1%', '12.3%', '>99.9%']
    """
    if share in (0, 1):
        return f"{share:.0%}"
    if share < 0.001:
        return "<0.1%"
    return ">99.9%" if share > 0.999 else f"{share:.1%}"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(42), duration(130), duration(7_300)
    ('42 s', '2 min', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
