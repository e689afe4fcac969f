import json

import lancedb
import pyarrow as pa
import pytest

from ekphory.errors import FilterError
from ekphory.filters.grammar import parse_filter
from ekphory.filters.lance_sql import to_lance_sql
from ekphory.filters.tree import And, Comparison, Field, IsNull, MetadataField, Not, Or


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("producer = 'it''s'", "`producer` = 'it''s'"),
        ("user != 'a'", "`user` <> 'a'"),
        ("importance > 1", "`importance` > 1.0"),
        ("sequence = 3.0", "`sequence` = 3"),
        ("sequence > 2.5", "`sequence` > 2"),
        ("sequence >= -2.5", "`sequence` > -3"),
        ("sequence < 2.5", "`sequence` < 3"),
        ("sequence <= -2.5", "`sequence` < -2"),
        ("sequence = 2.5", "FALSE"),
        ("sequence != 2.5", "`sequence` IS NOT NULL"),
        ("sequence IN (1, 2.0, 2.5)", "`sequence` IN (1, 2)"),
        ("sequence IN (2.5)", "FALSE"),
        ("id IN ()", "FALSE"),
        ("text CONTAINS '%'", "contains(`text`, '%')"),
        ("at > '1970-01-01T00:00:01'", "`at` > to_timestamp_micros(1000000)"),
        ("at < '1969-12-31'", "`at` < to_timestamp_micros(-86400000000)"),
        ("m.a = 'x'", "json_get_string(`metadata`, 's:a') = 'x'"),
        ("m.a > 2", "json_get_float(`metadata`, 'n:a') > 2.0"),
        ("m.a = true", "json_get_bool(`metadata`, 'b:a') = TRUE"),
        ("NOT session = 'a'", "NOT COALESCE(`session` = 'a', FALSE)"),
        ("NOT NOT session = 'a'", "`session` = 'a'"),
        (
            "NOT (session = 'a' OR role = 'b') AND (path IS NULL OR TRUE)",
            "NOT COALESCE(`session` = 'a', FALSE) AND NOT COALESCE(`role` = 'b', FALSE) "
            "AND (`path` IS NULL OR TRUE)",
        ),
    ],
)
def test_a_filter_compiles_to_quoted_sql(text, sql):
    assert to_lance_sql(parse_filter(text)) == sql


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    columns = {
        "id": pa.array(["a", "b", "c"]),
        "producer": pa.array(["x", "' OR TRUE --", None], pa.utf8()),
        "sequence": pa.array([1, 2**53 + 1, None], pa.int64()),
        "metadata": pa.array(
            [json.dumps({"s:k') OR TRUE --": "v"}), json.dumps({"n:k": -1.5}), "{}"], pa.json_()
        ),
    }
    database = lancedb.connect(tmp_path_factory.mktemp("sql"))
    return database.create_table("memories", pa.table(columns))


def ids(table, tree):
    rows = table.search().where(to_lance_sql(tree)).select(["id"]).limit(10).to_list()
    return sorted(row["id"] for row in rows)


ATTACKS = [
    "' OR TRUE --",
    "x' OR '1'='1",
    "\\' OR TRUE --",
    "x'; DELETE FROM memories; --",
    "x\u2019 OR TRUE --",
    "`) OR TRUE --",
    "$$ OR TRUE",
    "x') OR (TRUE",
    "' || `id` || '",
    "\n' OR TRUE /*",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_value_never_becomes_sql(table, attack):
    expected = ["b"] if attack == "' OR TRUE --" else []
    assert ids(table, Comparison(Field("producer"), "eq", attack)) == expected
    assert ids(table, Comparison(MetadataField("k"), "eq", attack)) == []


@pytest.mark.parametrize("attack", ["k') OR TRUE --", *ATTACKS])
def test_a_metadata_key_never_becomes_sql(table, attack):
    expected = ["a"] if attack == "k') OR TRUE --" else []
    assert ids(table, Comparison(MetadataField(attack), "eq", "v")) == expected


@pytest.mark.parametrize("name", ["id` = 'a' OR `id", "metadata", "ID", "id --", "row", "_rowid"])
def test_a_field_name_outside_the_list_is_refused(name):
    with pytest.raises(FilterError, match="unknown field"):
        to_lance_sql(IsNull(Field(name)))


def test_a_sequence_beyond_two_to_the_53_still_compares_exactly(table):
    assert ids(table, Comparison(Field("sequence"), "gt", 2**53)) == ["b"]
    assert ids(table, Comparison(Field("sequence"), "eq", 2**53)) == []


def alternating(depth):
    tree = Comparison(MetadataField("k"), "lt", 0)
    for level in range(depth):
        true_of_all = Comparison(Field("id"), "ne", f"none{level}")
        true_of_none = Comparison(Field("producer"), "eq", f"none{level}")
        tree = And((tree, true_of_all)) if level % 2 else Or((tree, true_of_none))
    return tree


def test_lance_reads_the_deepest_filter(table):
    assert ids(table, alternating(50)) == ["b"]
    assert ids(table, Not(alternating(49))) == ["a", "c"]


def test_lance_reads_fifty_negations(table):
    tree = IsNull(Field("producer"))
    for _ in range(50):
        tree = Not(tree)
    assert ids(table, tree) == ["c"]


def test_lance_reads_the_widest_filter(table):
    conditions = tuple(Comparison(Field("id"), "ne", f"none{i}") for i in range(999))
    tree = And((Not(IsNull(Field("producer"))), *conditions))
    assert ids(table, tree) == ["a", "b"]
    assert ids(table, Not(tree)) == ["c"]
