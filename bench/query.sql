SELECT orders.k, orders.v AS order_v, orders.s AS order_s, payments.v AS payment_v, payments.s AS payment_s
FROM orders JOIN payments ON orders.k = payments.k
