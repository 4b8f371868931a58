//! Lists in pages: each service has its own way to say that there are no more.

use std::cell::RefCell;

use weir_plugin_sdk::serde_json::{Value, json};
use weir_plugin_sdk::testing::{self, http};
use weir_plugin_sdk::{Adapter, Comparison, Condition, Order, Query};

use super::next_link;
use crate::tests::{limited, object, open, posts, service, try_walk, walk};

fn ids(records: &[Value]) -> Vec<u64> {
    let ids = records.iter().map(|record| record["id"].as_u64());
    ids.map(Option::unwrap).collect()
}

#[test]
fn the_next_page_is_found_among_links() {
    for (header, address) in [
        (
            r#"<https://api/items?page=2>; rel="next""#,
            Some("https://api/items?page=2"),
        ),
        (
            r#"<https://api/items?fields=id,name&page=2>; rel="next""#,
            Some("https://api/items?fields=id,name&page=2"),
        ),
        (
            r#"</x?a=1>; rel=prev, </x?a=3>; title="a, \"b\"; rel=last"; rel="last next""#,
            Some("/x?a=3"),
        ),
        (
            r#"</x?a=1>; title="</x?a=2>; rel=next", </x?a=3> ; Rel = NEXT"#,
            Some("/x?a=3"),
        ),
        (r#"</x>; rel=next"#, Some("/x")),
        (r#"</x?a=1>; rel="nextcloud""#, None),
        (r#"</x?a=1>; title="rel=next"#, None),
        ("</x?a=1", None),
        ("", None),
    ] {
        assert_eq!(next_link(header), address, "{header}");
    }
}

#[test]
fn every_pagination_walks_to_the_end_once() {
    let paginations = [
        r#"{"style":"none"}"#,
        r#"{"style":"page","page":"_page","size":"_limit","per_page":4}"#,
        r#"{"style":"link","size":"_limit","per_page":4}"#,
    ];
    for pagination in paginations {
        for sorted in ["[]", r#"["id"]"#] {
            let settings = format!(
                r#"{{"connection":"blog","sample":true,"list":{{"path":"/posts","sorted_by":{sorted},"pagination":{pagination}}}}}"#
            );
            for limit in [1, 4, 5, 100] {
                let store = service(posts(11));
                let rest = open(&settings);
                let mut added = 0;
                let walked = walk(&rest, limited(limit), || {
                    // A record is inserted behind and before the current place.
                    added -= 1;
                    store
                        .borrow_mut()
                        .insert(0, object(json!({"id": added, "title": "new"})));
                });
                assert_eq!(
                    ids(&walked),
                    (1..=11).collect::<Vec<_>>(),
                    "{pagination} {sorted} {limit}"
                );
            }
            service(posts(11));
            let order = vec![Order::parse("title"), Order::parse("-id")];
            let conditions = vec![Condition::new("title", Comparison::NotEquals, "t0")];
            let walked = walk(
                &open(&settings),
                Query {
                    limit: 2,
                    order,
                    conditions,
                    ..Query::default()
                },
                || {},
            );
            assert_eq!(
                ids(&walked),
                [10, 7, 4, 1, 11, 8, 5, 2],
                "{pagination} {sorted}"
            );
        }
    }
    // If the service sorts as asked, a page reads no further than it must.
    service(posts(1000));
    let settings = r#"{"connection":"blog","sample":true,"list":{"path":"/posts","sorted_by":["id"],
        "pagination":{"style":"page","page":"_page","size":"_limit","per_page":10}}}"#;
    let rest = open(settings);
    let before = http::sent().len();
    rest.read(&limited(15)).unwrap();
    assert_eq!(http::sent().len() - before, 2);
}

/// The answer of a service behind the last page. The lists are of 4 records a page at most, whatever is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Behind {
    /// It is the end.
    Sure,
    /// It is the end after a page that is shorter than the first, or than was asked for. After one that is as long, it may
    /// be that the service goes no further into a long list.
    Doubtful,
    /// It is the end where the first page was shorter than was asked for.
    Refused,
    /// It says nothing of the list.
    Failed,
}

/// Services cap the size of a page, and differ in what they say behind the last one.
#[test]
fn a_service_that_gives_fewer_than_asked_for_is_read_to_its_end() {
    let settings = r#"{"connection":"blog","fields":{"id":"integer"},"list":{"path":"/posts","sorted_by":["id"],
        "pagination":{"style":"page","page":"_page","size":"_limit","per_page":100}}}"#;
    let behind = [
        (200, "[]", Behind::Sure),
        (200, "null", Behind::Sure),
        (204, "", Behind::Sure),
        (404, "{}", Behind::Sure),
        (410, "{}", Behind::Sure),
        (416, "{}", Behind::Sure),
        (200, "the last one again", Behind::Sure),
        (400, r#"{"code":"invalid_page"}"#, Behind::Doubtful),
        (422, "{}", Behind::Doubtful),
        (200, "", Behind::Doubtful),
        (409, "{}", Behind::Refused),
        (418, "{}", Behind::Refused),
        (401, "{}", Behind::Failed),
        (403, "{}", Behind::Failed),
        (429, "{}", Behind::Failed),
        (500, "{}", Behind::Failed),
    ];
    for (status, body, means) in behind {
        for (count, limit) in [0, 1, 4, 5, 8, 11, 12]
            .into_iter()
            .flat_map(|count| [(count, 4), (count, 100)])
        {
            let service = service(posts(count));
            http::answer(move |request| {
                let page: usize = request.query[0].1.parse().unwrap();
                let service = service.borrow();
                let last = service.len().div_ceil(4).max(1);
                if page > last && body != "the last one again" {
                    return Ok(http::json(status, body));
                }
                let records: Vec<_> = service
                    .iter()
                    .skip((page.min(last) - 1) * 4)
                    .take(4)
                    .collect();
                Ok(http::json(200, &json!(records).to_string()))
            });
            let walked = try_walk(&open(settings), limited(limit), || {});
            let what = format!("{count} records by {limit}, then {status} {body}: {walked:?}");
            let is_refused = match means {
                Behind::Sure => false,
                Behind::Doubtful => count > 4 && count % 4 == 0,
                Behind::Refused => count > 4,
                Behind::Failed => count > 0,
            };
            if is_refused {
                let code = if status == 429 {
                    "rate_limited"
                } else {
                    "upstream_error"
                };
                assert!(walked.as_ref().is_err_and(|error| error.is(code)), "{what}");
                continue;
            }
            assert_eq!(
                ids(&walked.unwrap()),
                (1..=u64::from(count)).collect::<Vec<_>>(),
                "{what}"
            );
        }
    }
    // A page as large as was asked for may have others behind it, so that this is no end.
    testing::reset();
    http::answer(|request| match request.query[0].1.as_str() {
        "1" => Ok(http::json(200, &posts(100).to_string())),
        _ => Ok(http::json(400, "{}")),
    });
    let cut = open(settings).read(&limited(200)).unwrap_err();
    assert!(cut.is("upstream_error"), "{cut}");
}

/// Some services answer their last page for every number behind it, also when it is full.
#[test]
fn a_page_that_is_repeated_is_the_end() {
    let serve = |is_signed: bool| {
        let answers = RefCell::new(0);
        testing::reset();
        http::answer(move |request| {
            *answers.borrow_mut() += 1;
            let page = request.query[0].1.parse::<u32>().unwrap().min(3);
            let link = |id| {
                if is_signed {
                    format!("/{id}?signature={}", answers.borrow())
                } else {
                    format!("/{id}")
                }
            };
            let records =
                (page * 2 - 1..=page * 2).map(|id| json!({"no": {"id": id}, "link": link(id)}));
            Ok(http::json(200, &records.collect::<Value>().to_string()))
        });
    };
    let settings = |key: &str| {
        format!(
            r#"{{"connection":"blog","fields":{{"id":{{"type":"integer","at":"/no/id"}},"link":"string"}},{key}
            "list":{{"path":"/posts","pagination":{{"style":"page","page":"_page","size":"_limit","per_page":2}}}}}}"#
        )
    };
    // What changes from one answer to the next is not of the key.
    for (settings, is_signed) in [
        (settings(r#""key":["id"],"#), true),
        (settings("").replace("id\":{", "no\":{"), false),
    ] {
        serve(is_signed);
        let rest = open(&settings);
        assert_eq!(rest.shape.key.is_empty(), !is_signed);
        let walked = walk(&rest, limited(100), || {});
        let ids: Vec<_> = walked
            .iter()
            .map(|record| record.get("id").unwrap_or(&record["no"]).clone())
            .collect();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6], "{settings}");
        // Without a key, only the second repeat is sure.
        assert_eq!(http::sent().len(), if is_signed { 4 } else { 5 });
    }
}

/// Serves pages of 2 values, and from the number behind the last one of them again, or an answer without records.
fn serve_values(pages: &'static [&'static [u32]], behind: Again) {
    testing::reset();
    http::answer(move |request| {
        let at = request.query[0].1.parse::<usize>().unwrap() - 1;
        let values = match pages.get(at) {
            Some(values) => values,
            None => match behind {
                Again::First => pages[0],
                Again::Last => pages[pages.len() - 1],
                Again::Empty => &[],
                Again::Missing => return Ok(http::json(404, "{}")),
            },
        };
        Ok(http::json(
            200,
            &values
                .iter()
                .map(|value| json!({"v": value}))
                .collect::<Value>()
                .to_string(),
        ))
    });
}

#[derive(Clone, Copy, Debug)]
enum Again {
    First,
    Last,
    Empty,
    Missing,
}

fn values_settings(key: &str, scan_max: usize) -> String {
    format!(
        r#"{{"connection":"blog","fields":{{"v":"integer"}},{key}"list":{{"path":"/posts","scan_max":{scan_max},
        "pagination":{{"style":"page","page":"_page","size":"_limit","per_page":2}}}}}}"#
    )
}

fn values_of(settings: &str) -> Vec<u64> {
    let walked = walk(&open(settings), limited(100), || {});
    walked
        .iter()
        .map(|record| record["v"].as_u64().unwrap())
        .collect()
}

/// Some services answer their first page for every number behind the last one.
#[test]
fn a_first_page_that_is_repeated_is_the_end() {
    for key in ["", r#""key":["v"],"#] {
        serve_values(&[&[1, 2], &[3, 4], &[5]], Again::First);
        // The repeat is no record to look through.
        assert_eq!(
            values_of(&values_settings(key, 5)),
            [1, 2, 3, 4, 5],
            "{key}"
        );
    }
}

/// Without a key, records may be letter for letter the same.
#[test]
fn equal_pages_of_a_list_without_a_key_are_not_its_end() {
    let lists: [&[&[u32]]; 6] = [
        &[&[1, 1], &[1, 1], &[2]],
        &[&[1, 2], &[3, 3], &[3, 3], &[4]],
        &[&[1, 1], &[2, 2], &[1, 1], &[3]],
        &[&[1, 2], &[3, 3], &[3, 3], &[1, 2], &[4, 4], &[4, 4], &[5]],
        &[&[1], &[1], &[2]],
        &[&[1, 2], &[3]],
    ];
    for pages in lists {
        for behind in [Again::First, Again::Last, Again::Empty, Again::Missing] {
            serve_values(pages, behind);
            let mut sorted = pages.concat();
            let mut found = values_of(&values_settings("", 100));
            sorted.sort_unstable();
            found.sort_unstable();
            let expected: Vec<_> = sorted.into_iter().map(u64::from).collect();
            assert_eq!(found, expected, "{pages:?} {behind:?}");
        }
    }
    // The service has another word for the end, so that the repeat was none.
    for behind in [Again::Empty, Again::Missing] {
        serve_values(&[&[1, 1], &[1, 1]], behind);
        assert_eq!(
            values_of(&values_settings("", 100)),
            [1, 1, 1, 1],
            "{behind:?}"
        );
    }
}

/// The size of a page is unknown if the request does not say it, but `per_page` bounds it.
#[test]
fn a_refusal_behind_a_page_of_per_page_records_is_an_error() {
    let settings = r#"{"connection":"blog","fields":{"id":"integer"},"list":{"path":"/posts",
        "pagination":{"style":"page","page":"_page"}}}"#;
    for (status, body) in [(400, "{}"), (422, "{}"), (200, "")] {
        for (count, is_end) in [(99, true), (100, false)] {
            testing::reset();
            http::answer(move |request| match request.query[0].1.as_str() {
                "1" => Ok(http::json(200, &posts(count).to_string())),
                _ => Ok(http::json(status, body)),
            });
            let walked = try_walk(&open(settings), limited(200), || {});
            let what = format!("{count} records, then {status} {body:?}: {walked:?}");
            match is_end {
                true => assert_eq!(walked.map(|walked| walked.len()), Ok(99), "{what}"),
                false => assert!(
                    walked.is_err_and(|error| error.is("upstream_error")),
                    "{what}"
                ),
            }
        }
    }
}

/// A record that is inserted while pages are read shifts one of them to the next page, where it is found again.
#[test]
fn a_record_found_twice_does_not_end_a_sorted_list() {
    let settings = r#"{"connection":"blog","fields":{"id":"integer"},"key":["id"],"list":{"path":"/posts","sorted_by":["id"],
        "pagination":{"style":"page","page":"_page","size":"_limit","per_page":2}}}"#;
    let store = service(posts(9));
    let asked = RefCell::new(0);
    http::answer(move |request| {
        *asked.borrow_mut() += 1;
        let mut store = store.borrow_mut();
        if *asked.borrow() == 2 {
            store.insert(0, object(json!({"id": 0})));
        }
        let page: usize = request.query[0].1.parse().unwrap();
        let records: Vec<_> = store.iter().skip((page - 1) * 2).take(2).collect();
        Ok(http::json(200, &json!(records).to_string()))
    });
    let walked = walk(&open(settings), limited(3), || {});
    assert_eq!(ids(&walked), (1..=9).collect::<Vec<_>>());
}

/// A service that filters a page after it is cut gives fewer in the middle. Its author says if it does not.
#[test]
fn a_short_page_is_the_last_one_only_where_the_settings_say_so() {
    let settings = |pagination: &str| {
        format!(
            r#"{{"connection":"blog","fields":{{"id":"integer"}},"list":{{"path":"/posts","pagination":{pagination}}}}}"#
        )
    };
    for (pagination, asked, found) in [
        (
            r#"{"style":"page","page":"page","size":"_limit","per_page":4}"#,
            5,
            11,
        ),
        (r#"{"style":"page","page":"page"}"#, 5, 11),
        (
            r#"{"style":"page","page":"page","size":"_limit","per_page":4,"ends":"short"}"#,
            2,
            6,
        ),
        (r#"{"style":"page","page":"page","ends":"short"}"#, 2, 6),
        (
            r#"{"style":"offset","offset":"skip","limit":"_limit","per_page":4,"ends":"short"}"#,
            2,
            6,
        ),
        (
            r#"{"style":"offset","offset":"skip","limit":"_limit","per_page":4,"ends":"empty"}"#,
            5,
            11,
        ),
    ] {
        testing::reset();
        http::answer(|request| {
            let (name, at) = &request.query[0];
            let ids: &[u32] = match (name.as_str(), at.as_str()) {
                ("page", "1") | ("skip", "0") => &[1, 2, 3, 4],
                ("page", "2") | ("skip", "4") => &[5, 6],
                ("page", "3") | ("skip", "6") => &[7, 8, 9, 10],
                ("page", "4") | ("skip", "10") => &[11],
                _ => &[],
            };
            Ok(http::json(
                200,
                &ids.iter()
                    .map(|id| json!({"id": id}))
                    .collect::<Value>()
                    .to_string(),
            ))
        });
        let walked = walk(&open(&settings(pagination)), limited(100), || {});
        assert_eq!(
            (http::sent().len(), ids(&walked)),
            (asked, (1..=found).collect()),
            "{pagination}"
        );
    }
}

/// Only the query of a link is taken, so that a link without one leads nowhere.
#[test]
fn a_next_page_at_another_path_is_not_taken_for_the_end() {
    let settings = r#"{"connection":"blog","fields":{"id":"integer"},
        "list":{"path":"/posts","pagination":{"style":"link"}}}"#;
    testing::reset();
    http::answer(|_| {
        let mut response = http::json(200, r#"[{"id":1}]"#);
        response
            .headers
            .push(("Link".into(), r#"</posts/page/2>; rel="next""#.into()));
        Ok(response)
    });
    let refused = open(settings).read(&limited(10)).unwrap_err();
    assert!(
        refused.is("upstream_error") && refused.message.contains("next page"),
        "{refused}"
    );
}
