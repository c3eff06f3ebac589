-- snowflake of nine: rated films of a country with their releases
SELECT count(*) AS found, min(mi.info) AS release, max(mx.info) AS rating, min(t.title) AS title
FROM company_name cn, company_type ct, info_type it1, info_type it2, kind_type kt,
     movie_companies mc, movie_info mi, movie_info_idx mx, title t
WHERE cn.country_code IN ('[us]', '[gb]') AND ct.kind = 'production companies'
  AND it1.info = 'rating' AND it2.info = 'release dates' AND kt.kind IN ('movie', 'episode')
  AND mi.movie_id = t.id AND it2.id = mi.info_type_id AND kt.id = t.kind_id
  AND mc.movie_id = t.id AND cn.id = mc.company_id AND ct.id = mc.company_type_id
  AND mx.movie_id = t.id AND it1.id = mx.info_type_id
  AND mi.movie_id = mx.movie_id AND mi.movie_id = mc.movie_id AND mx.movie_id = mc.movie_id
