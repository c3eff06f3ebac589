-- snowflake: two facts of a film, a dimension below one of them
SELECT t.id, t.title, k.keyword, mi.info
FROM keyword k
JOIN movie_keyword mk ON mk.keyword_id = k.id
JOIN title t ON t.id = mk.movie_id
JOIN movie_info mi ON mi.movie_id = mk.movie_id AND mi.movie_id = t.id
WHERE k.keyword LIKE '%e%' AND mi.info IN ('Drama', 'Comedy', 'German', 'Norway')
  AND t.production_year > 1985
