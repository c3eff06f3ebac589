WITH begun AS (
    SELECT bidder, dateTime,
        dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) < INTERVAL 10 SECOND AS goes_on
    FROM bid
), numbered AS (
    SELECT bidder, dateTime,
        count(*) FILTER (WHERE goes_on IS NOT TRUE) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
    FROM begun
)
SELECT min(dateTime) AS began, bidder, count(*) AS n FROM numbered GROUP BY bidder, session
