"""What an audit says, in words a person without statistics can act on.

Plain functions of the audit that ``decide`` made, its classes named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from statistics import median
from typing import Literal

from s2osc.codec import JsonObject
from s2osc.pipeline.audit.groups_in_words import tell_of_groups
from s2osc.pipeline.audit.long_tail import LongTail
from s2osc.pipeline.audit.record import (
    Audit,
    CheckedAudit,
    ClassLimit,
    Reliability,
    SourcesAudit,
    UnknownTest,
)
from s2osc.pipeline.audit.statistics import CONFIDENCE, Estimate
from s2osc.text import at_least, at_most, listed, percent, plural

RARE = 0.01
"""Rates below it are counted in 1,000 instead of in 100."""
HARDLY_ANY = 1e-9
SHIFTED = 2.0
"""A class so many times rarer or more frequent than the middle one is named."""
MOST_NAMED = 3
CANNOT_TELL = 0.1
"""Where only larger classes would have been found, nothing is concluded from finding none."""
SUSPICIOUS = 10
"""Times the level: a p-value up to that is no discovery, and no reason to say "nothing"."""
OTHER_SOURCE = "This pool seems to come from another source than the labelled items"


CautionCode = Literal[
    "check_disagrees", "check_skipped", "sources_differ", "few_seeds", "class_shift"
]


@dataclass(frozen=True)
class Caution:
    """What limits the figures of an audit."""

    code: CautionCode
    text: str


def tell(audit: Audit) -> JsonObject:
    """An audit as people and files get it: opened by its one sentence, closed by its cautions."""
    record = audit.to_json()
    return (
        {"sentence": sentence(audit), "limit": limit(audit)}
        | record
        | {
            "test": record["test"] | {"verdict": verdict(audit.test)},
            "groups": audit.groups and tell_of_groups(audit.groups) | record["groups"],
            "cautions": [asdict(caution) for caution in cautions(audit)],
        }
    )


def sentence(audit: Audit) -> str:
    """The audit in one sentence: what a person measured, else what is estimated."""
    if audit.checked:
        return check_in_words(audit.checked)
    if audit.sources is None or not audit.sources.differ:
        return _finding(audit)
    return f"{OTHER_SOURCE}, {_consequence(audit.sources)} {_finding(audit)}"


def _consequence(sources: SourcesAudit) -> str:
    """What another source means for the figures."""
    if sources.remain_apart:
        return "so labelled items cannot tell how often the answer is wrong."
    return f"as if with {listed(sources.changes)}; the labelled items were given the same."


def limit(audit: Audit) -> str | None:
    """Which limit on false alarms holds, and in which sense; None where none was set."""
    if audit.rule != "seeds" or audit.nothing_unknown or audit.sources_remain_apart:
        return None
    rate = max(audit.wanted_false_alarm, audit.smallest_false_alarm)
    of_whom = f"{at_most(rate)} of the known items"
    own = [
        f"{at_most(max(each.wanted_false_alarm, each.smallest_false_alarm))} of the known items "
        f"that are given the class {each.name}"
        for each in audit.class_limits
        if each.n_seeds
    ]
    if own:
        of_whom = f"{', '.join(own)} and {at_most(rate)} of the others"
    return f"At most {of_whom} are called unknown, {held(audit)}."


def held(audit: Audit) -> str:
    """In which sense the limit on false alarms holds."""
    if audit.guarantee == "pool":
        return "with 95% confidence in this pool"
    return "on average over pools like this one"


def _finding(audit: Audit) -> str:
    if audit.nothing_unknown:
        return _nothing_unknown(audit)
    if audit.sources_remain_apart:
        return (
            f"An estimated {percent(audit.unknown_share.estimate)} of it stands out, either as of "
            "no known class or as known items that look different in this source."
        )
    alarms = "Too few items of this pool are known to estimate how many of those are called unknown"
    if audit.false_alarm:
        alarms = rate_in_words(
            audit.false_alarm, "known items", "is called unknown", "are called unknown"
        )
    return f"{alarms}; {_share_in_words(audit.unknown_share)}."


def _nothing_unknown(audit: Audit) -> str:
    """What was looked for and not found, and how small it could have been."""
    share, items = audit.findable_share, plural(audit.n_seeds, "labelled test item")
    if audit.sources_remain_apart:
        return (
            "Cannot tell whether anything in it is unknown: nothing stands out beyond what another "
            "source may do to known items; every item is given a known class."
        )
    if audit.sources is not None and audit.sources.is_suspected:
        return (
            "Cannot tell whether anything in this pool is unknown: something stands out, but known "
            f"items with {listed(audit.sources.changes)} would stand out as well; every item is "
            "given a known class; check a few of the pool."
        )
    if share is not None and share > CANNOT_TELL:
        return (
            f"Cannot tell whether anything in this pool is unknown: with {items}, only a class of "
            f"at least {at_most(share)} of the pool would be found; label more items of the known "
            "classes, or check a few of the pool."
        )
    if audit.hardly_tells_classes:
        return (
            "Cannot tell whether anything in this pool is unknown: the known classes are hardly "
            "told from each other, so a class that is not known need not stand out "
            f"({_wrong_names(audit)}); label more items of the known classes, or check a few of "
            "the pool."
        )
    if audit.test.p_value <= SUSPICIOUS * audit.test.level:
        return (
            "Cannot tell whether anything in this pool is unknown: more of it looks strange than "
            f"of {items}, but chance alone may do that ({_chance(audit.test.p_value)}; tested at "
            f"the {percent(audit.test.level)} level); label more items of the known classes, or "
            "check a few of the pool."
        )
    findable = ""
    if share is not None:
        findable = (
            f" (a class that stands apart would be found from {at_most(share)} of the pool on)"
        )
    found = f"As far as {items} can tell, nothing in this pool is unknown{findable}"
    return f"{found}; {_wrong_names(audit)}." if audit.known_accuracy else f"{found}."


def _wrong_names(audit: Audit) -> str:
    """How many answers name the wrong class, as a part of a sentence."""
    right = audit.known_accuracy
    assert right is not None
    wrong = rate_in_words(
        Estimate(1 - right.estimate, 1 - right.high, 1 - right.low),
        "answers",
        "names the wrong class",
        "name the wrong class",
    )
    return f"{wrong[0].lower()}{wrong[1:]}"


def rate_in_words(figure: Estimate, items: str, does: str, do: str) -> str:
    """A rate and its interval as whole items; ``does`` is what one does, ``do`` what several do.

    >>> rate_in_words(Estimate(0.004, 0.001, 0.009), "items", "fails", "fail")
    'About 4 in 1,000 items fail (1 to 9)'
    >>> rate_in_words(Estimate(0.012, 0.001, 0.09), "items", "fails", "fail")
    'About 1 in 100 items fails (0 to 9)'
    >>> rate_in_words(Estimate(0.0, 0.0, 0.0021), "items", "fails", "fail")
    'At most 3 in 1,000 items fail'
    >>> rate_in_words(Estimate(0.0, 0.0, 0.114), "items", "fails", "fail")
    'At most 12 in 100 items fail'
    """
    has_any = round(1_000 * figure.estimate) > 0
    base = 1_000 if (figure.estimate if has_any else figure.high) < RARE else 100
    estimate, low, high = (base * end for end in figure)
    if not has_any:
        most = max(1, ceil(high - 1e-9))  # so few items cannot show that there are none at all
        return f"At most {most} in {base:,} {items} {does if most == 1 else do}"
    n = round(estimate)
    between = f"{min(n, round(low))} to {max(n, round(high))}"
    return f"About {n} in {base:,} {items} {does if n == 1 else do} ({between})"


def _share_in_words(share: Estimate) -> str:
    """The one answer to "how much is unknown": the estimate, with the range it may lie in.

    >>> _share_in_words(Estimate(0.361, 0.294, 0.448))
    'an estimated 36.1% of this pool is of no known class (rough range 29% to 45%)'
    """
    return (
        f"an estimated {percent(share.estimate)} of this pool is of no known class "
        f"(rough range {interval_in_words(share)})"
    )


def verdict(test: UnknownTest) -> str:
    """What the test says about whether anything in the pool is unknown.

    >>> verdict(UnknownTest(p_value=1e-12, level=0.01))
    'Something in this pool is unknown (p < 1e-9; tested at the 1% level).'
    >>> verdict(UnknownTest(p_value=0.4, level=0.01))
    'No sign of anything unknown in this pool (p = 0.4; tested at the 1% level).'
    >>> verdict(UnknownTest(0.0024, 0.01, LongTail(94, 43.4, 0, 0.024, 2.5)))
    'Something in this pool is unknown: 94 items lie farther out than all labelled ones, where \
distances that thin out as they do nearer in would leave 44 at most (p = 0.024 by the labelled \
items alone; tested at the 1% level).'
    """
    p, level = test.p_value, f"tested at the {percent(test.level)} level"
    found = (
        "Something in this pool is unknown"
        if p <= test.level
        else "No sign of anything unknown in this pool"
    )
    if test.long_tail is None or p > test.level:
        return f"{found} ({_chance(test.exact_p_value)}; {level})."
    by_labelled = f"{_chance(test.exact_p_value)} by the labelled items alone"
    return f"{found}: {_far_out(test.long_tail)} ({by_labelled}; {level})."


def _far_out(tail: LongTail) -> str:
    """What a discovery rests on that exact tests alone do not make.

    >>> _far_out(LongTail(94, 0.3, 1, 0.024, 2.5))
    '94 items lie farther out than all but 1 of the labelled ones, where distances that thin out \
as they do nearer in would leave 1 at most'
    """
    beyond = f"all but {tail.n_judges:,} of the" if tail.n_judges else "all"
    return (
        f"{tail.n_items:,} items lie farther out than {beyond} labelled ones, where distances that "
        f"thin out as they do nearer in would leave {ceil(tail.n_regular):,} at most"
    )


def reliability_in_words(found: Reliability) -> str:
    """How far stated confidence and the share that was right are apart, and what chance does.

    >>> reliability_in_words(Reliability(n_items=225, error=0.012, error_by_chance=0.01, bins=()))
    'Among 225 held-back items, the stated confidence in the class named and how often it is right \
differ by 1.2 points of 100 on average; chance alone makes that 1.0.'
    """
    return (
        f"Among {plural(found.n_items, 'held-back item')}, the stated confidence in the class "
        f"named and how often it is right differ by {100 * found.error:.1f} points of 100 on "
        f"average; chance alone makes that {100 * found.error_by_chance:.1f}."
    )


def _chance(p: float) -> str:
    return f"p < {HARDLY_ANY:.0e}".replace("e-0", "e-") if p < HARDLY_ANY else f"p = {p:.2g}"


def cautions(audit: Audit) -> list[Caution]:
    """What limits the figures, most important first."""
    found = []
    if wrong := _disagreements(audit):
        text = (
            f"a person's labels contradict the estimated {listed(wrong)}: what the estimates "
            "assume does not hold for this pool, so go by what was measured"
        )
        found.append(Caution("check_disagrees", text))
    if audit.checked and audit.checked.n_skipped:
        n_skipped, n = audit.checked.n_skipped, audit.checked.n_items + audit.checked.n_skipped
        text = (
            f"{n_skipped:,} of the first {n:,} items to check have no label and count both ways, "
            "which makes every measured interval wider: label them, too"
        )
        found.append(Caution("check_skipped", text))
    if audit.sources is not None and audit.sources.differ:
        found.append(Caution("sources_differ", _sources_in_words(audit.sources)))
    smallest, wanted = audit.smallest_false_alarm, audit.wanted_false_alarm
    if audit.rule == "seeds" and not audit.nothing_unknown and smallest > wanted:
        sure = f", {held(audit)}" if audit.guarantee == "pool" else ""
        text = (
            f"{plural(audit.n_seeds, 'seed')} can promise a false-alarm rate of "
            f"{at_most(smallest)} at best, not {percent(wanted)}{sure}: label more items of the "
            "known classes, or give a higher --false-alarm"
        )
        found.append(Caution("few_seeds", text))
    if not audit.nothing_unknown:
        found += [
            Caution("few_seeds", _too_few(each))
            for each in audit.class_limits
            if each.smallest_false_alarm > each.wanted_false_alarm
        ]
    if audit.is_shifted:
        weights = {each.name: each.weight for each in audit.classes}
        found.append(Caution("class_shift", _shift_in_words(weights)))
    return found


def _too_few(limit: ClassLimit) -> str:
    """What the seeds of one class cannot promise.

    >>> _too_few(ClassLimit("cat", 0.01, 0.05, 19, 0.02))
    '19 seeds are given the class cat and can promise a false-alarm rate of 5% at best there, not \
1%: label more items of it, or give a higher --false-alarm-of'
    >>> _too_few(ClassLimit("cat", 0.01, 1.0, 0, 0.02))
    'no seed is given the class cat, so nothing can be promised for it: label more items of it'
    """
    if not limit.n_seeds:
        return (
            f"no seed is given the class {limit.name}, so nothing can be promised for it: label "
            "more items of it"
        )
    are = "is" if limit.n_seeds == 1 else "are"
    return (
        f"{plural(limit.n_seeds, 'seed')} {are} given the class {limit.name} and can promise a "
        f"false-alarm rate of {at_most(limit.smallest_false_alarm)} at best there, not "
        f"{percent(limit.wanted_false_alarm)}: label more items of it, or give a higher "
        "--false-alarm-of"
    )


def _sources_in_words(sources: SourcesAudit) -> str:
    compared = f"{_chance(sources.p_value)}; {plural(sources.n_pool, 'surely known item')} compared"
    done = []
    if sources.changes:
        done.append(
            f"they look like labelled items with {listed(sources.changes)}, "
            "which the labelled items were given"
        )
    if sources.remain_apart:
        done.append(
            "the labelled items were moved to the pool's source as far as that goes, an unknown "
            "class is reported only if it is large, and no error rates are stated"
        )
    return (
        f"known items of the pool look different from the labelled ones ({compared}), as if from "
        f"another camera, instrument or writer: {'; '.join(done)}; label about 30 random items of "
        "the pool to know more"
    )


def _shift_in_words(weights: Mapping[str, float]) -> str:
    """Which classes are rarer or more frequent in the pool.

    >>> _shift_in_words({"cat": 1.0, "dog": 0.1, "fox": 2.5})
    'the pool holds fewer items of dog and more of fox than the labelled items suggest: the \
figures are re-weighted for that, and less certain'
    """
    usual = _usual_weight(list(weights.values()))
    rarer = [name for name, weight in weights.items() if weight <= usual / SHIFTED]
    more = [name for name, weight in weights.items() if weight >= usual * SHIFTED]
    parts = [f"fewer items of {_some(rarer)}"] if rarer else []
    if more:
        parts.append(f"more of {_some(more)}" if rarer else f"more items of {_some(more)}")
    everything = "fewer items" if usual >= SHIFTED else "other shares"
    found = " and ".join(parts) or f"{everything} of the known classes"
    return (
        f"the pool holds {found} than the labelled items suggest: "
        "the figures are re-weighted for that, and less certain"
    )


def _usual_weight(weights: Sequence[float]) -> float:
    """What a class weighs of which as many come as the labelled items suggest.

    Weights are relative to the middle class, so that is 1. Where most classes stay away, the middle
    one is such a class: then all weights are large, the least ones are those of classes that are
    not there, and the usual one is the middle of the others.

    >>> _usual_weight([1.0, 0.1, 2.5]), _usual_weight([25.0, 25.0, 25.0, 1000.0, 1200.0])
    (1.0, 1100.0)
    """
    least, middle = min(weights), median(weights)
    if middle < SHIFTED or least < middle / SHIFTED:
        return 1.0
    there = [weight for weight in weights if weight >= least * SHIFTED]
    return median(there) if there else middle


def _some(names: Sequence[str]) -> str:
    """A few of the classes, where "more" would be misread beside "than".

    >>> _some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 others'
    """
    n_more = len(names) - MOST_NAMED
    if n_more > 1:
        return f"{', '.join(names[:MOST_NAMED])} and {n_more} others"
    return ", ".join(names)


# --- what a person measured ------------------------------------------------------------------


def check_in_words(checked: CheckedAudit) -> str:
    """What a person found among random items, and what follows for the pool.

    >>> counts = {"n_items": 30, "n_skipped": 0, "n_unknown": 12, "n_known": 18, "n_alarms": 1}
    >>> share, right = Estimate(0.4, 0.228, 0.594), Estimate(0.9, 0.735, 0.979)
    >>> rates = {"false_alarm": None, "known_accuracy": None, "unknown_recall": None}
    >>> check_in_words(CheckedAudit(**counts, **rates, n_right=27, accuracy=right, \
unknown_share=share))
    'Of 30 random items checked by a person, 27 are answered right (73% to 98% of this pool, with \
95% confidence), and 12 are of no known class (22% to 60%).'
    """
    items = "item" if checked.n_items == 1 else "items"
    parts = []
    if checked.accuracy:
        parts.append(
            f"{_are(checked.n_right)} answered right ({interval_in_words(checked.accuracy)}"
        )
    parts.append(
        f"{_are(checked.n_unknown)} of no known class ({interval_in_words(checked.unknown_share)}"
    )
    if checked.false_alarm:
        alarms = f"{checked.n_alarms} of {plural(checked.n_known, 'known one')}"
        verb = "is" if checked.n_alarms == 1 else "are"
        parts.append(f"{alarms} {verb} called unknown ({interval_in_words(checked.false_alarm)}")
    first, *others = parts
    first = f"{first} of this pool, with {percent(CONFIDENCE)} confidence)"
    others = [f"{part})" for part in others]
    findings = ", and ".join([", ".join([first, *others[:-1]]), *others[-1:]])
    return f"Of {checked.n_items:,} random {items} checked by a person, {findings}."


def _are(count: int) -> str:
    return f"{count:,} {'is' if count == 1 else 'are'}"


def interval_in_words(figure: Estimate) -> str:
    """An interval, rounded outwards.

    >>> interval_in_words(Estimate(0.4, 0.228, 0.594)), interval_in_words(Estimate(0.5, 0.5, 0.5))
    ('22% to 60%', '50%')
    """
    low, high = at_least(figure.low), at_most(figure.high)
    return low if low == high else f"{low} to {high}"


def _disagreements(audit: Audit) -> list[str]:
    """The figures of which the estimated interval and the measured one have nothing in common."""
    checked, share = audit.checked, audit.unknown_share
    if checked is None:
        return []
    if audit.nothing_unknown:  # which is said of classes that would have been found
        share = share._replace(high=max(share.high, audit.findable_share or 0.0))
    compared = {
        "unknown share": (share, checked.unknown_share),
        "false alarms": (audit.false_alarm, checked.false_alarm),
        "accuracy on known classes": (audit.known_accuracy, checked.known_accuracy),
        "recall of unknown items": (audit.unknown_recall, checked.unknown_recall),
    }
    return [
        f"{name} ({interval_in_words(estimated)} estimated, {interval_in_words(measured)} measured)"
        for name, (estimated, measured) in compared.items()
        if estimated
        and measured
        and (estimated.high < measured.low or measured.high < estimated.low)
    ]
