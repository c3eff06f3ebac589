WITH hopped AS (
    SELECT auction, count(*) AS num, unnest(range(
        time_bucket(INTERVAL 2 SECOND, dateTime) - INTERVAL 8 SECOND,
        time_bucket(INTERVAL 2 SECOND, dateTime) + INTERVAL 1 SECOND, INTERVAL 2 SECOND)) AS starttime
    FROM bid GROUP BY auction, starttime
)
SELECT auction, num FROM hopped QUALIFY num >= max(num) OVER (PARTITION BY starttime)
