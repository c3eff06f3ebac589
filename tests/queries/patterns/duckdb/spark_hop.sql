SELECT began, COUNT(*) AS n FROM (
    SELECT unnest(range(time_bucket(INTERVAL 5 SECOND, dateTime) - INTERVAL 5 SECOND,
        time_bucket(INTERVAL 5 SECOND, dateTime) + INTERVAL 1 SECOND, INTERVAL 5 SECOND)) AS began FROM bid
) GROUP BY began
