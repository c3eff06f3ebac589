"""GROUP BY over a join, in two phases (BiStream, section 3.4.2).

Laws: partials merge to the same groups, however they are divided and ordered. Over rows that change, the sum of
what has come out is, after each batch, the query over the sum of what has come in.

    keys       which groups are the same, and which results
    exact      sums of doubles, without rounding
    bag        what is kept of groups where sums are not enough: values, with how often each is there
    partial    joined rows -> partials: one row of sums, counts and extremes for each group;
               partials -> fewer partials
    members    the values of a group -> aggregates
    statistics those that are computed one group at a time
    found      the aggregates that bags give
    finish     partials, and what the bags give -> the rows of the result, or its changes
    groups     the partials and bags of a unit's groups, as segments
    unit       one batch of one unit of groups
"""
