SELECT window_start, window_end, COUNT(*) AS n FROM (
    SELECT time_bucket(INTERVAL 20 SECOND, dateTime) AS window_start,
        unnest(range(time_bucket(INTERVAL 5 SECOND, dateTime) + INTERVAL 5 SECOND,
            time_bucket(INTERVAL 20 SECOND, dateTime) + INTERVAL 21 SECOND, INTERVAL 5 SECOND)) AS window_end
    FROM bid
) GROUP BY window_start, window_end
