//! The pages of a list, one after the other.

use weir_plugin_sdk::serde_json::{self, value::RawValue};
use weir_plugin_sdk::{Error, http};

use crate::answer;
use crate::request::request;
use crate::settings::{List, Pagination, Settings};

/// The bound on pages; a list with more never ends.
const PAGES_MAX: usize = 900;

pub(crate) struct Pages<'a> {
    settings: &'a Settings,
    list: &'a List,
    query: Vec<(String, String)>,
    /// The next page: a page number, an offset, a cursor, or a path with its query. `None` if there is none.
    next: Option<String>,
    read: usize,
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
        Self { settings, list, query, next: Some(from.map_or(first, str::to_owned)), read: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Option<PageOfList>, Error> {
        let Some(position) = self.next.take() else { return Ok(None) };
        if self.read == PAGES_MAX {
            return Err(Error::new("too_large", "The list has too many pages; narrow it with a condition."));
        }
        self.read += 1;
        let response = http::send(&self.request(&position))?;
        let body = answer::checked(&response).map_err(|error| match error.code.as_str() {
            // The failure concerns the list itself, which no caller named.
            "not_found" | "invalid" | "conflict" => {
                Error { details: error.details, ..Error::upstream_error("The web service does not answer the list.") }
            }
            _ => error,
        })?;
        let records = answer::at(body, &self.list.records)?;
        let records: Vec<Box<RawValue>> = match records {
            Some(records) => serde_json::from_str(records.get())
                .map_err(|_| Error::upstream_error("The web service's list is not where it should be."))?,
            None => return Err(Error::upstream_error("The web service's list is not where it should be.")),
        };
        self.next = self.following(&position, &response, records.len())?;
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

    fn following(&self, position: &str, response: &http::Response, count: usize) -> Result<Option<String>, Error> {
        let next = match &self.list.pagination {
            Pagination::None => None,
            Pagination::Page { per_page, size, .. } => {
                let full = count > 0 && (size.is_none() || count >= *per_page as usize);
                full.then(|| position.parse::<u64>().map(|page| (page + 1).to_string()))
                    .transpose()
                    .map_err(|_| bad())?
            }
            Pagination::Offset { .. } => match count {
                0 => None,
                // The records that came are counted, not those asked for, since services cap the size.
                count => Some((position.parse::<u64>().map_err(|_| bad())? + count as u64).to_string()),
            },
            Pagination::Cursor { next, .. } => match answer::at(&response.body, next)?.map(RawValue::get) {
                None | Some("null" | "\"\"") => None,
                Some(text) => Some(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned())),
            },
            Pagination::Link { .. } => next_of(response),
        };
        match next {
            Some(next) if next == position => {
                Err(Error::upstream_error("The web service's pages go round in a circle."))
            }
            next => Ok(next),
        }
    }
}

/// Returns the query of the next page, if a header says that there is one.
pub(crate) fn next_of(response: &http::Response) -> Option<String> {
    let links = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("link"));
    links.filter_map(|(_, value)| next_link(value)).next()
}

fn bad() -> Error {
    weir_plugin_sdk::order::bad_cursor()
}

/// Returns the query of the link whose `rel` is `next`. Only the query is taken from it: path and host stay ours.
fn next_link(header: &str) -> Option<String> {
    let mut links = header;
    while let Some((address, rest)) = links.split_once('<').and_then(|(_, link)| link.split_once('>')) {
        let (parameters, others) = split_outside_quotes(rest, ',');
        links = others;
        if is_next(parameters)
            && let Some((_, query)) = address.split_once('?')
        {
            return Some(query.to_owned());
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
        for (header, query) in [
            (r#"<https://api/items?page=2>; rel="next""#, Some("page=2")),
            (r#"<https://api/items?fields=id,name&page=2>; rel="next""#, Some("fields=id,name&page=2")),
            (r#"</x?a=1>; rel=prev, </x?a=3>; title="a, \"b\"; rel=last"; rel="last next""#, Some("a=3")),
            (r#"</x?a=1>; title="</x?a=2>; rel=next", </x?a=3> ; Rel = NEXT"#, Some("a=3")),
            (r#"</x>; rel=next"#, None),
            (r#"</x?a=1>; rel="nextcloud""#, None),
            (r#"</x?a=1>; title="rel=next"#, None),
            ("</x?a=1", None),
            ("", None),
        ] {
            assert_eq!(next_link(header).as_deref(), query, "{header}");
        }
    }
}
