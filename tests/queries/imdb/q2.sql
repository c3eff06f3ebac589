-- star of two arms: films of a keyword and their companies of a country
SELECT count(*) AS found, min(t.title) AS title, min(cn.name) AS company
FROM company_name cn, keyword k, movie_companies mc, movie_keyword mk, title t
WHERE cn.country_code = '[de]' AND k.keyword = 'sequel'
  AND cn.id = mc.company_id AND mc.movie_id = t.id
  AND t.id = mk.movie_id AND mk.keyword_id = k.id AND mc.movie_id = mk.movie_id
