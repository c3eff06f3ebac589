-- SEMI and ANTI JOIN between inner ones: people of one name only of whom something is known, in films with a rating
SELECT t.title, ci.person_id, mx.info AS rating
FROM title t
JOIN cast_info ci ON ci.movie_id = t.id
LEFT SEMI JOIN person_info pi ON pi.person_id = ci.person_id
LEFT ANTI JOIN aka_name an ON an.person_id = ci.person_id
JOIN movie_info_idx mx ON mx.movie_id = t.id AND mx.movie_id = ci.movie_id
