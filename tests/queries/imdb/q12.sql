-- self-joins of a fact and of its dimension: genre and countries of rated films
SELECT g.info AS genre, c.info AS country, count(*) AS films, max(mx.info) AS best
FROM movie_info g, movie_info c, movie_info_idx mx, info_type itg, info_type itc, info_type itx
WHERE itg.info = 'genres' AND itc.info = 'countries' AND itx.info = 'rating'
  AND g.info_type_id = itg.id AND c.info_type_id = itc.id AND mx.info_type_id = itx.id
  AND g.movie_id = c.movie_id AND c.movie_id = mx.movie_id AND mx.info > '3.0'
GROUP BY g.info, c.info
