-- chain over five tables that ends in what is known of a person; some roles have no character
SELECT chn.name AS character, it.info AS what, pi.info, count(*) AS found
FROM char_name chn, cast_info ci, name n, person_info pi, info_type it
WHERE chn.id = ci.person_role_id AND ci.person_id = n.id AND n.id = pi.person_id
  AND pi.info_type_id = it.id AND it.info IN ('height', 'birth date')
GROUP BY chn.name, it.info, pi.info
