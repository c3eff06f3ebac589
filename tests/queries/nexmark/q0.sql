-- pass through: the floor of what reading and writing cost
SELECT auction, bidder, price, dateTime, extra FROM bid
