-- conditions over two and three inputs: sequels within ten years, by the cast of both
SELECT t1.title AS first, t2.title AS second, c1.person_id, t2.production_year - t1.production_year AS years
FROM title t1, title t2, movie_link ml, cast_info c1, cast_info c2
WHERE ml.movie_id = t1.id AND ml.linked_movie_id = t2.id
  AND c1.movie_id = t1.id AND c2.movie_id = t2.id AND c1.person_id = c2.person_id
  AND t1.production_year < t2.production_year AND t2.production_year - t1.production_year <= 10
  AND c1.nr_order + c2.nr_order < ml.link_type_id + 6
