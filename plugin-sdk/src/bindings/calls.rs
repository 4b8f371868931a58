//! The imports with the SDK's own types, so that an author sees one set of them.

pub(crate) mod files {
    use super::super::weir::plugin::files as imported;
    use crate::error::Result;
    use crate::files::{Info, Listing};

    pub(crate) fn stat(root: &str, path: &str) -> Result<Info> {
        let info = imported::stat(root, path)?;
        Ok(Info { version: info.version, size: info.size })
    }

    pub(crate) fn read(root: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
        Ok(imported::read(root, path, offset, length)?)
    }

    pub(crate) fn replace(root: &str, path: &str, if_version: Option<&str>, content: &[u8]) -> Result<String> {
        Ok(imported::replace(root, path, if_version, content)?)
    }

    pub(crate) fn list(root: &str, prefix: &str, cursor: Option<&str>) -> Result<Listing> {
        let listing = imported::list(root, prefix, cursor)?;
        Ok(Listing { paths: listing.paths, next: listing.next })
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
        imported::send_many(&requests).into_iter().map(|answer| Ok(from_imported(answer?))).collect()
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
        pairs.iter().map(|(name, value)| imported::Pair { name: name.clone(), value: value.clone() }).collect()
    }

    fn from_imported(response: imported::Response) -> Response {
        let headers = response.headers.into_iter().map(|pair| (pair.name, pair.value)).collect();
        Response { status: response.status, headers, body: response.body }
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
        imported::query_many(&statements).into_iter().map(|answer| Ok(from_imported(answer?))).collect()
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
        Rows { records: rows.records, truncated: rows.truncated }
    }
}
