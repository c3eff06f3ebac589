-- star of one key with a self-join: rating and votes of a film with a complete cast, by keyword
SELECT t.title, mk.keyword_id, r.info AS rating, v.info AS votes, cc.status_id
FROM title t, movie_keyword mk, movie_info_idx r, movie_info_idx v, complete_cast cc
WHERE t.production_year >= 1990 AND r.info_type_id < v.info_type_id
  AND mk.movie_id = t.id AND r.movie_id = t.id AND v.movie_id = t.id AND cc.movie_id = t.id
  AND mk.movie_id = r.movie_id AND r.movie_id = v.movie_id AND mk.movie_id = cc.movie_id
