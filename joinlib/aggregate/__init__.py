"""GROUP BY over a join, in two phases (BiStream, section 3.4.2).

Law: partials merge to the same groups, however they are divided and ordered.

    partial    joined rows -> partials: one row of sums, counts and extremes for each group;
               partials -> fewer partials
    finish     partials -> the rows of the result, or of its changelog
    groups     the partials of a unit's groups, as segments
    unit       one batch of one unit of groups
"""
