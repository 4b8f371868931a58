//! SQLite's memory is bounded in the whole process, so what fills it has a process of its own.

mod database;
mod statements;

use database::database;
use statements::query;

/// One row may be made of values that fit alone.
#[tokio::test]
async fn a_row_is_bounded_in_columns_and_memory() {
    let (_folder, sql) = database("CREATE TABLE t (v TEXT)", false);
    let columns = |count: usize| {
        let all: Vec<_> = (0..count)
            .map(|at| format!("zeroblob(8000000) || '' AS c{at}"))
            .collect();
        format!("SELECT {}", all.join(", "))
    };
    let many = query(&sql, &columns(2001), "[]", 9)
        .await
        .expect_err("columns");
    assert_eq!(many.code.word(), "upstream_error", "{many:?}");
    let large = query(&sql, &columns(150), "[]", 9)
        .await
        .expect_err("memory");
    assert_eq!(large.code.word(), "unavailable", "{large:?}");
    assert_eq!(
        query(&sql, "SELECT 1 AS a", "[]", 9)
            .await
            .expect("afterwards")
            .records,
        r#"[{"a":1}]"#
    );
}
