SELECT a.k, a.v AS av, a.s AS as_, b.v AS bv, b.s AS bs, c.v AS cv, c.s AS cs, d.v AS dv, d.s AS ds
FROM a
JOIN b ON a.k = b.k
JOIN c ON a.k + 0 = c.k
JOIN d ON a.k + 0 + 0 = d.k
