SELECT window_start, auction, total FROM (
    SELECT time_bucket(INTERVAL 10 SECOND, dateTime) AS window_start, auction, SUM(price) AS total FROM bid GROUP BY ALL
) QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY total DESC, auction) <= 2
