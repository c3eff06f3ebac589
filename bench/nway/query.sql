SELECT cu.c_current_addr_sk, cu.c_customer_sk, wr.wr_order_number, cr.cr_order_number, sr.sr_ticket_number
FROM customer cu
JOIN web_returns wr ON cu.c_current_addr_sk = wr.wr_refunded_addr_sk
JOIN catalog_returns cr ON cu.c_current_addr_sk = cr.cr_refunded_addr_sk
JOIN store_returns sr ON cu.c_current_addr_sk = sr.sr_addr_sk
