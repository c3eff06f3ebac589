-- self-joins about one key: actors and directors of a film, with their names
SELECT t.title, a.name AS actor, d.name AS director
FROM title t, cast_info ca, cast_info cd, role_type ra, role_type rd, name a, name d
WHERE ca.movie_id = t.id AND cd.movie_id = t.id AND ca.movie_id = cd.movie_id
  AND ca.role_id = ra.id AND cd.role_id = rd.id AND ca.person_id = a.id AND cd.person_id = d.id
  AND ra.role IN ('actor', 'actress') AND rd.role = 'director' AND a.id <> d.id
  AND t.production_year BETWEEN 1980 AND 2015
