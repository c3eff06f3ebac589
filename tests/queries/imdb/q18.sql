-- snowflake: who does what for which kind of company
SELECT rt.role, ct.kind, kt.kind AS made, count(*) AS found, min(t.production_year) AS since
FROM title t
JOIN kind_type kt ON kt.id = t.kind_id
JOIN cast_info ci ON ci.movie_id = t.id
JOIN role_type rt ON rt.id = ci.role_id
JOIN movie_companies mc ON mc.movie_id = t.id
JOIN company_type ct ON ct.id = mc.company_type_id
WHERE mc.note LIKE '%(co-production)%' OR mc.note IS NULL
GROUP BY rt.role, ct.kind, kt.kind
