-- LEFT JOIN between inner ones: companies of films, with their names if of a country, by keyword
SELECT t.title, cn.name AS company, mk.keyword_id, cc.status_id
FROM title t
JOIN movie_companies mc ON mc.movie_id = t.id
LEFT JOIN company_name cn ON cn.id = mc.company_id AND cn.country_code IN ('[us]', '[de]')
JOIN movie_keyword mk ON mk.movie_id = t.id AND mk.movie_id = mc.movie_id
JOIN complete_cast cc ON cc.movie_id = t.id
WHERE coalesce(cn.id, 5) <> mk.keyword_id
