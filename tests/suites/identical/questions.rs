//! The questions that every source is asked.

use serde_json::{Value, json};

use super::nasty;

/// Groups of every type, each measure, conditions on measures, orders, and what is refused.
#[rustfmt::skip]
pub(super) fn summaries() -> Vec<Value> {
    let exact = ["count", "sum(count)", "avg(count)", "min(count)", "max(count)", "sum(amount)", "avg(amount)", "min(amount)",
        "max(amount)", "distinct(amount)", "min(ratio)", "max(ratio)", "sum(big)", "avg(big)", "min(day)", "max(day)", "min(at)",
        "max(at)", "distinct(status)", "distinct(flag)", "distinct(day)", "distinct(at)", "distinct(name)"];
    let mut asked = vec![
        json!({}),
        json!({"measures": ["sum(amount)"]}),
        json!({"measures": ["avg(amount)"], "name_starts": "no record begins so"}),
        // Eighths, whose sums are exact in any order.
        json!({"measures": ["sum(ratio)", "avg(ratio)"], "name_starts": "Plain", "group_by": ["status"]}),
        json!({"group_by": ["status"], "measures": ["count", "sum(amount)"], "order_by": ["-sum(amount)"]}),
        json!({"group_by": ["status", "flag"], "measures": ["avg(count)"], "order_by": ["avg(count)", "-flag"]}),
        json!({"group_by": ["status", "month(day)", "flag"], "measures": ["count"], "limit": 7}),
        json!({"group_by": ["code"], "measures": ["count"], "having": [{"measure": "count", "at_least": 13}]}),
        json!({"group_by": ["code"], "measures": ["sum(amount)"], "having": [{"measure": "sum(amount)", "at_least": 100.25, "at_most": 850}]}),
        json!({"group_by": ["status"], "measures": ["count"], "min_count": 50, "limit": 1}),
        json!({"group_by": ["status"], "having": [{"measure": "sum(amount)", "at_least": 1}]}),
        json!({"group_by": ["status"], "order_by": ["-code"]}),
        json!({"group_by": ["name"]}),
        json!({"group_by": ["status", "code", "flag", "day"]}),
        json!({"measures": ["sum(status)"]}),
        json!({"limit": 501}),
    ];
    for group in ["status", "code", "amount", "ratio", "flag", "day(day)", "week(day)", "month(day)", "quarter(day)", "year(day)",
        "day(at)", "week(at)", "month(at)", "quarter(at)", "year(at)"] {
        asked.extend(exact.chunks(8).map(|some| json!({"group_by": [group], "measures": some, "limit": 500})));
    }
    for some in exact.chunks(8) {
        asked.push(json!({"measures": some}));
        asked.push(json!({"measures": some, "status": "nothing like it"}));
    }
    asked.push(json!({"measures": &exact[..11]}));
    asked.push(json!({"having": [{"measure": "max(day)", "at_least": 1}], "measures": ["max(day)", "count"]}));
    asked
}

/// Orders and columns of a list.
#[rustfmt::skip]
pub(super) fn list_choices() -> Vec<Value> {
    let mut asked: Vec<Value> = ["id", "status", "code", "name", "amount", "big", "count", "ratio", "day", "at", "flag"]
        .into_iter()
        .flat_map(|column| [json!({"order_by": [column], "limit": 40}), json!({"order_by": [format!("-{column}")], "limit": 40})])
        .collect();
    asked.extend([
        json!({"order_by": ["status", "-flag", "count"], "limit": 100}),
        json!({"order_by": ["-day", "name"], "status": "open"}),
        json!({"columns": ["name"], "limit": 5}),
        json!({"columns": ["status", "amount", "id"], "limit": 5}),
        json!({"columns": ["day"], "order_by": ["-amount"], "limit": 7}),
        json!({"status": "open", "limit": 3, "columns": ["id"], "order_by": ["-id"]}),
        json!({"order_by": null, "columns": null, "limit": 2}),
        json!({"order_by": ["nothing"]}),
        json!({"order_by": ["amount", "-amount"]}),
        json!({"order_by": []}),
        json!({"order_by": "amount"}),
        json!({"order_by": ["amount; DROP TABLE items"]}),
        json!({"order_by": ["id", "status", "code", "name"]}),
        json!({"columns": []}),
        json!({"columns": ["id", "id"]}),
        json!({"columns": ["id\" FROM items --"]}),
    ]);
    asked
}

/// Totals of a list.
pub(super) fn totals() -> Vec<Value> {
    vec![
        json!({"with_total": true}),
        json!({"with_total": true, "limit": 100}),
        json!({"with_total": false, "limit": 1}),
        json!({"with_total": null, "limit": 1}),
        json!({"with_total": true, "status": "open", "limit": 3, "order_by": ["-id"]}),
        json!({"with_total": true, "status": "nothing like it"}),
        json!({"with_total": "yes"}),
    ]
}

/// Hits, misses, ambiguity, every match, every kind of refused argument.
#[rustfmt::skip]
pub(super) fn reads() -> Vec<(&'static str, Value)> {
    let mut calls: Vec<(&'static str, Value)> = nasty::rows()
        .iter()
        .take(24)
        .map(|row| ("get_item", json!({"id": row["id"]})))
        .collect();
    calls.extend([
        // Misses, and ids that only a careless comparison would find.
        ("get_item", json!({"id": "7"})),
        ("get_item", json!({"id": "nothing"})),
        ("get_item", json!({"id": "ZEBRA"})),
        ("get_item", json!({"id": "007 "})),
        ("get_item", json!({"id": "e\u{301}"})),
        ("get_item", json!({"id": "' OR '1'='1"})),
        ("get_item", json!({"id": "../items"})),
        ("get_item", json!({"id": "%"})),
        // These find one record, several, and none.
        ("find_item", json!({"name": "Bond"})),
        ("find_item", json!({"name": "Twin"})),
        ("find_item", json!({"name": "twin"})),
        ("find_item", json!({"name": ""})),
        // These compare values of every type for equality.
        ("list_items", json!({"status": "open", "limit": 100})),
        ("list_items", json!({"status": "Open"})),
        ("list_items", json!({"status": "null"})),
        ("list_items", json!({"code": "0042"})),
        ("list_items", json!({"code": "42"})),
        ("list_items", json!({"amount": "0.07"})),
        ("list_items", json!({"big": "9007199254740993"})),
        ("list_items", json!({"big": "9007199254740992"})),
        ("list_items", json!({"count": 9_007_199_254_740_991_i64})),
        ("list_items", json!({"count": 7.0})),
        ("list_items", json!({"ratio": 0.1})),
        ("list_items", json!({"day": "2024-02-29"})),
        ("list_items", json!({"at": "2024-02-29T23:59:59Z"})),
        ("list_items", json!({"at": "2024-03-01T00:59:59+01:00"})),
        ("list_items", json!({"flag": true, "limit": 5})),
        ("list_items", json!({"flag": false, "status": "closed", "limit": 5})),
        // The other matches.
        ("list_items", json!({"status_not": "open", "limit": 100})),
        ("list_items", json!({"ids": ["007", "zebra", "nothing", "😀"]})),
        ("list_items", json!({"ids": []})),
        ("list_items", json!({"min_count": 125})),
        ("list_items", json!({"max_count": 0})),
        ("list_items", json!({"min_amount": "99999999999999999999.98"})),
        ("list_items", json!({"max_amount": "-0.001"})),
        ("list_items", json!({"from": "2024-03-15", "to": "2024-03-17"})),
        ("list_items", json!({"since": "2024-03-18T12:00:00Z", "limit": 10})),
        ("list_items", json!({"name_contains": "%"})),
        ("list_items", json!({"name_contains": "_"})),
        ("list_items", json!({"name_contains": "\\"})),
        ("list_items", json!({"name_contains": "ärger"})),
        ("list_items", json!({"name_contains": "strasse"})),
        ("list_items", json!({"name_starts": "Ä"})),
        ("list_items", json!({"name_starts": "=cmd"})),
        ("list_items", json!({"no_status": true})),
        ("list_items", json!({"no_status": false, "limit": 3})),
        ("list_items", json!({"status": "open", "min_count": 3, "name_contains": "a", "limit": 50})),
        // These are refused before any source is asked.
        ("get_item", json!({})),
        ("get_item", json!({"id": 7})),
        ("get_item", json!({"id": null})),
        ("get_item", json!({"id": "x".repeat(300)})),
        ("list_items", json!({"limit": 0})),
        ("list_items", json!({"limit": 101})),
        ("list_items", json!({"limit": "7"})),
        ("list_items", json!({"cursor": "made up"})),
        ("list_items", json!({"day": "2023-02-29"})),
        ("list_items", json!({"at": "yesterday"})),
        ("list_items", json!({"amount": "1,5"})),
        ("list_items", json!({"count": 1.5})),
        ("list_items", json!({"unknown": 1, "count": "x", "limit": -1})),
        ("list_by_amount", json!({"limit": 100})),
        ("list_by_amount", json!({"limit": 3})),
    ]);
    calls
}

#[rustfmt::skip]
pub(super) fn writes() -> Vec<(&'static str, Value)> {
    vec![
        ("create_item", json!({"id": "new-1", "code": "008", "name": "=1+1", "amount": "12.50", "big": "9007199254740993", "count": -1, "ratio": 0.1, "day": "2024-02-29", "at": "2024-02-29T12:00:00+02:00", "flag": true, "status": "done"})),
        ("get_item", json!({"id": "new-1"})),
        ("create_item", json!({"id": "new-1", "code": "x", "name": "again"})),
        ("create_item", json!({"id": "new-2", "code": "", "name": "two\nlines, \"quoted\" 😀"})),
        ("get_item", json!({"id": "new-2"})),
        ("create_item", json!({"id": "'; DROP TABLE items; --2", "code": "%s", "name": "${jndi}"})),
        ("create_item", json!({"code": "no id", "name": "x"})),
        ("create_item", json!({"id": "new-3", "code": "c", "name": "n", "day": "2023-02-30"})),
        ("get_item", json!({"id": "new-3"})),
        ("update_item", json!({"id": "new-1", "status": null, "amount": "-1.50"})),
        ("get_item", json!({"id": "new-1"})),
        ("update_item", json!({"id": "new-1", "name": "renamed", "count": 5, "flag": false})),
        ("update_item", json!({"id": "new-1"})),
        ("update_item", json!({"id": "absent", "name": "x"})),
        ("update_item", json!({"id": "new-1", "name": null})),
        ("get_item", json!({"id": "new-1"})),
        ("delete_item", json!({"id": "new-2"})),
        ("delete_item", json!({"id": "new-2"})),
        ("get_item", json!({"id": "new-2"})),
        ("list_items", json!({"status": "done"})),
        ("list_items", json!({"code": "008"})),
    ]
}
