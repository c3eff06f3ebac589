-- two stars that a fact relates: voices, with all that is known of person and film
SELECT n.name, an.name AS called, pi.info AS known, t.title
FROM aka_name an, name n, person_info pi, cast_info ci, role_type rt, title t, movie_info_idx mx
WHERE an.person_id = n.id AND pi.person_id = n.id AND ci.person_id = n.id
  AND an.person_id = ci.person_id AND pi.person_id = ci.person_id
  AND ci.role_id = rt.id AND ci.movie_id = t.id AND mx.movie_id = ci.movie_id
  AND ci.note LIKE '(voice%' AND rt.role = 'actress' AND mx.info > '5'
