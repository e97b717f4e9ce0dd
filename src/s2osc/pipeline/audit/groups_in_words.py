"""How many groups there are, and what speaks for each number, in words."""

from s2osc.codec import JsonObject
from s2osc.pipeline.audit.record import LIKELY, GroupsAudit
from s2osc.pipeline.group_tree import NumberEvidence
from s2osc.text import plural


def tell_of_groups(groups: GroupsAudit) -> JsonObject:
    """The number of groups in a sentence, and what speaks for it and for others."""
    return {"sentence": number_of_groups(groups), "what_speaks": what_speaks(groups)}


def number_of_groups(groups: GroupsAudit) -> str:
    """How many groups there are, and how many there may be.

    >>> from s2osc.pipeline.group_tree import GroupTree
    >>> tree = GroupTree(((1, -1), (-2, -3)), (0.9, 0.6), (5, 5, 5))
    >>> number_of_groups(GroupsAudit(tree, (0, 1, 2), (1.0,) * 3, 18))
    '3 groups are likely (54%), perhaps 2 (36%).'
    >>> number_of_groups(GroupsAudit(tree, (0, 0, 0), (1.0,) * 3, 18))
    '1 group, as asked for; 3 are likely (54%), perhaps 2 (36%).'
    >>> apart = GroupTree(((1, -1), (-2, -3)), (0.55, 0.9), (5, 5, 5))
    >>> number_of_groups(GroupsAudit(apart, (0, 1, 1), (1.0,) * 3, 18))
    '2 groups (5%), in the middle of what is likely: 3 (50%) or 1 (45%).'
    >>> many = GroupTree(((1, -1), (2, -2), (3, -3), (-4, -5)), (0.55, 0.7, 0.8, 0.8), (5,) * 5)
    >>> number_of_groups(GroupsAudit(many, many.cut(2), (1.0,) * 5, 18))
    '2 groups (17%), in the middle of what is likely: 1 (45%), 5 (25%) or others (14%).'
    >>> few = GroupTree(((1, -1), (-2, -3)), (0.0, 0.0), (5, 5, 5))
    >>> number_of_groups(GroupsAudit(few, (0, 0, 0), (1.0,) * 3, 0))
    '1 group; so few items do not tell how many there are.'
    """
    chances = groups.tree.distribution()
    if groups.tree.n_leaves > 1 and chances[0] == 1:
        taken = (
            f"{plural(groups.number, 'group')}, as asked for" if groups.number > 1 else "1 group"
        )
        return f"{taken}; so few items do not tell how many there are."
    likely, asked = plural(groups.likely, "group"), ""
    chance = chances[groups.likely - 1]
    if groups.number != groups.likely:
        asked, likely = f"{plural(groups.number, 'group')}, as asked for; ", f"{groups.likely}"
    others = [f"{n} ({chance:.0%})" for n, chance in groups.alternatives if n != groups.likely]
    is_between = bool(others) and chance < groups.alternatives[0][1]
    rest = 1 - sum(each for n, each in groups.alternatives if n != groups.likely) - chance
    if is_between and rest >= LIKELY:
        others.append(f"others ({rest:.0%})")
    named = " or ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
    if is_between:  # what is likely lies below and above it
        return f"{asked}{likely} ({chance:.0%}), in the middle of what is likely: {named}."
    perhaps = f", perhaps {named}" if named else ""
    are = "is" if groups.likely == 1 else "are"
    return f"{asked}{likely} {are} likely ({chance:.0%}){perhaps}."


def what_speaks(groups: GroupsAudit) -> JsonObject:
    """Of the number of groups and of those that are likely, by the number, rising."""
    numbers = {groups.number, groups.likely, *(n for n, _ in groups.alternatives)}
    there = [n for n in sorted(numbers) if n <= len(groups.evidence)]
    return {str(n): evidence_in_words(n, groups.evidence[n - 1]) for n in there}


def evidence_in_words(number: int, evidence: NumberEvidence) -> str:
    """What speaks for a number of groups.

    >>> evidence_in_words(1, NumberEvidence(0, True, 0.0, 1.0))
    'a border deeper than those within known classes runs through it, which speaks for more'
    >>> evidence_in_words(3, NumberEvidence(2, False, 0.617, 0.2163))
    '2 of 2 borders are deeper than those within known classes, silhouette 0.62'
    >>> evidence_in_words(2, NumberEvidence(0, False, 0.5, 0.3))
    'no border between them is deeper than those within known classes, silhouette 0.50'
    """
    deep = "deeper than those within known classes"
    if number == 1 and evidence.next_border:
        return f"a border {deep} runs through it, which speaks for more"
    if number == 1:
        return f"no border in it is {deep}"
    are = "is" if evidence.borders == 1 else "are"
    borders = f"{evidence.borders} of {plural(number - 1, 'border')} {are} {deep}"
    if not evidence.borders:
        borders = f"no border between them is {deep}"
    found = f"{borders}, silhouette {evidence.silhouette:.2f}"
    best = ", as many as k-means by its silhouette" if evidence.by_silhouette else ""
    more = "; so is one more border, which speaks for more" if evidence.next_border else ""
    return f"{found}{best}{more}"
