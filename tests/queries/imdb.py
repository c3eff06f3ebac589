"""Tables like those of the Internet Movie Database, small: a few films and people are in most rows, others in one or none."""

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.queries.draw import Shape
from tests.queries.hints import Value

Row = dict[str, Any]
SKEW = 0.8  # the k-th is drawn as often as 1 / k to this power
WORDS = {  # the tables that only name things
    "comp_cast_type": ("kind", ("cast", "crew", "complete", "complete+verified")),
    "company_type": ("kind", ("production companies", "distributors", "special effects companies")),
    "info_type": ("info", (
        "genres", "countries", "languages", "release dates", "rating", "votes", "birth date", "height", "trivia",
    )),
    "keyword": ("keyword", (
        "character-name-in-title", "sequel", "superhero", "revenge", "murder", "based-on-novel", "fight", "robot",
        "violence", "love", "new-york", "dog", "island", "train",
    )),
    "kind_type": ("kind", ("movie", "tv series", "episode", "tv movie", "video game")),
    "link_type": ("link", ("follows", "followed by", "remake of", "references", "version of")),
    "role_type": ("role", ("actor", "actress", "director", "producer", "writer", "composer")),
}  # fmt: skip
INFO = {  # what is told of a film or a person, by its type
    "genres": ("Drama", "Comedy", "Horror", "Action"), "countries": ("USA", "Germany", "Norway", "Japan"),
    "languages": ("English", "German", "Japanese"), "release dates": ("USA:2007", "Japan:2010", "Germany:1999"),
    "rating": ("2.4", "4.9", "6.3", "8.1"), "votes": ("12", "870", "51234"), "birth date": ("1955", "1970", "1988"),
    "height": ("160", "172", "185"), "trivia": ("plays chess", "sings"),
}  # fmt: skip
TYPES = WORDS["info_type"][1]
FILM, RANKED, PERSON = TYPES[:4], TYPES[4:6], TYPES[6:]
COUNTRIES = ("[us]", "[de]", "[gb]", "[jp]", None)
FIRST, LAST = ("Anna", "Bela", "Boris", "Chris", "Dana", "Xenia"), ("An", "Berg", "Downey", "Man", "Stark")
NOTES = ("(voice)", "(voice: English version)", "(uncredited)", None, None)
COMPANY_NOTES = ("(co-production)", "(presents)", "(2006) (USA)", None, None)
FILMS, PEOPLE, COMPANIES, CHARACTERS = 45, 36, 16, 24
SERIES = 6  # the first films


def rows(hints: dict[str, list[Value]], shape: Shape) -> dict[str, list[Row]]:
    """All tables; `shape.rows` are in the largest, `cast_info`."""
    del hints  # the queries ask for the words above
    draw = _Draw(Random(shape.seed))
    found = {
        table: [{"id": n, column: word} for n, word in enumerate(words, 1)]
        for table, (column, words) in WORDS.items()
    }
    return {
        name: [{"id": n} | row for n, row in enumerate(made, 1)]
        for name, made in (_facts(draw, shape.rows) | _things(draw)).items()
    } | found


class _Draw:
    def __init__(self, random: Random) -> None:
        self.random = random

    def key(self, count: int) -> int:
        """A number up to `count`; low ones often."""
        return self.random.choices(range(1, count + 1), [k**-SKEW for k in range(1, count + 1)])[0]

    def one(self, words: Sequence[Any]) -> Any:
        return self.random.choice(words)

    def word(self, table: str) -> int:
        """The number of a word of this table."""
        return self.key(len(WORDS[table][1]))

    def told(self, types: Sequence[str]) -> Row:
        """A type of information, and one of that type."""
        kind = self.one(types)
        return {"info_type_id": TYPES.index(kind) + 1, "info": self.one(INFO[kind])}

    def person(self) -> str:
        return f"{self.one(FIRST)} {self.one(LAST)}"


def _things(draw: _Draw) -> dict[str, list[Row]]:
    return {
        "title": [_title(draw, n) for n in range(1, FILMS + 1)],
        "name": [{"name": draw.person(), "gender": draw.one(("f", "m", None))} for _ in range(PEOPLE)],
        "char_name": [{"name": draw.person()} for _ in range(CHARACTERS)],
        "company_name": [
            {"name": f"{draw.one(LAST)} Film {n % 5}", "country_code": draw.one(COUNTRIES)}
            for n in range(COMPANIES)
        ],
        "aka_name": [{"person_id": draw.key(PEOPLE), "name": draw.person()} for _ in range(PEOPLE)],
    }


def _title(draw: _Draw, number: int) -> Row:
    row = {"title": f"film {number % 30}", "production_year": draw.one((*range(1984, 2016, 3), None))}
    if number <= SERIES:
        return row | {"kind_id": 2}
    if number % 3:
        return row | {"kind_id": draw.word("kind_type")}
    part = {"season_nr": draw.one((1, 1, 2)), "episode_nr": number % 7}
    return row | part | {"kind_id": 3, "episode_of_id": draw.key(SERIES)}


def _facts(draw: _Draw, count: int) -> dict[str, list[Row]]:
    """What relates films, people and words."""
    film = lambda: {"movie_id": draw.key(FILMS)}  # noqa: E731
    person = lambda: {"person_id": draw.key(PEOPLE)}  # noqa: E731
    made = {
        "cast_info": (count, lambda: film() | person() | _part(draw)),
        "movie_keyword": (count // 3, lambda: film() | {"keyword_id": draw.word("keyword")}),
        "movie_info": (count // 2, lambda: film() | draw.told(FILM)),
        "movie_info_idx": (count // 6, lambda: film() | draw.told(RANKED)),
        "person_info": (count // 6, lambda: person() | draw.told(PERSON)),
        "movie_companies": (count // 5, lambda: film() | _company(draw)),
        "movie_link": (count // 8, lambda: film() | _link(draw)),
        "complete_cast": (count // 10, lambda: film() | _status(draw)),
    }
    return {name: [one() for _ in range(of)] for name, (of, one) in made.items()}


def _part(draw: _Draw) -> Row:
    role = draw.random.choice((None, draw.key(CHARACTERS)))
    return {
        "person_role_id": role, "note": draw.one(NOTES), "nr_order": draw.one((1, 2, 3, 4, 9, None)),
        "role_id": draw.word("role_type"),
    }  # fmt: skip


def _company(draw: _Draw) -> Row:
    kind = draw.word("company_type")
    return {"company_id": draw.key(COMPANIES), "company_type_id": kind, "note": draw.one(COMPANY_NOTES)}


def _link(draw: _Draw) -> Row:
    return {"linked_movie_id": draw.key(FILMS), "link_type_id": draw.word("link_type")}


def _status(draw: _Draw) -> Row:
    return {"subject_id": draw.one((1, 2)), "status_id": draw.one((3, 4))}
