SELECT time_bucket(INTERVAL 10 SECOND, dateTime) AS began, channel, COUNT(*) AS n FROM bid GROUP BY ALL
