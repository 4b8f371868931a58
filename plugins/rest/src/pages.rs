//! The pages of a list, one after the other.

use std::rc::Rc;

use weir_plugin_sdk::serde_json::{self, value::RawValue};
use weir_plugin_sdk::{Error, http};

use crate::answer;
use crate::request::request;
use crate::settings::{LastPage, ListEndpoint, ListPagination, RestSettings};

/// The link from the answer of one page to the next.
pub(crate) enum NextPage<'a> {
    /// The number or the offset of the page.
    Number(u64),
    Cursor(&'a RawValue),
    Query(String),
}

/// The bound on pages; a list with more never ends.
const PAGES_MAX: usize = 900;

pub(crate) struct ListPages<'a> {
    settings: &'a RestSettings,
    list: &'a ListEndpoint,
    /// The fields of the key, each with its place in a record if that is not under its own name.
    key: Vec<(&'a str, Option<String>)>,
    query: Vec<(String, String)>,
    /// The next page: a page number, an offset, a cursor, or a path with its query. `None` if there is no next page.
    next: Option<String>,
    /// The number or the offset of the list's first page.
    first: String,
    read: usize,
    /// The number of records on the list's first page, if that is known.
    first_count: Option<usize>,
    /// The first and the last numbered page that were read: only the answer to the next request shows whether another one
    /// follows.
    first_read: Option<PageOfList>,
    last_read: Option<PageOfList>,
    /// A page that was read only to judge the one before it.
    read_ahead: Option<PageOfList>,
}

#[derive(Clone)]
pub(crate) struct PageOfList {
    pub(crate) records: Rc<[Box<RawValue>]>,
    /// The position at which this page can be found again.
    pub(crate) position: String,
}

impl<'a> ListPages<'a> {
    pub(crate) fn new(
        settings: &'a RestSettings,
        list: &'a ListEndpoint,
        key: &'a [String],
        filters: Vec<(String, String)>,
        from: Option<&str>,
    ) -> Self {
        let first = match &list.pagination {
            ListPagination::Page { first, .. } => first.to_string(),
            ListPagination::Offset { .. } => "0".to_owned(),
            _ => String::new(),
        };
        let from = from.unwrap_or(&first);
        let (next, first_count) = match from
            .split_once('/')
            .filter(|_| list.pagination.is_numbered())
        {
            Some((number, first_count)) => (number, first_count.parse().ok()),
            None => (from, None),
        };
        let mut query: Vec<_> = list
            .query
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        query.extend(filters);
        Self {
            settings,
            list,
            key: key
                .iter()
                .map(|field| (field.as_str(), settings.place(field)))
                .collect(),
            query,
            next: Some(next.to_owned()),
            first,
            read: 0,
            first_count,
            first_read: None,
            last_read: None,
            read_ahead: None,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<PageOfList>, Error> {
        let page = match self.read_ahead.take() {
            Some(page) => page,
            None => match self.request_next()? {
                Some(page) => page,
                None => return Ok(None),
            },
        };
        let is_repeat = self.is_repeat(&page);
        if self.list.pagination.is_numbered() {
            self.first_read.get_or_insert_with(|| page.clone());
            self.last_read = Some(page.clone());
        }
        let is_end = is_repeat && (!self.key.is_empty() || self.is_repeated_again(&page)?);
        if is_end {
            self.next = None;
        }
        Ok((!is_end).then_some(page))
    }

    /// Returns `true` if the page is the previous one or the first one again, since services answer one of these for
    /// every number after the last.
    fn is_repeat(&self, page: &PageOfList) -> bool {
        self.first_read
            .iter()
            .chain(&self.last_read)
            .any(|read| self.is_same(&read.records, &page.records))
    }

    /// Reads one page ahead. Without a key, other records may be letter for letter the same; but they are followed by
    /// something else, or by the end that the service has.
    fn is_repeated_again(&mut self, page: &PageOfList) -> Result<bool, Error> {
        self.read_ahead = self.request_next()?;
        let is_same = |ahead: &PageOfList| self.is_same(&ahead.records, &page.records);
        if !self.read_ahead.as_ref().is_some_and(is_same) {
            return Ok(false);
        }
        self.read_ahead = None;
        Ok(true)
    }

    /// Returns `None` if there is no further page, or the answer shows that the page before was the last one.
    fn request_next(&mut self) -> Result<Option<PageOfList>, Error> {
        let Some(position) = self.next.take() else {
            return Ok(None);
        };
        if self.read == PAGES_MAX {
            return Err(Error::new(
                "too_large",
                "The list has too many pages; narrow it with a condition.",
            ));
        }
        self.read += 1;
        let response = answer::send(&self.request(&position))?;
        let body = match answer::checked(&response) {
            Err(_) if self.is_behind_the_last(&response, None) => return Ok(None),
            Err(error)
                if ["not_found", "invalid", "conflict"]
                    .iter()
                    .any(|code| error.is(code)) =>
            {
                // The failure concerns the list itself, which no caller named.
                let failed = Error::upstream_error("The web service does not answer the list.");
                return Err(Error {
                    details: error.details,
                    ..failed
                });
            }
            body => body?,
        };
        let records = answer::at(body, &self.list.records)?.map(RawValue::get);
        if matches!(records, None | Some("null")) && self.is_behind_the_last(&response, records) {
            return Ok(None);
        }
        let records: Option<Rc<[Box<RawValue>]>> =
            records.and_then(|records| serde_json::from_str(records).ok());
        let records = records.ok_or_else(|| answer::misplaced_list(body))?;
        let is_first = position == self.first;
        if is_first {
            self.first_count = Some(records.len());
        }
        self.next = self.following(&position, &response, records.len())?;
        let position = match self.first_count {
            Some(count) if self.list.pagination.is_numbered() && !is_first => {
                format!("{position}/{count}")
            }
            _ => position,
        };
        Ok(Some(PageOfList { records, position }))
    }

    /// Returns `true` if an answer that is not a page, but a refusal or a success without records, means that the page
    /// before was the last one. Services express that in many ways, and some refuse a page in the middle of a long list
    /// in the same words: a list must not end there.
    fn is_behind_the_last(&self, response: &http::Response, records: Option<&str>) -> bool {
        let Some(last) = &self.last_read else {
            return false;
        };
        let count = last.records.len();
        let is_first = last.position == self.first;
        // The first page does not show how many records a full one has, if the service caps its size.
        let is_short = match is_first {
            true => count < self.list.pagination.per_page(),
            false => self
                .first_count
                .is_some_and(|first_count| count < first_count),
        };
        match response.status {
            204 | 404 | 410 | 416 => true,
            _ if records == Some("null") => true,
            200..300 | 400 | 422 => is_short,
            // These are about the caller, not about the page.
            401 | 403 | 408 | 429 => false,
            400..500 => is_short && is_first && self.asked().is_some(),
            _ => false,
        }
    }

    /// Returns `true` if both are the same page: its records have the same keys or, without a key, are letter for letter
    /// the same.
    fn is_same(&self, left: &[Box<RawValue>], right: &[Box<RawValue>]) -> bool {
        let has_same_key = |left: &RawValue, right: &RawValue| {
            !self.key.is_empty()
                && self
                    .key_of(left)
                    .is_some_and(|key| self.key_of(right) == Some(key))
        };
        let mut pairs = left.iter().zip(right);
        left.len() == right.len()
            && pairs.all(|(left, right)| left.get() == right.get() || has_same_key(left, right))
    }

    fn key_of<'r>(&self, record: &'r RawValue) -> Option<Vec<&'r str>> {
        let members = answer::members(record)?;
        let value = |(name, place): &(&str, Option<String>)| match place {
            Some(pointer) => answer::inside(record, pointer),
            None => members.get(*name).copied(),
        };
        self.key
            .iter()
            .map(|field| value(field).map(RawValue::get))
            .collect()
    }

    /// Returns how many records are asked for, if the request states it.
    fn asked(&self) -> Option<usize> {
        let pagination = &self.list.pagination;
        let is_told = matches!(
            pagination,
            ListPagination::Page { size: Some(_), .. } | ListPagination::Offset { .. }
        );
        is_told.then(|| pagination.per_page())
    }

    fn request(&self, position: &str) -> http::Request {
        let mut request = request(self.settings, "GET", self.list.path.clone());
        request.query = self.query.clone();
        let mut add =
            |name: &str, value: &str| request.query.push((name.to_owned(), value.to_owned()));
        match &self.list.pagination {
            ListPagination::None => {}
            ListPagination::Page {
                page,
                size,
                per_page,
                ..
            } => {
                add(page, position);
                size.iter()
                    .for_each(|size| add(size, &per_page.to_string()));
            }
            ListPagination::Offset {
                offset,
                limit,
                per_page,
                ..
            } => {
                add(offset, position);
                add(limit, &per_page.to_string());
            }
            ListPagination::Cursor {
                cursor,
                size,
                per_page,
                ..
            } => {
                if !position.is_empty() {
                    add(cursor, position);
                }
                size.iter()
                    .for_each(|size| add(size, &per_page.to_string()));
            }
            ListPagination::Link { size, per_page } if position.is_empty() => {
                size.iter()
                    .for_each(|size| add(size, &per_page.to_string()));
            }
            // The link has everything.
            ListPagination::Link { .. } => request.query = parse_query(position),
        }
        request
    }

    fn following(
        &self,
        position: &str,
        response: &http::Response,
        count: usize,
    ) -> Result<Option<String>, Error> {
        let at = match self.list.pagination.is_numbered() {
            true => position.parse::<u64>().map_err(|_| bad())?,
            false => 0,
        };
        let asked = self.asked().or(self.first_count);
        let (pagination, body) = (&self.list.pagination, &response.body);
        let next = match next(pagination, at, asked, || Ok(count), response, body)? {
            None => return Ok(None),
            Some(NextPage::Number(number)) => number.to_string(),
            Some(NextPage::Query(query)) => query,
            Some(NextPage::Cursor(raw)) => {
                serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
            }
        };
        if next == position {
            return Err(Error::upstream_error(
                "The web service's pages go round in a circle.",
            ));
        }
        Ok(Some(next))
    }
}

/// Returns what leads from the page `at` to the next one, if there may be one. Services cap the size of a page, so that
/// only a page without any records is surely past the end, unless by the settings a page with fewer than were `asked`
/// for is the last. `body` is that of the response as far as it can be read.
pub(crate) fn next<'a>(
    pagination: &ListPagination,
    at: u64,
    asked: Option<usize>,
    count: impl FnOnce() -> Result<usize, Error>,
    response: &'a http::Response,
    body: &'a [u8],
) -> Result<Option<NextPage<'a>>, Error> {
    let is_last = |count: usize, ends: LastPage| {
        count == 0 || (ends == LastPage::Short && asked.is_some_and(|asked| count < asked))
    };
    Ok(match pagination {
        ListPagination::None => None,
        ListPagination::Page { ends, .. } => {
            (!is_last(count()?, *ends)).then(|| NextPage::Number(at.saturating_add(1)))
        }
        ListPagination::Offset { ends, .. } => {
            let count = count()?;
            (!is_last(count, *ends)).then(|| NextPage::Number(at.saturating_add(count as u64)))
        }
        ListPagination::Cursor { next, .. } => answer::at(body, next)?
            .filter(|cursor| !matches!(cursor.get(), "null" | "false" | "\"\""))
            .map(NextPage::Cursor),
        ListPagination::Link { .. } => match next_of(response) {
            None => None,
            Some(address) => {
                let query = address
                    .split_once('?')
                    .map(|(_, query)| query)
                    .filter(|query| !query.is_empty());
                Some(NextPage::Query(query.ok_or_else(elsewhere)?.to_owned()))
            }
        },
    })
}

/// Refuses a link to a next page that cannot be followed. Only its query is used, since path and host must remain ours.
pub(crate) fn elsewhere() -> Error {
    Error::upstream_error(
        "The web service's next page is not at another query of the same address.",
    )
}

/// Returns the address of the next page, if a header gives one.
fn next_of(response: &http::Response) -> Option<&str> {
    let links = response
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("link"));
    links.filter_map(|(_, value)| next_link(value)).next()
}

fn bad() -> Error {
    weir_plugin_sdk::order::bad_cursor()
}

/// Returns the address of the link whose `rel` is `next`.
fn next_link(header: &str) -> Option<&str> {
    let mut links = header;
    while let Some((address, rest)) = links
        .split_once('<')
        .and_then(|(_, link)| link.split_once('>'))
    {
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

/// Splits a text at the first `separator` that is not within quotes; the whole text and nothing if there is none.
fn split_outside_quotes(text: &str, separator: char) -> (&str, &str) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            _ if char == separator && !is_quoted => {
                return (&text[..at], &text[at + char.len_utf8()..]);
            }
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
        let hex = |at: usize| {
            after
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
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
mod tests;
