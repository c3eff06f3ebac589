-- average selling price by seller: of the last ten auctions that were closed
SELECT Q.seller, AVG(Q.final) OVER (
    PARTITION BY Q.seller ORDER BY Q.dateTime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
    SELECT seller, price AS final, bidTime AS dateTime
    FROM (
        SELECT A.id, A.seller, B.price, B.dateTime AS bidTime,
            ROW_NUMBER() OVER (PARTITION BY A.id, A.seller ORDER BY B.price DESC, B.dateTime) AS rownum
        FROM auction AS A, bid AS B
        WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
    )
    WHERE rownum <= 1
) AS Q
