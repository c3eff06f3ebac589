"""The examples of docs/reference/sql.md: texts only; what they give is computed when the page is made."""

HIGHER = (
    "transform(array(1, 2), x -> x + 1)",
    "filter(array(1, 2, 3), x -> x > 1)",
    "exists(array(1, 2), x -> x > 1)",
    "forall(array(1, 2), x -> x > 1)",
    "aggregate(array(1, 2, 3), 0, (total, x) -> total + x)",
    "reduce(array(1, 2, 3), 0, (total, x) -> total + x)",
    "zip_with(array(1, 2), array(3, 4), (x, y) -> x * y)",
    "map_filter(map('a', 1, 'b', 2), (k, v) -> v > 1)",
    "transform_keys(map('a', 1), (k, v) -> upper(k))",
    "transform_values(map('a', 1), (k, v) -> v + 1)",
    "map_zip_with(map('a', 1), map('a', 2), (k, x, y) -> x + y)",
    "timestampdiff(MINUTE, TIMESTAMP '2026-01-05 09:00:00', TIMESTAMP '2026-01-05 10:30:00')",
    "timestampadd(HOUR, 2, TIMESTAMP '2026-01-05 09:00:00')",
)
OPERATORS = (
    "7 + 2",
    "7 - 2",
    "7 * 2",
    "7 / 2",
    "7 div 2",
    "7 % 2",
    "-7",
    "1.10 + 2.205",
    "1 = 1.0",
    "1 <> 2",
    "2 BETWEEN 1 AND 3",
    "NULL = NULL",
    "NULL <=> NULL",
    "NULL IS NULL",
    "'b' > 'a'",
    "'spark' LIKE 's%k'",
    "'100%' LIKE '100!%' ESCAPE '!'",
    "3 IN (1, 2, 3)",
    "NOT (1 = 1 AND 1 = 2 OR TRUE)",
    "'a' || 'b'",
    "CASE WHEN 1 > 2 THEN 'more' ELSE 'less' END",
    "CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END",
    "CAST('12' AS INT)",
    "TRY_CAST('twelve' AS INT)",
    "DATE '2026-01-31' + INTERVAL 1 MONTH",
    "TIMESTAMP '2026-01-05 09:00:00' + INTERVAL 90 MINUTES",
    "TIMESTAMP '2026-01-05 09:00:00' - INTERVAL '1 02:30' DAY TO MINUTE",
    "EXTRACT(HOUR FROM TIMESTAMP '2026-01-05 09:30:00')",
)
AGGREGATED = {
    "count(*)": "rows of the group",
    "count(p.amount)": "rows whose value is not NULL",
    "count(DISTINCT p.method)": "different values; of several columns, different rows without NULL",
    "sum(p.amount)": "the sum; BIGINT for whole numbers, DECIMAL(p + 10, s) for decimals, else DOUBLE",
    "min(p.at)": "the least value",
    "max(p.at)": "the greatest value",
    "avg(p.amount)": "the mean; DECIMAL(p + 4, s + 4) for decimals, else DOUBLE",
    "mean(p.amount)": "another name of `avg`",
    "sum(DISTINCT p.amount)": "the sum of the different values; so `avg`, the variances and deviations",
    "sum(p.amount) FILTER (WHERE p.amount > 9)": "the sum over the rows for which the condition is true; so every aggregate",
    "count_if(p.amount > 9)": "rows for which the condition is true",
    "bool_and(p.amount > 9)": "whether the condition is true of all rows; also `every`",
    "bool_or(p.amount > 9)": "whether it is true of one row; also `some`, `any`",
    "any_value(p.method)": "some value: the least one",
    "min_by(p.method, p.at)": (
        "the value in the row with the least second value; of several such rows, the least value; also"
        " `first(p.method ORDER BY p.at)`"
    ),
    "max_by(p.method, p.at)": (
        "the value in the row with the greatest second value; of several, the greatest; also"
        " `last(p.method ORDER BY p.at)`"
    ),
    "collect_list(p.amount)": "all values, sorted; also `array_agg`",
    "collect_set(p.amount)": "the different values, sorted",
    "median(p.amount)": "the value in the middle; of an even number, the mean of the two there",
    "percentile(p.amount, 0.9)": "the value that this part of all values is not above, interpolated",
    "percentile(p.amount, array(0.5, 0.9))": "several at once",
    "var_pop(p.amount)": "the variance of all values",
    "var_samp(p.amount)": "the variance of a sample; NULL of one value; also `variance`",
    "stddev_pop(p.amount)": "the square root of `var_pop`",
    "stddev_samp(p.amount)": "the square root of `var_samp`; also `stddev`, `std`",
    "skewness(p.amount)": "how far the values lean to one side",
    "kurtosis(p.amount)": "how heavy their tails are",
    "corr(p.amount, o.price)": "the correlation of two values",
    "covar_pop(p.amount, o.price)": "their covariance; `covar_samp` is that of a sample",
    "regr_slope(p.amount, o.price)": (
        "the slope of the line through them; also `regr_intercept`, `regr_r2`, `regr_count`, `regr_avgx`, `regr_avgy`,"
        " `regr_sxx`, `regr_sxy`, `regr_syy`"
    ),
    "mode(p.method)": "the most frequent value; of several, the least",
    "approx_count_distinct(p.method)": "as `count(DISTINCT ...)`: exact",
    "percentile_approx(p.amount, 0.9)": "the value that this part of all values is not above, one of them; exact",
    "percentile_cont(0.9) WITHIN GROUP (ORDER BY p.amount)": "as `percentile`; `percentile_disc` is one of the values",
    "listagg(p.method, ', ')": "all values, sorted, as texts with a text between; also `string_agg`, `DISTINCT`,"
    " and `WITHIN GROUP (ORDER BY p.method DESC)`",
    "bit_or(p.order_id)": "the bits that one value has; also `bit_and`, `bit_xor`",
}
_PAIR = "FROM orders o JOIN payments p ON o.order_id = p.order_id"
_EXISTS = "SELECT o.city FROM orders o WHERE EXISTS (SELECT 1 FROM"
REFUSED = {
    "With `mode: append`, what is not final": (
        f"SELECT o.city, p.amount {_PAIR} ORDER BY p.amount DESC LIMIT 10",
        "SELECT o.city FROM orders o WHERE o.price > (SELECT max(p.amount) FROM payments p)",
        "SELECT city, rank() OVER (PARTITION BY city ORDER BY price) AS r FROM orders",
    ),
    "Clauses": (
        f"SELECT o.city {_PAIR} SORT BY o.city",
        f"SELECT o.city {_PAIR} CLUSTER BY o.city",
        f"SELECT o.city {_PAIR} DISTRIBUTE BY o.city",
        f"SELECT /*+ BROADCAST(p) */ o.city {_PAIR}",
        "SELECT o.city FROM orders TABLESAMPLE (10 PERCENT) o JOIN payments p ON o.order_id = p.order_id",
        "SELECT city FROM orders ORDER BY price FETCH FIRST 10 PERCENT ROWS ONLY",
        "SELECT TOP 10 city FROM orders",
        "SELECT city FROM orders MATCH_RECOGNIZE (PARTITION BY city ORDER BY at PATTERN (A B+) DEFINE B AS price > 10)",
        "SELECT city FROM orders WHERE price = ?",
        "SELECT city FROM orders LATERAL VIEW explode(city) x AS y",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    ),
    "Joins": (
        "SELECT p.method FROM orders o RIGHT SEMI JOIN payments p ON o.order_id = p.order_id",
        "SELECT o.city FROM orders o LEFT JOIN payments p",
        "SELECT o.city FROM orders o JOIN payments p ON o.order_id = p.method",
        "SELECT o.city, c.name FROM orders o FULL JOIN customers c ON c.id = o.customer_id",
        "SELECT c.name FROM customers c LEFT JOIN orders o ON c.id = o.customer_id",
    ),
    "Groups": (
        f"SELECT o.city, first(p.method) AS m {_PAIR} GROUP BY o.city",
        "SELECT explode(array(city)) AS c, count(*) AS n FROM orders GROUP BY c",
        f"SELECT o.city, median(DISTINCT p.amount) AS m {_PAIR} GROUP BY o.city",
        f"SELECT *, count(*) AS n {_PAIR} GROUP BY o.city",
    ),
    "Expressions": (
        f"SELECT o.city, rand() AS r {_PAIR}",
        f"SELECT lenght(o.city) AS n {_PAIR}",
        f"SELECT o.town {_PAIR}",
        f"SELECT o.city COLLATE UTF8_LCASE AS city {_PAIR}",
    ),
}
