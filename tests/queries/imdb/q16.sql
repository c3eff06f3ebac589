-- snowflake of ten: complete casts of films of some kinds, with their characters
SELECT count(*) AS found, min(t.title) AS title, min(chn.name) AS character, max(n.name) AS person
FROM complete_cast cc
JOIN comp_cast_type subject ON subject.id = cc.subject_id
JOIN comp_cast_type status ON status.id = cc.status_id
JOIN title t ON t.id = cc.movie_id
JOIN kind_type kt ON kt.id = t.kind_id
JOIN cast_info ci ON ci.movie_id = t.id AND ci.movie_id = cc.movie_id
JOIN char_name chn ON chn.id = ci.person_role_id
JOIN name n ON n.id = ci.person_id
JOIN movie_keyword mk ON mk.movie_id = t.id AND mk.movie_id = ci.movie_id
JOIN keyword k ON k.id = mk.keyword_id
WHERE subject.kind = 'cast' AND status.kind LIKE 'complete%' AND kt.kind = 'movie'
  AND k.keyword IN ('superhero', 'revenge', 'fight') AND NOT chn.name LIKE 'X%'
