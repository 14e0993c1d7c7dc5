"""The scanner: what it finds in a statement, what it refuses, and how it cuts a script."""

from __future__ import annotations

from contextlib import suppress

import apsw
import apsw.ext
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import BadStatement
from penstock.model.limits import Limits
from penstock.model.statement import one_line, pieces, readable, scan, to_psycopg, writable

# -- what it finds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql, verb, names, writes",
    [
        ("select 1", "select", (), False),
        ("  SELECT a FROM t WHERE b = :b and c = :c and d = :b;  ", "select", ("b", "c"), False),
        ("values (1), (:two)", "values", ("two",), False),
        ("(select 1) union (select 2)", "select", (), False),
        ("insert into t (a) values (:a)", "insert", ("a",), True),
        ("with x as (select 1) select * from x", "select", (), False),
        (
            "with recursive x(n) as (select :n union all select n from x) insert into t select * from x",
            "insert",
            ("n",),
            True,
        ),
        ("with replace as (select 1) delete from t", "delete", (), True),
        ("with x as (delete from t returning a) select * from x", "select", (), True),
        ("select replace(a, 'x', 'y'), (replace(a, 'x', 'y')) from t", "select", (), False),
        ("select a into other from t", "select", (), True),
        ("explain query plan delete from t", "explain", (), False),
        ("explain (analyze) delete from t", "explain", (), True),
        ("explain analyze select 1", "explain", (), False),
        ("select :a::int, '{}'::jsonb, now()::date", "select", ("a",), False),
        ("select array[:a, :b], x[1:2], y[lo:hi], array [[1, :c]]", "select", ("a", "b", "c"), False),
        ("select [a :b] from [t]", "select", (), False),
        ("select data @> :a, tags @@ to_tsquery(:q), 7 % seven", "select", ("a", "q"), False),
        ("select E'a\\n:b', $$ :c ; $$, $x$ $$ :d $x$", "select", (), False),
        ("-- :a\nselect /* :b ; */ 1 -- :c", "select", (), False),
        ("create table t (a text)", "create", (), True),
    ],
)
def test_a_statement_says_what_it_does_and_which_names_it_takes(
    sql: str, verb: str, names: tuple[str, ...], writes: bool
) -> None:
    statement = scan(sql)

    assert (statement.verb, statement.names, statement.writes) == (verb, names, writes)


@pytest.mark.parametrize(
    "sql, tables",
    [
        ("insert into apps (a) values (1)", ("apps",)),
        ("insert or ignore into main.apps values (1)", ("apps",)),
        ('replace into "Apps" values (1)', ("apps",)),
        ("update or replace [apps] set a = 1", ("apps",)),
        ("delete from only public.apps", ("apps",)),
        ("with x as (update a set b = 1 returning b) insert into c select b from x", ("a", "c")),
        ("select * from apps", ()),
        ("create table apps (a)", ()),
    ],
)
def test_the_tables_that_rows_are_written_to_are_known(sql: str, tables: tuple[str, ...]) -> None:
    assert scan(sql).tables_written == tables


@pytest.mark.parametrize(
    "sql",
    [
        'insert or replace into main."apps" (a) values (1) on conflict do nothing returning a',
        "update or ignore only s.apps set a = :b where c",
        "with x as (delete from a.b returning c) insert into d select c from x",
        "explain analyze merge into a.b using c on true when matched then delete",
    ],
)
def test_a_statement_that_breaks_off_anywhere_is_read_too(sql: str) -> None:
    """SQLite says what is missing; here nothing may fail before it does."""
    for end in range(1, len(sql)):
        with suppress(BadStatement):
            assert scan(sql[:end]).text == sql[:end].strip()


def test_the_same_text_is_read_once() -> None:
    assert scan("select 1 as once") is scan("select 1 as once")


def test_a_statement_has_no_semicolon_and_no_space_around_it() -> None:
    assert scan("\n  select 1 ; ; -- done\n").text == "select 1"


# -- what it refuses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", ["", "  \n", ";", "-- only a comment", "/* and another */ ;"])
def test_an_empty_statement_is_refused(sql: str) -> None:
    with pytest.raises(BadStatement, match="empty"):
        scan(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select 1; select 2",
        "insert into t values (';'); delete from t",
        "select e'\\\\'; delete from t --'",
        "create trigger x after insert on t begin select 1; end; drop table t",
    ],
)
def test_a_second_statement_is_refused(sql: str) -> None:
    with pytest.raises(BadStatement, match="2 statements"):
        scan(sql)


@pytest.mark.parametrize(
    "verb",
    [
        *("begin", "commit", "end", "rollback", "savepoint a", "release a", "attach 'x' as y", "detach y", "vacuum"),
        *(
            "pragma journal_mode",
            "set a = 1",
            "lock t",
            "listen a",
            "notify a",
            "copy t from stdin",
            "START TRANSACTION",
        ),
        *("prepare a as select 1", "execute a", "reset all", "discard all", "abort"),
    ],
)
def test_what_rules_the_transaction_or_the_connection_is_refused(verb: str) -> None:
    with pytest.raises(BadStatement, match="engine"):
        scan(f"/* hidden */ {verb};")


@pytest.mark.parametrize("mark", ["?", "?1", "$1", "$name", "@x", "%s", "%(name)s", ":1", ":a$b", ":größe"])
def test_a_positional_parameter_is_refused_with_the_way_out(mark: str) -> None:
    with pytest.raises(BadStatement, match="Use :name") as refused:
        scan(f"select {mark} from t")

    assert refused.value.facts["found"] == mark


@pytest.mark.parametrize(
    "sql",
    [
        "select 'open",
        'select "open',
        "select `open",
        "select [open",
        "select /* open",
        "select /* a /* nested */ comment */ 1",
        "select $x$ open $y$",
        "select e'\\' ; delete from t --'",  # SQLite would end the string at the second quote
        "select a[' ; ] ; delete from t; --']",  # and the name at the first bracket
        'insert into U&"penstock\\005fx" values (1)',
        "select 1 -- a\rdelete from t",  # PostgreSQL ends a comment there, SQLite does not
    ],
)
def test_text_that_the_databases_read_differently_or_not_at_all_is_refused(sql: str) -> None:
    with pytest.raises(BadStatement, match="line 1"):
        scan(sql)


@pytest.mark.parametrize("sql", ["select 1 \0", "select '\ud800'", "42", "'select'", "with x as (select 1)"])
def test_text_that_is_no_statement_is_refused(sql: str) -> None:
    with pytest.raises(BadStatement):
        scan(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into penstock_messages values (1)",
        "INSERT INTO PenStock_Messages VALUES (1)",
        'update "penstock_messages" set a = 1',
        "delete from [Penstock_Messages]",
        "delete from `penstock_messages`",
        "delete from 'penstock_messages'",
        "update or ignore main.'penstock_messages' set a = 1",
        "insert or replace into 'penstock_messages' values (1)",
        "delete from penstock . penstock_messages",
        "replace/**/into/**/penstock_messages values (1)",
        "insert into t select * from penstock_messages",
        "with x as (select 1) delete from penstock_messages",
        "with x as (delete from penstock_messages returning a) select * from x",
        "create trigger t after insert on apps begin delete from penstock_messages; end",
        "drop table 'penstock_messages'",
        "explain analyze delete from penstock_messages",
    ],
)
def test_a_statement_that_writes_may_not_name_the_engines_tables(sql: str) -> None:
    with pytest.raises(BadStatement, match="reserved for the engine"):
        scan(sql)


def test_the_engines_tables_may_be_read() -> None:
    assert readable("select count(*) from penstock_messages").names == ()


def test_a_value_that_looks_like_an_engine_table_may_be_written() -> None:
    assert writable("insert into t (a, b) values ('penstock_messages', :penstock_b)").names == ("penstock_b",)


@pytest.mark.spec("A8-05")
def test_a_statement_over_the_length_limit_is_refused_by_its_bytes() -> None:
    sql = "select '" + "ü" * 40 + "'"  # 49 characters, 89 bytes

    assert scan(sql, Limits(sql_bytes_max=89)).verb == "select"
    with pytest.raises(BadStatement, match="88 are allowed") as refused:
        scan(sql, Limits(sql_bytes_max=88))
    assert refused.value.facts == {"size": 89, "allowed": 88}


@pytest.mark.spec("A8-05", "A15-16")
def test_a_statement_with_too_many_parameters_is_refused() -> None:
    def statement(count: int) -> str:
        return f"select {', '.join(f':p{i}' for i in range(count))}"

    assert len(readable(statement(100), Limits(parameters_max=100)).names) == 100
    with pytest.raises(BadStatement, match="101 parameters, and 100 are allowed"):
        readable(statement(101), Limits(parameters_max=100))


CHANGES_ROWS = """insert into t values (1)
update t set a = 1
delete from t
replace into t values (1)
with x as (select 1) insert into t select * from x
with x as (delete from t returning 1) select * from x"""


@pytest.mark.parametrize("sql", [*CHANGES_ROWS.splitlines(), "drop table t"])
def test_a_read_refuses_what_writes(sql: str) -> None:
    with pytest.raises(BadStatement, match=r"db\.write"):
        readable(sql)


@pytest.mark.parametrize("sql", CHANGES_ROWS.splitlines())
def test_a_write_takes_what_changes_rows(sql: str) -> None:
    assert writable(sql).writes


@pytest.mark.parametrize(
    "sql, way_out",
    [
        ("create table t (a)", "migrations"),
        ("drop table t", "migrations"),
        ("alter table t add column a", "migrations"),
        ("select 1", "reading call"),
        ("select a into other from t", "Only insert"),
        ("do $$ begin end $$", "Only insert"),
        ("explain analyze with x as (delete from t returning 1) select 1", "Only insert"),
    ],
)
def test_a_write_refuses_everything_else_with_the_way_out(sql: str, way_out: str) -> None:
    with pytest.raises(BadStatement, match=way_out):
        writable(sql)


# -- scripts ------------------------------------------------------------------------------------------------

TRIGGER = """create trigger keep after update on t when new.a <> ';'
begin
    update t set b = case when new.a then 'end;' else 2 end; -- end;
    delete from log where at < 1;
end"""


def split(script: str) -> list[str]:
    return [piece.text for piece in pieces(script)]


def test_a_script_is_cut_into_statements_that_run() -> None:
    script = f"""
        create table t (a, b); create table log (at); -- and a log
        /* the trigger; */
        {TRIGGER};
        insert into t values ('x;y', "z"), ('it''s', ';');
        update t set a = 'done'
    """.replace('"z"', "'z'")
    db = apsw.Connection(":memory:")

    statements = split(script)
    for statement in statements:
        scan(statement)
        db.execute(statement)

    assert len(statements) == 5
    assert statements[2].endswith(TRIGGER)
    assert db.execute("select a, b from t").fetchall() == [("done", 2), ("done", 2)]


def test_postgres_routines_stay_in_one_piece() -> None:
    function = "create or replace function f() returns int language sql begin atomic select 1; select 2; end"
    body = "create function g() returns trigger language plpgsql as $$ begin delete from t; end; $$"
    trigger = "create constraint trigger x after insert on t execute function g()"

    assert split(f"{function};\n{body};\n{trigger};\nselect 1;") == [function, body, trigger, "select 1"]


def test_a_table_with_columns_called_trigger_and_begin_is_no_trigger() -> None:
    assert split("create table t (trigger text, begin text); select 1") == [
        "create table t (trigger text, begin text)",
        "select 1",
    ]


def test_psycopg_gets_its_own_parameters_and_doubled_percent_signs() -> None:
    statement = scan("select :a::int, ':a', a % 2, '10%' -- 5%\n from t where b like :b and c = :a")

    assert to_psycopg(statement) == (
        "select %(a)s::int, ':a', a %% 2, '10%%' -- 5%%\n from t where b like %(b)s and c = %(a)s"
    )


def test_one_line_has_no_comments_and_no_breaks() -> None:
    assert one_line("select a, -- the first\n   /* all\n of */ b\r\nfrom\tt\x1b[2J") == "select a, b from t?[2J"


def test_one_line_is_no_longer_than_asked() -> None:
    assert one_line("select " + "a" * 1_000, 20) == "select " + "a" * 12 + "…"


# -- properties ---------------------------------------------------------------------------------------------

FRAGMENTS = st.sampled_from(
    "select insert into delete from t penstock_x with as ( ) , ; ; ' '' \" ` [ ] -- /* */ \n :a :b :: := ? $1 @x %s $$ $a$ "
    "e' \\ \\' create trigger begin end function atomic explain analyze update set replace or array . 1 x = u&\" \r \ud800 "
    "\0 é".split(" ")
)
SOUP = (
    st.lists(FRAGMENTS | st.text(max_size=5), max_size=30).map(" ".join) | st.lists(FRAGMENTS).map("".join) | st.text()
)


@given(SOUP)
def test_no_text_makes_the_scanner_raise_anything_but_bad_statement(text: str) -> None:
    for read in (scan, readable, writable, split):
        with suppress(BadStatement):
            read(text)
    assert len(one_line(text, 50)) <= 50


def _doubled(quote: str) -> st.SearchStrategy[str]:
    return HIDDEN.map(lambda text: quote + text.replace(quote, quote * 2) + quote)


HIDDEN = st.lists(st.sampled_from([":a", ":b c", ";", "'", '"', "`", "[", "--", "$$", "?", "%s", "\n", "x"])).map(
    "".join
)
QUOTED = st.one_of(
    _doubled("'"),
    _doubled('"'),
    _doubled("`"),
    HIDDEN.map(lambda text: f"[{text}]"),
    HIDDEN.map(lambda text: "--" + text.replace("\n", "") + "\n"),
    HIDDEN.map(lambda text: f"/*{text}*/"),
    HIDDEN.map(lambda text: f"$q${text}$q$"),
)


@given(st.lists(QUOTED), st.lists(st.sampled_from(["seen", "kept"])))
def test_quoted_text_never_yields_parameters(quoted: list[str], names: list[str]) -> None:
    sql = "select " + " , ".join([*quoted, *(f":{name}" for name in names), *quoted])

    assert scan(sql).names == tuple(dict.fromkeys(names))


LITERALS = st.one_of(
    _doubled("'"), HIDDEN.map(lambda text: f"/*{text}*/ 1"), st.sampled_from(["1", ":a", ":b", ":c_1", "null"])
)


@given(st.lists(LITERALS, min_size=1, max_size=6))
def test_sqlite_finds_the_same_parameters_and_no_second_statement(values: list[str]) -> None:
    sql = "select " + ", ".join(values)

    found = apsw.ext.query_info(apsw.Connection(":memory:"), sql)

    assert found.query_remaining is None
    assert found.bindings_names == scan(sql).names


STATEMENTS = st.one_of(
    st.sampled_from([TRIGGER, "select 1", "-- above\nselect 2", "create table t (a, b)", "select $$ ; $$"]),
    st.tuples(QUOTED, QUOTED).map(lambda pair: f"select {pair[0]} , {pair[1]} , 3"),
)


@given(st.lists(STATEMENTS), st.sampled_from([";\n", " ; -- behind\n", ";;\n\n"]))
def test_what_is_joined_is_split_again(statements: list[str], between: str) -> None:
    assert split(between.join(statements)) == statements


@given(SOUP)
def test_splitting_twice_changes_nothing(text: str) -> None:
    try:
        statements = split(text)
    except BadStatement:
        return
    assert split(";\n".join(statements)) == statements
