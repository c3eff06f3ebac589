-- star of three arms: people of films that companies of a country have made, by a keyword
SELECT count(*) AS found, min(n.name) AS first, max(n.name) AS last
FROM cast_info ci, company_name cn, keyword k, movie_companies mc, movie_keyword mk, name n, title t
WHERE cn.country_code = '[us]' AND k.keyword = 'character-name-in-title' AND n.name LIKE 'B%'
  AND n.id = ci.person_id AND ci.movie_id = t.id AND t.id = mk.movie_id AND mk.keyword_id = k.id
  AND t.id = mc.movie_id AND mc.company_id = cn.id
  AND ci.movie_id = mc.movie_id AND ci.movie_id = mk.movie_id AND mc.movie_id = mk.movie_id
