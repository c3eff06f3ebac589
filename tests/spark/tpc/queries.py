"""The eleven queries of TPC-H that UMJoin converts (table 3), each block of them with its FROM and WHERE.

What was cut, since a stream cannot have it: ORDER BY and LIMIT; subqueries that give an aggregate (Q2's least cost, Q11's
share of the whole, Q15's largest revenue), of which Q2's own block runs beside, and Q11's is that of its query; derived tables
(Q7 to Q9), whose blocks are the queries. Q18's subquery and Q15's view read one table and join nothing: HAVING, and the join
with the view's table, say the same. Groups are compared where they are the point, rows elsewhere.
"""

REVENUE = "l_extendedprice * (1 - l_discount)"
EUROPE = (
    "s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'"
)
GERMANY = "ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'"

TPCH = {
    "Q2": f"""
        SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, ps_supplycost
        FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND p_size = 15 AND p_type LIKE '%BRASS' AND {EUROPE}""",
    "Q2 subquery": f"""
        SELECT ps_partkey, min(ps_supplycost) AS least FROM partsupp, supplier, nation, region
        WHERE {EUROPE} GROUP BY ps_partkey""",
    "Q3": f"""
        SELECT l_orderkey, {REVENUE} AS revenue, o_orderdate, o_shippriority FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'""",
    "Q5": f"""
        SELECT n_name, {REVENUE} AS revenue FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
          AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
          AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'""",
    "Q7": f"""
        SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year,
               {REVENUE} AS volume
        FROM supplier, lineitem, orders, customer, nation n1, nation n2
        WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
          AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
          AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
          AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'""",
    "Q8": f"""
        SELECT extract(year FROM o_orderdate) AS o_year, {REVENUE} AS volume, n2.n_name AS nation
        FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
        WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
          AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
          AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
          AND p_type = 'ECONOMY ANODIZED STEEL'""",
    "Q9": f"""
        SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
               {REVENUE} - ps_supplycost * l_quantity AS amount
        FROM part, supplier, lineitem, partsupp, orders, nation
        WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
          AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%'""",
    "Q10": f"""
        SELECT c_custkey, c_name, {REVENUE} AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
          AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey""",
    "Q11": f"""
        SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
        WHERE {GERMANY} GROUP BY ps_partkey""",
    "Q15": f"""
        SELECT s_suppkey, s_name, s_address, s_phone, sum({REVENUE}) AS total_revenue FROM supplier, lineitem
        WHERE s_suppkey = l_suppkey AND l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
        GROUP BY s_suppkey, s_name, s_address, s_phone""",
    "Q18": """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
        FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice HAVING sum(l_quantity) > 200""",
    "Q21": """
        SELECT s_name, l1.l_orderkey AS l_orderkey FROM supplier, lineitem l1, orders, nation
        WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
          AND l1.l_receiptdate > l1.l_commitdate AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
          AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
          AND NOT EXISTS (SELECT 1 FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
                          AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)""",
}

TPCDS = """
    SELECT * FROM store_returns sr, customer cu, web_returns wr, catalog_returns cr
    WHERE cu.c_current_addr_sk = cr.cr_refunded_addr_sk AND cu.c_current_addr_sk = sr.sr_addr_sk
      AND cu.c_current_addr_sk = wr.wr_refunded_addr_sk"""
