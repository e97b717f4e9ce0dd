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
    named = " or ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
    if chance < LIKELY and named:  # what is likely lies below and above it
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
    """
    deep = "deeper than those within known classes"
    if number == 1 and evidence.next_border:
        return f"a border {deep} runs through it, which speaks for more"
    if number == 1:
        return f"no border in it is {deep}"
    are = "is" if evidence.borders == 1 else "are"
    found = (
        f"{evidence.borders} of {plural(number - 1, 'border')} {are} {deep}, silhouette "
        f"{evidence.silhouette:.2f}"
    )
    best = ", as many as k-means by its silhouette" if evidence.by_silhouette else ""
    more = "; so is one more border, which speaks for more" if evidence.next_border else ""
    return f"{found}{best}{more}"
