-- self-joins at both ends of a link: films and what follows them, with their kinds
SELECT t1.title AS first, t2.title AS second, lt.link, kt1.kind AS first_kind, kt2.kind AS second_kind
FROM movie_link ml
JOIN link_type lt ON lt.id = ml.link_type_id
JOIN title t1 ON t1.id = ml.movie_id
JOIN title t2 ON t2.id = ml.linked_movie_id
JOIN kind_type kt1 ON kt1.id = t1.kind_id
JOIN kind_type kt2 ON kt2.id = t2.kind_id
WHERE lt.link LIKE '%follow%' OR lt.link = 'remake of'
