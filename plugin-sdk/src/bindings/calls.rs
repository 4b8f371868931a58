//! The imports with the SDK's own types, so that an author sees one set of types.

pub(crate) mod files {
    use super::super::weir::plugin::files as imported;
    use crate::error::Result;
    use crate::files::{Info, Listing};

    pub(crate) fn stat(root: &str, path: &str) -> Result<Info> {
        let info = imported::stat(root, path)?;
        Ok(Info {
            version: info.version,
            size: info.size,
        })
    }

    pub(crate) fn read(root: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
        Ok(imported::read(root, path, offset, length)?)
    }

    pub(crate) fn replace(
        root: &str,
        path: &str,
        if_version: Option<&str>,
        content: &[u8],
    ) -> Result<String> {
        Ok(imported::replace(root, path, if_version, content)?)
    }

    pub(crate) fn list(root: &str, prefix: &str, cursor: Option<&str>) -> Result<Listing> {
        let listing = imported::list(root, prefix, cursor)?;
        Ok(Listing {
            paths: listing.paths,
            next: listing.next,
        })
    }
}

pub(crate) mod http {
    use super::super::weir::plugin::http as imported;
    use crate::error::Result;
    use crate::http::{Request, Response};

    pub(crate) fn send(request: &Request) -> Result<Response> {
        Ok(from_imported(imported::send(&to_imported(request))?))
    }

    pub(crate) fn send_many(requests: &[Request]) -> Vec<Result<Response>> {
        let requests: Vec<_> = requests.iter().map(to_imported).collect();
        imported::send_many(&requests)
            .into_iter()
            .map(|answer| Ok(from_imported(answer?)))
            .collect()
    }

    fn to_imported(request: &Request) -> imported::Request {
        imported::Request {
            connection: request.connection.clone(),
            method: request.method.clone(),
            path: request.path.clone(),
            query: to_pairs(&request.query),
            headers: to_pairs(&request.headers),
            body: request.body.clone(),
            options: request.options.clone(),
        }
    }

    fn to_pairs(pairs: &[(String, String)]) -> Vec<imported::Pair> {
        pairs
            .iter()
            .map(|(name, value)| imported::Pair {
                name: name.clone(),
                value: value.clone(),
            })
            .collect()
    }

    fn from_imported(response: imported::Response) -> Response {
        let headers = response
            .headers
            .into_iter()
            .map(|pair| (pair.name, pair.value))
            .collect();
        Response {
            status: response.status,
            headers,
            body: response.body,
        }
    }
}

pub(crate) mod sql {
    use super::super::weir::plugin::sql as imported;
    use crate::error::Result;
    use crate::sql::{Rows, Statement};

    pub(crate) fn dialect(connection: &str) -> Result<String> {
        Ok(imported::dialect(connection)?)
    }

    pub(crate) fn query(statement: &Statement) -> Result<Rows> {
        Ok(from_imported(imported::query(&to_imported(statement))?))
    }

    pub(crate) fn query_many(statements: &[Statement]) -> Vec<Result<Rows>> {
        let statements: Vec<_> = statements.iter().map(to_imported).collect();
        imported::query_many(&statements)
            .into_iter()
            .map(|answer| Ok(from_imported(answer?)))
            .collect()
    }

    pub(crate) fn execute(statement: &Statement) -> Result<u64> {
        Ok(imported::execute(&to_imported(statement))?)
    }

    fn to_imported(statement: &Statement) -> imported::Statement {
        imported::Statement {
            connection: statement.connection.clone(),
            text: statement.text.clone(),
            parameters: serde_json::to_string(&statement.parameters).expect("JSON values print"),
            limit: statement.limit,
            options: statement.options.clone(),
        }
    }

    fn from_imported(rows: imported::Rows) -> Rows {
        Rows {
            records: rows.records,
            truncated: rows.truncated,
        }
    }
}

pub(crate) mod parts {
    use super::super::large::parts as imported;
    use crate::error::Result;
    use crate::files::{Edit, Part};

    pub(crate) fn read(root: &str, path: &str, parts: &[Part]) -> Result<Vec<Vec<u8>>> {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| imported::Part {
                at: part.at,
                length: part.length,
            })
            .collect();
        Ok(imported::read(root, path, &parts)?)
    }

    pub(crate) fn replace(
        root: &str,
        path: &str,
        if_version: &str,
        edits: &[Edit],
    ) -> Result<String> {
        let edit = |edit: &Edit| imported::Edit {
            at: edit.at,
            length: edit.length,
            content: edit.content.clone(),
        };
        let edits: Vec<_> = edits.iter().map(edit).collect();
        Ok(imported::replace(root, path, if_version, &edits)?)
    }
}

pub(crate) mod index {
    use super::super::large::index as imported;
    use crate::error::Result;
    use crate::index::{Entry, Name, Range};

    pub(crate) fn find(name: &Name) -> Option<u64> {
        imported::find(&to_imported(name))
    }

    pub(crate) fn range(name: &Name, range: &Range) -> Result<Vec<Entry>> {
        let range = imported::Range {
            from: range.from.clone(),
            to: range.to.clone(),
            descending: range.descending,
            after: range.after.as_ref().map(entry),
            limit: range.limit,
        };
        let entries = imported::entries(&to_imported(name), &range)?;
        Ok(entries
            .into_iter()
            .map(|entry| Entry {
                key: entry.key,
                at: entry.at,
                length: entry.length,
            })
            .collect())
    }

    pub(crate) fn later(work: &str) {
        imported::later(work);
    }

    pub(crate) fn begin(name: &Name) -> Result<u64> {
        Ok(imported::begin(&to_imported(name))?)
    }

    pub(crate) fn add(name: &Name, entries: &[Entry], from: u64, to: u64) -> Result<()> {
        let entries: Vec<_> = entries.iter().map(entry).collect();
        Ok(imported::add(&to_imported(name), &entries, from, to)?)
    }

    pub(crate) fn finish(name: &Name) -> Result<()> {
        Ok(imported::finish(&to_imported(name))?)
    }

    pub(crate) fn extend(source: &str, old: &str, new: &str) -> Result<()> {
        Ok(imported::extend(source, old, new)?)
    }

    fn to_imported(name: &Name) -> imported::Name {
        imported::Name {
            source: name.source.clone(),
            version: name.version.clone(),
            column: name.column.clone(),
        }
    }

    fn entry(entry: &Entry) -> imported::Entry {
        imported::Entry {
            key: entry.key.clone(),
            at: entry.at,
            length: entry.length,
        }
    }
}
