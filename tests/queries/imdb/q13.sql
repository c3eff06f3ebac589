-- cycle with a key of two columns: linked films with a fact in common
SELECT ml.movie_id, ml.linked_movie_id, it.info AS what, one.info
FROM movie_link ml, movie_info one, movie_info two, info_type it
WHERE one.movie_id = ml.movie_id AND two.movie_id = ml.linked_movie_id
  AND one.info_type_id = two.info_type_id AND one.info = two.info AND it.id = one.info_type_id
