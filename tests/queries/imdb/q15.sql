-- chain with a self-join by a key that is often NULL: the cast of series' episodes
SELECT s.title AS series, e.season_nr, count(*) AS parts, min(n.name) AS first_name
FROM title s
JOIN kind_type kt ON kt.id = s.kind_id
JOIN title e ON e.episode_of_id = s.id
JOIN cast_info ci ON ci.movie_id = e.id
JOIN name n ON n.id = ci.person_id
WHERE kt.kind = 'tv series'
GROUP BY s.title, e.season_nr
