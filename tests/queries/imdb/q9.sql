-- cycle of three: links that lead back
SELECT a.movie_id AS one, b.movie_id AS two, c.movie_id AS three
FROM movie_link a, movie_link b, movie_link c
WHERE a.linked_movie_id = b.movie_id AND b.linked_movie_id = c.movie_id AND c.linked_movie_id = a.movie_id
  AND a.link_type_id <= b.link_type_id
