SELECT auction, part FROM (SELECT auction, unnest(string_split(url, '/')) AS part FROM bid) WHERE length(part) > 5
