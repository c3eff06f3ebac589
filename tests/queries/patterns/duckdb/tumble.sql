SELECT time_bucket(INTERVAL 10 SECOND, dateTime) AS window_start,
    time_bucket(INTERVAL 10 SECOND, dateTime) + INTERVAL 10 SECOND AS window_end, SUM(price) AS total
FROM bid GROUP BY ALL
