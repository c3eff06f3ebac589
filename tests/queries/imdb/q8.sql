-- cycle of four: two people who met in two films
SELECT x1.person_id AS one, x2.person_id AS other, x1.movie_id AS here, y1.movie_id AS there
FROM cast_info x1, cast_info x2, cast_info y1, cast_info y2
WHERE x1.movie_id = x2.movie_id AND x2.person_id = y2.person_id
  AND y2.movie_id = y1.movie_id AND y1.person_id = x1.person_id
  AND x1.person_id < x2.person_id AND x1.movie_id < y1.movie_id
  AND x1.nr_order = 1 AND x2.nr_order = 2 AND y1.nr_order <= 3 AND y2.nr_order <= 3
