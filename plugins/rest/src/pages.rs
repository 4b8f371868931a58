//! The pages of a list, one after the other.

use std::hash::{DefaultHasher, Hash, Hasher};

use weir_plugin_sdk::serde_json::{self, value::RawValue};
use weir_plugin_sdk::{Error, http};

use crate::answer;
use crate::request::request;
use crate::settings::{List, Pagination, Settings};

/// What the answer of one page says of the next.
pub(crate) enum Next<'a> {
    /// The number or the offset of the page.
    Number(u64),
    Cursor(&'a RawValue),
    Query(String),
}

/// The bound on pages; a list with more never ends.
const PAGES_MAX: usize = 900;

pub(crate) struct Pages<'a> {
    settings: &'a Settings,
    list: &'a List,
    query: Vec<(String, String)>,
    /// The next page: a page number, an offset, a cursor, or a path with its query. `None` if there is none.
    next: Option<String>,
    read: usize,
    /// The number of records on the first page that was read.
    first_count: Option<usize>,
    /// The digest of the last page, if it had fewer records than were asked for: it may have been the last one, or as
    /// many as the service gives.
    short: Option<u64>,
}

pub(crate) struct PageOfList {
    pub(crate) records: Vec<Box<RawValue>>,
    /// The position by which this page is found again.
    pub(crate) position: String,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(
        settings: &'a Settings,
        list: &'a List,
        filters: Vec<(String, String)>,
        from: Option<&str>,
    ) -> Self {
        let first = match &list.pagination {
            Pagination::Page { first, .. } => first.to_string(),
            Pagination::Offset { .. } => "0".to_owned(),
            _ => String::new(),
        };
        let mut query: Vec<_> = list.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        query.extend(filters);
        Self {
            settings,
            list,
            query,
            next: Some(from.map_or(first, str::to_owned)),
            read: 0,
            first_count: None,
            short: None,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<PageOfList>, Error> {
        let Some(position) = self.next.take() else { return Ok(None) };
        if self.read == PAGES_MAX {
            return Err(Error::new("too_large", "The list has too many pages; narrow it with a condition."));
        }
        self.read += 1;
        let response = http::send(&self.request(&position))?;
        let body = match answer::checked(&response) {
            // There is no page behind the last one. Services say so in many ways.
            Err(error) if self.short.is_some() && (error.is("not_found") || error.is("invalid")) => return Ok(None),
            Err(error) if ["not_found", "invalid", "conflict"].iter().any(|code| error.is(code)) => {
                // The failure concerns the list itself, which no caller named.
                let said = Error::upstream_error("The web service does not answer the list.");
                return Err(Error { details: error.details, ..said });
            }
            body => body?,
        };
        let records = answer::at(body, &self.list.records)?.map(RawValue::get);
        if self.short.is_some() && matches!(records, None | Some("null")) {
            return Ok(None);
        }
        let records: Option<Vec<Box<RawValue>>> = records.and_then(|records| serde_json::from_str(records).ok());
        let records =
            records.ok_or_else(|| Error::upstream_error("The web service's list is not where it should be."))?;
        if self.short.is_some_and(|last| last == digest(&records)) {
            // The service answers its last page for every number behind it.
            return Ok(None);
        }
        self.next = self.following(&position, &response, &records)?;
        Ok(Some(PageOfList { records, position }))
    }

    fn request(&self, position: &str) -> http::Request {
        let mut request = request(self.settings, "GET", self.list.path.clone());
        request.query = self.query.clone();
        let mut add = |name: &str, value: &str| request.query.push((name.to_owned(), value.to_owned()));
        match &self.list.pagination {
            Pagination::None => {}
            Pagination::Page { page, size, per_page, .. } => {
                add(page, position);
                size.iter().for_each(|size| add(size, &per_page.to_string()));
            }
            Pagination::Offset { offset, limit, per_page } => {
                add(offset, position);
                add(limit, &per_page.to_string());
            }
            Pagination::Cursor { cursor, size, per_page, .. } => {
                if !position.is_empty() {
                    add(cursor, position);
                }
                size.iter().for_each(|size| add(size, &per_page.to_string()));
            }
            Pagination::Link { size, per_page } if position.is_empty() => {
                size.iter().for_each(|size| add(size, &per_page.to_string()));
            }
            // The link says it all.
            Pagination::Link { .. } => request.query = parse_query(position),
        }
        request
    }

    fn following(
        &mut self,
        position: &str,
        response: &http::Response,
        records: &[Box<RawValue>],
    ) -> Result<Option<String>, Error> {
        let count = records.len();
        let first_count = *self.first_count.get_or_insert(count);
        let at = match &self.list.pagination {
            // A service that takes a size may give fewer than it is asked for, but then on each page but the last.
            Pagination::Page { size: Some(_), per_page, .. } if count < first_count.min(*per_page as usize) => {
                return Ok(None);
            }
            Pagination::Page { per_page, .. } | Pagination::Offset { per_page, .. } => {
                self.short = (count < *per_page as usize).then(|| digest(records));
                position.parse::<u64>().map_err(|_| bad())?
            }
            _ => 0,
        };
        let next = match next(&self.list.pagination, at, || Ok(count), response)? {
            None => return Ok(None),
            Some(Next::Number(number)) => number.to_string(),
            Some(Next::Query(query)) => query,
            Some(Next::Cursor(raw)) => serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned()),
        };
        if next == position {
            return Err(Error::upstream_error("The web service's pages go round in a circle."));
        }
        Ok(Some(next))
    }
}

/// Returns what leads from the page `at` to the next one, if there may be one. The records that came are counted, not
/// those asked for, since services cap the size: only a page without any is surely behind the last.
pub(crate) fn next<'a>(
    pagination: &Pagination,
    at: u64,
    count: impl FnOnce() -> Result<usize, Error>,
    response: &'a http::Response,
) -> Result<Option<Next<'a>>, Error> {
    Ok(match pagination {
        Pagination::None => None,
        Pagination::Page { .. } => (count()? > 0).then(|| Next::Number(at.saturating_add(1))),
        Pagination::Offset { .. } => match count()? as u64 {
            0 => None,
            count => Some(Next::Number(at.saturating_add(count))),
        },
        Pagination::Cursor { next, .. } => answer::at(&response.body, next)?
            .filter(|cursor| !matches!(cursor.get(), "null" | "false" | "\"\""))
            .map(Next::Cursor),
        Pagination::Link { .. } => match next_of(response) {
            None => None,
            Some(address) => {
                let query = address.split_once('?').map(|(_, query)| query).filter(|query| !query.is_empty());
                Some(Next::Query(query.ok_or_else(elsewhere)?.to_owned()))
            }
        },
    })
}

/// Refuses a link to a next page that cannot be followed. Only its query is taken, since path and host stay ours.
pub(crate) fn elsewhere() -> Error {
    Error::upstream_error("The web service's next page is not at another query of the same address.")
}

/// Returns the address of the next page, if a header says that there is one.
fn next_of(response: &http::Response) -> Option<&str> {
    let links = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("link"));
    links.filter_map(|(_, value)| next_link(value)).next()
}

fn digest(records: &[Box<RawValue>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    records.iter().for_each(|record| record.get().hash(&mut hasher));
    hasher.finish()
}

fn bad() -> Error {
    weir_plugin_sdk::order::bad_cursor()
}

/// Returns the address of the link whose `rel` is `next`.
fn next_link(header: &str) -> Option<&str> {
    let mut links = header;
    while let Some((address, rest)) = links.split_once('<').and_then(|(_, link)| link.split_once('>')) {
        let (parameters, others) = split_outside_quotes(rest, ',');
        links = others;
        if is_next(parameters) {
            return Some(address);
        }
    }
    None
}

fn is_next(mut parameters: &str) -> bool {
    while !parameters.is_empty() {
        let (parameter, others) = split_outside_quotes(parameters, ';');
        parameters = others;
        if let Some((name, value)) = parameter.split_once('=')
            && name.trim().eq_ignore_ascii_case("rel")
        {
            let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
            return relations.any(|relation| relation.eq_ignore_ascii_case("next"));
        }
    }
    false
}

/// Splits a text at the first `separator` that is not within quotes; all of it and nothing if there is none.
fn split_outside_quotes(text: &str, separator: char) -> (&str, &str) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            _ if char == separator && !is_quoted => return (&text[..at], &text[at + char.len_utf8()..]),
            _ => {}
        }
    }
    (text, "")
}

pub(crate) fn parse_query(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        rest = after;
        match (byte, hex(0), hex(1)) {
            (b'+', ..) => bytes.push(b' '),
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_links() {
        for (header, address) in [
            (r#"<https://api/items?page=2>; rel="next""#, Some("https://api/items?page=2")),
            (
                r#"<https://api/items?fields=id,name&page=2>; rel="next""#,
                Some("https://api/items?fields=id,name&page=2"),
            ),
            (r#"</x?a=1>; rel=prev, </x?a=3>; title="a, \"b\"; rel=last"; rel="last next""#, Some("/x?a=3")),
            (r#"</x?a=1>; title="</x?a=2>; rel=next", </x?a=3> ; Rel = NEXT"#, Some("/x?a=3")),
            (r#"</x>; rel=next"#, Some("/x")),
            (r#"</x?a=1>; rel="nextcloud""#, None),
            (r#"</x?a=1>; title="rel=next"#, None),
            ("</x?a=1", None),
            ("", None),
        ] {
            assert_eq!(next_link(header), address, "{header}");
        }
    }
}
