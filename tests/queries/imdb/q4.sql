-- chain over five tables: whom companies employ
SELECT cn.name AS company, n.name AS person, t.production_year
FROM company_name cn
JOIN movie_companies mc ON cn.id = mc.company_id
JOIN title t ON mc.movie_id = t.id
JOIN cast_info ci ON t.id = ci.movie_id
JOIN name n ON ci.person_id = n.id
WHERE cn.country_code <> '[us]' AND n.gender = 'f' AND ci.nr_order <= 2
