-- enrichment from a bounded side input. The benchmark looks it up `FOR SYSTEM_TIME AS OF` the time of processing: here the
-- side input is an input of role table
SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM bid AS B JOIN side_input AS S ON MOD(B.auction, 10000) = S.key
