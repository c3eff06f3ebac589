-- cycle of three by three keys: people who play a character of their own name, and how else they are called
SELECT n.id, n.name, an.name AS called, ci.movie_id
FROM cast_info ci
JOIN char_name chn ON chn.id = ci.person_role_id
JOIN name n ON n.id = ci.person_id AND n.name = chn.name
JOIN aka_name an ON an.person_id = n.id AND an.person_id = ci.person_id
