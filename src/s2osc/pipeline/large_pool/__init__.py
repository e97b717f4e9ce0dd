"""A pool that is too large to fit on: a sample of it teaches, and the model answers for all.

    labelled    training items + held-back ones for the sample + calibration items
    sample      strangeness of pool and calibration items ─► strata ─► rows, more of the strange
    fit         the method on the sample ─► f, g, groups
    judge       items drawn evenly from the pool, against the calibration items ─► threshold, audit
    answer      every item of the pool by the scores that new items have

Calibration items go the way of the pool: each is drawn into the sample as often as any item of its
stratum, where it is unlabelled, and is answered by the same scores. So a known item of the pool and
a calibration item are exchangeable, whatever the rates of the sample, and the audit needs none.
"""
