SELECT P.id, P.name, P.starttime
FROM (SELECT DISTINCT id, name, time_bucket(INTERVAL 10 SECOND, dateTime) AS starttime FROM person) P
JOIN (SELECT DISTINCT seller, time_bucket(INTERVAL 10 SECOND, dateTime) AS starttime FROM auction) A
ON P.id = A.seller AND P.starttime = A.starttime
