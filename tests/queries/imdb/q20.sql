-- cycle of three below a dimension: linked films of one company
SELECT cn.name, cn.country_code, m1.movie_id, m2.movie_id AS linked, m2.note
FROM company_name cn
JOIN movie_companies m1 ON m1.company_id = cn.id
JOIN movie_companies m2 ON m2.company_id = cn.id AND m2.company_id = m1.company_id
JOIN movie_link ml ON ml.movie_id = m1.movie_id AND ml.linked_movie_id = m2.movie_id
WHERE m1.id <> m2.id
