-- @ filter: one input alone (every system's first page)
SELECT auction, price FROM bid WHERE price > 1000 AND channel IN ('Apple', 'Google')

-- @ distinct: SELECT DISTINCT (Flink SQL, select-distinct)
SELECT DISTINCT bidder, channel FROM bid

-- @ dedup_first: the first row of a key (Flink SQL, deduplication)
SELECT auction, bidder, price, dateTime FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY dateTime ASC) AS row_num FROM bid
) WHERE row_num = 1

-- @ dedup_last: the last row of a key (Flink SQL, deduplication)
SELECT auction, bidder, price, dateTime FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY dateTime DESC) AS row_num FROM bid
) WHERE row_num = 1

-- @ latest_by_qualify: the same with QUALIFY (RisingWave, Materialize: DISTINCT ON)
SELECT bidder, auction, price FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY bidder ORDER BY dateTime DESC) = 1

-- @ top_n: the three best of each group (Flink SQL, Top-N)
SELECT category, id, initialBid, row_num FROM (
    SELECT category, id, initialBid, ROW_NUMBER() OVER (PARTITION BY category ORDER BY initialBid DESC, id) AS row_num
    FROM auction
) WHERE row_num <= 3

-- @ top_n_of_groups: the best of aggregated rows (Flink cookbook, continuous Top-N)
SELECT * FROM (
    SELECT channel, auction, total, RANK() OVER (PARTITION BY channel ORDER BY total DESC) AS place
    FROM (SELECT channel, auction, SUM(price) AS total FROM bid GROUP BY channel, auction)
) WHERE place <= 2

-- @ order_limit: the best of all
SELECT auction, bidder, price FROM bid ORDER BY price DESC LIMIT 5

-- @ limit_offset: the next best
SELECT auction, max(price) AS highest FROM bid GROUP BY auction ORDER BY highest DESC, auction LIMIT 3

-- @ running_sum: what has been bid so far (Flink SQL, over aggregation)
SELECT auction, dateTime, price, SUM(price) OVER (PARTITION BY auction ORDER BY dateTime) AS so_far FROM bid

-- @ running_rows: of the last three bids
SELECT auction, dateTime, AVG(price) OVER (
    PARTITION BY auction ORDER BY dateTime ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS lately FROM bid

-- @ running_range: of the last ten seconds
SELECT auction, dateTime, COUNT(*) OVER (
    PARTITION BY auction ORDER BY dateTime RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS lately
FROM bid

-- @ lag: the change from one to the next (Flink, RisingWave: LAG)
SELECT auction, dateTime, price - LAG(price) OVER (PARTITION BY auction ORDER BY dateTime) AS change FROM bid

-- @ share: of a group's total
SELECT id, category, initialBid * 1.0 / SUM(initialBid) OVER (PARTITION BY category) AS share FROM auction

-- @ group_having: groups and a condition on them
SELECT bidder, COUNT(*) AS bids, SUM(price) AS spent FROM bid GROUP BY bidder HAVING COUNT(*) > 5

-- @ group_of_groups: two levels (Materialize, RisingWave)
SELECT bids, COUNT(*) AS bidders FROM (SELECT bidder, COUNT(*) AS bids FROM bid GROUP BY bidder) GROUP BY bids

-- @ count_distinct: with FILTER
SELECT channel, COUNT(DISTINCT bidder) AS bidders, COUNT(DISTINCT auction) FILTER (WHERE price > 1000) AS dear
FROM bid GROUP BY channel

-- @ spread: moments of a distribution
SELECT channel, stddev_samp(price) AS apart, var_pop(price) AS variance, avg(price) AS average FROM bid GROUP BY channel

-- @ rollup
SELECT channel, bidder, SUM(price) AS total FROM bid GROUP BY ROLLUP (channel, bidder)

-- @ cube: with grouping()
SELECT category, seller, COUNT(*) AS n, grouping(category) AS g FROM auction GROUP BY CUBE (category, seller)

-- @ grouping_sets
SELECT category, seller, MAX(initialBid) AS top FROM auction GROUP BY GROUPING SETS ((category, seller), (category), ())

-- @ union_all: of streams (ksqlDB: INSERT INTO from several)
SELECT id AS who, dateTime FROM person UNION ALL SELECT bidder, dateTime FROM bid

-- @ union
SELECT seller AS who FROM auction UNION SELECT bidder FROM bid

-- @ intersect
SELECT seller AS who FROM auction INTERSECT SELECT bidder FROM bid

-- @ except
SELECT id FROM person EXCEPT SELECT bidder FROM bid WHERE channel = 'Apple' OR price > 100000

-- @ except_all
SELECT bidder FROM bid EXCEPT ALL SELECT seller FROM auction

-- @ cte_twice: computed once, read twice
WITH totals AS (SELECT auction, SUM(price) AS total FROM bid GROUP BY auction)
SELECT a.auction, a.total, b.auction AS other FROM totals a JOIN totals b ON a.total < b.total AND a.auction = b.auction - 1

-- @ cte_chain
WITH cheap AS (SELECT * FROM bid WHERE price < 100000), per AS (SELECT auction, COUNT(*) AS n FROM cheap GROUP BY auction)
SELECT a.id, a.category, per.n FROM auction a LEFT JOIN per ON a.id = per.auction

-- @ scalar_subquery: above the average of all
SELECT auction, bidder, price FROM bid WHERE price > (SELECT AVG(price) FROM bid)

-- @ correlated_scalar: above the average of its auction
SELECT b.auction, b.bidder, b.price FROM bid b WHERE b.price >= (SELECT AVG(o.price) FROM bid o WHERE o.auction = b.auction)

-- @ correlated_count: in the select list, 0 where there is none
SELECT a.id, (SELECT COUNT(*) FROM bid b WHERE b.auction = a.id) AS bids FROM auction a

-- @ exists_or: EXISTS under OR
SELECT p.id, p.name FROM person p
WHERE EXISTS (SELECT 1 FROM auction a WHERE a.seller = p.id) OR EXISTS (SELECT 1 FROM bid b WHERE b.bidder = p.id AND b.price > 100000)

-- @ not_exists: auctions without a bid
SELECT a.id FROM auction a WHERE NOT EXISTS (SELECT 1 FROM bid b WHERE b.auction = a.id)

-- @ not_in
SELECT a.id FROM auction a WHERE a.seller NOT IN (SELECT b.bidder FROM bid b WHERE b.price > 1000000)

-- @ in_groups: IN over a group (TPC-H 18's shape)
SELECT a.id, a.itemName FROM auction a WHERE a.id IN (SELECT auction FROM bid GROUP BY auction HAVING COUNT(*) > 8)

-- @ interval_join: within a time (Flink SQL, interval join; Spark: stream-stream join)
SELECT p.id, a.id AS auction FROM person p JOIN auction a
ON p.id = a.seller AND a.dateTime BETWEEN p.dateTime AND p.dateTime + INTERVAL '20' SECOND

-- @ left_interval_join
SELECT a.id, b.price FROM auction a LEFT JOIN bid b
ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires AND b.price > 100000

-- @ full_join
SELECT coalesce(s.who, b.who) AS who, s.n AS sold, b.n AS bid
FROM (SELECT seller AS who, COUNT(*) AS n FROM auction GROUP BY seller) s
FULL JOIN (SELECT bidder AS who, COUNT(*) AS n FROM bid GROUP BY bidder) b ON s.who = b.who

-- @ three_way: customers with their sales and bids
SELECT p.name, a.id, b.price FROM person p JOIN auction a ON p.id = a.seller JOIN bid b ON b.auction = a.id
WHERE b.price > 10000

-- @ self_join: the same bidder twice on one auction
SELECT x.auction, x.bidder, x.price AS first, y.price AS second FROM bid x JOIN bid y
ON x.auction = y.auction AND x.bidder = y.bidder AND x.dateTime < y.dateTime

-- @ cross_single: with one row
SELECT b.auction, b.price * 1.0 / t.total AS share FROM bid b CROSS JOIN (SELECT SUM(price) AS total FROM bid) t

-- @ natural_join
SELECT category, n, top FROM (SELECT category, COUNT(*) AS n FROM auction GROUP BY category)
NATURAL JOIN (SELECT category, MAX(initialBid) AS top FROM auction GROUP BY category)

-- @ lookup: a table beside a stream (Flink SQL, lookup join)
SELECT b.auction, s.value FROM bid b LEFT JOIN side_input s ON MOD(b.auction, 10000) = s.key

-- @ grouped_lookup: a table, then groups by what it says (review 3.1)
SELECT s.value, COUNT(*) AS n FROM bid b JOIN side_input s ON MOD(b.auction, 10000) = s.key GROUP BY s.value

-- @ lateral_top: the best bids of each auction (Flink SQL and PostgreSQL, LATERAL)
SELECT a.id, t.bidder, t.price FROM auction a,
LATERAL (SELECT bidder, price FROM bid b WHERE b.auction = a.id ORDER BY price DESC LIMIT 2) t

-- @ explode: parts of an address (Spark SQL, LATERAL VIEW)
SELECT auction, part FROM bid LATERAL VIEW explode(split(url, '/')) parts AS part WHERE length(part) > 5

-- @ case_pivot: columns out of rows
SELECT auction, SUM(CASE WHEN channel = 'Apple' THEN price ELSE 0 END) AS apple,
    SUM(CASE WHEN channel = 'Google' THEN price ELSE 0 END) AS google FROM bid GROUP BY auction

-- @ funnel: who came, sold and was bid on
SELECT COUNT(DISTINCT p.id) AS came, COUNT(DISTINCT a.seller) AS sold, COUNT(DISTINCT b.bidder) AS bid
FROM person p LEFT JOIN auction a ON a.seller = p.id LEFT JOIN bid b ON b.bidder = p.id

-- @ changes_only: rows that differ from the one before (ksqlDB, RisingWave)
SELECT auction, channel, dateTime FROM (
    SELECT auction, channel, dateTime, LAG(channel) OVER (PARTITION BY auction ORDER BY dateTime) AS before FROM bid
) WHERE before IS NULL OR before <> channel

-- @ first_last: of a group, by max_by
SELECT auction, max_by(bidder, price) AS winner, min_by(bidder, price) AS loser FROM bid GROUP BY auction

-- @ tumble: groups by window (Flink SQL, windowing TVF)
SELECT window_start, window_end, SUM(price) AS total
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)) GROUP BY window_start, window_end

-- @ spark_window: the same in Spark's words
SELECT window.start AS began, channel, COUNT(*) AS n FROM bid GROUP BY window(dateTime, '10 seconds'), channel

-- @ spark_hop: sliding windows
SELECT window.start AS began, COUNT(*) AS n FROM bid GROUP BY window(dateTime, '10 seconds', '5 seconds')

-- @ spark_session: sessions in Spark's words
SELECT session_window.start AS began, bidder, COUNT(*) AS n FROM bid GROUP BY session_window(dateTime, '10 seconds'), bidder

-- @ cumulate: windows that grow
SELECT window_start, window_end, COUNT(*) AS n
FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '5' SECOND, INTERVAL '20' SECOND))
GROUP BY window_start, window_end

-- @ window_top: the best of each window (Flink SQL, window Top-N)
SELECT window_start, auction, total FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC, auction) AS place FROM (
        SELECT window_start, window_end, auction, SUM(price) AS total
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
        GROUP BY window_start, window_end, auction)
) WHERE place <= 2

-- @ asof: the last bid before an auction ends (DuckDB, Snowflake: ASOF JOIN)
SELECT a.id, b.price FROM auction a ASOF JOIN bid b ON a.id = b.auction AND a.expires >= b.dateTime

-- @ asof_left
SELECT a.id, b.price FROM auction a ASOF LEFT JOIN bid b ON a.id = b.auction AND a.expires >= b.dateTime
