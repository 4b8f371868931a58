//! Writes the service's address and its way to identify callers as a connection for weir.toml, which never contains a
//! secret, only the place for one.

use std::fmt::Write as _;

use serde_json::Value;
use weir_schema::walk;

use super::{ImportRemark, document::ImportDocument};
use crate::name;

/// The way in that the connection uses.
#[derive(Default)]
pub(super) struct SecurityAccess {
    schemes: Vec<SecurityScheme>,
    /// The other ways that the document defines, in words.
    others: Vec<String>,
}

struct SecurityScheme {
    name: String,
    how: CredentialLocation,
}

enum CredentialLocation {
    Header { name: String, value: &'static str },
    Query(String),
    Cookie(String),
}

impl CredentialLocation {
    /// Returns `true` if both set the same header, cookie or part of the query. Cookies share their header.
    fn sets_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Header { name: one, .. }, Self::Header { name: other, .. }) => {
                one.eq_ignore_ascii_case(other)
            }
            (Self::Header { name, .. }, Self::Cookie(_))
            | (Self::Cookie(_), Self::Header { name, .. }) => name.eq_ignore_ascii_case("cookie"),
            (Self::Query(one), Self::Query(other)) | (Self::Cookie(one), Self::Cookie(other)) => {
                one == other
            }
            _ => false,
        }
    }
}

impl SecurityAccess {
    /// Returns `true` if the connection sets this header.
    pub(super) fn sends_header(&self, wanted: &str) -> bool {
        self.schemes
            .iter()
            .any(|scheme| matches!(&scheme.how, CredentialLocation::Header { name, .. } if name.eq_ignore_ascii_case(wanted)))
    }

    pub(super) fn sends_query(&self, wanted: &str) -> bool {
        self.schemes
            .iter()
            .any(|scheme| matches!(&scheme.how, CredentialLocation::Query(name) if name == wanted))
    }

    /// Returns the first way in that an operation asks for, if the connection has none that it takes.
    pub(super) fn lacks(&self, document: &ImportDocument, operation: &Value) -> Option<String> {
        let asked = operation
            .get("security")
            .unwrap_or_else(|| document.get("security"));
        let ways: Vec<Vec<&String>> = ways(asked);
        let has = |way: &Vec<&String>| {
            way.iter()
                .all(|name| self.schemes.iter().any(|scheme| scheme.name == **name))
        };
        match ways.iter().any(has) || ways.is_empty() {
            true => None,
            false => Some(
                ways[0]
                    .iter()
                    .map(|name| name::quoted(name))
                    .collect::<Vec<_>>()
                    .join(" and "),
            ),
        }
    }
}

fn ways(asked: &Value) -> Vec<Vec<&String>> {
    asked
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .map(|way| way.keys().collect())
        .collect()
}

/// Chooses the first way in that the document asks for as a whole, else one that an operation asks for, else one that
/// it declares.
pub(super) fn choose(document: &ImportDocument, remarks: &mut Vec<ImportRemark>) -> SecurityAccess {
    let declared = document
        .get("components")
        .get("securitySchemes")
        .and_then(Value::as_object);
    let Some(declared) = declared else {
        return SecurityAccess::default();
    };
    let of_operations = document
        .paths()
        .values()
        .filter_map(Value::as_object)
        .flat_map(|item| item.values())
        .filter_map(|operation| operation.get("security"));
    let asked = std::iter::once(document.get("security"))
        .chain(of_operations)
        .flat_map(ways);
    let each = declared.keys().map(|name| vec![name]);
    let read = |name: &String| scheme(name, document.resolved(declared.get(name)?).ok()?);
    let found = asked
        .chain(each)
        .filter(|way| !way.is_empty())
        .filter_map(|way| way.into_iter().map(read).collect::<Option<Vec<_>>>())
        .find(|schemes| can_be_sent_together(schemes));
    let schemes: Vec<SecurityScheme> = found.unwrap_or_default();
    if schemes.is_empty() && !declared.is_empty() {
        remarks.push(ImportRemark {
            left_out: false,
            place: "/components/securitySchemes".to_owned(),
            operation: String::new(),
            reason: "security",
            message: "no security scheme of the document is one that headers or a query can carry"
                .to_owned(),
        });
    }
    let is_chosen = |name: &&String| schemes.iter().any(|scheme| scheme.name == **name);
    let others = declared
        .keys()
        .filter(|name| !is_chosen(name))
        .map(|name| name::quoted(name))
        .take(20)
        .collect();
    SecurityAccess { schemes, others }
}

/// Returns `false` if a way in sets one header, cookie or part of the query twice, which no request can.
fn can_be_sent_together(schemes: &[SecurityScheme]) -> bool {
    schemes.iter().enumerate().all(|(index, scheme)| {
        schemes[..index]
            .iter()
            .all(|other| !scheme.how.sets_the_same(&other.how))
    })
}

fn scheme(name: &str, scheme: &Value) -> Option<SecurityScheme> {
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let authorization = |value| CredentialLocation::Header {
        name: "Authorization".to_owned(),
        value,
    };
    let is_token = |name: &str| {
        !name.is_empty()
            && name.len() <= 100
            && name
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c))
    };
    let how = match (
        text("type"),
        text("scheme").to_ascii_lowercase().as_str(),
        text("in"),
    ) {
        ("http", "bearer", _) | ("oauth2" | "openIdConnect", ..) => authorization("Bearer "),
        ("http", "basic", _) => authorization("Basic "),
        ("apiKey", _, place) if is_token(text("name")) => match place {
            "header" => CredentialLocation::Header {
                name: text("name").to_owned(),
                value: "",
            },
            "query" => CredentialLocation::Query(text("name").to_owned()),
            "cookie" => CredentialLocation::Cookie(text("name").to_owned()),
            _ => return None,
        },
        _ => return None,
    };
    Some(SecurityScheme {
        name: name.to_owned(),
        how,
    })
}

/// Returns the address of the first of some servers, with the defaults of its variables.
pub(super) fn server_address(servers: &Value) -> Option<String> {
    let server = servers.get(0)?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    for (name, variable) in walk::members(server.get("variables")) {
        let default = variable
            .get("default")
            .and_then(Value::as_str)
            .unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    Some(url)
}

/// Returns the address of the first server.
pub(super) fn base(
    document: &ImportDocument,
    fetched: Option<&str>,
    remarks: &mut Vec<ImportRemark>,
) -> String {
    const UNKNOWN: &str = "https://service.example";
    let url = server_address(document.get("servers")).unwrap_or_else(|| "/".to_owned());
    let is_absolute = url.starts_with("http://") || url.starts_with("https://");
    let address = match (is_absolute, fetched) {
        (true, _) => Some(url),
        (false, Some(fetched)) => below(fetched, &url),
        // Only the host is missing.
        (false, None) if url.starts_with('/') => below(UNKNOWN, &url),
        (false, None) => None,
    };
    let plain = |url: &String| {
        url.chars()
            .all(|c| c.is_ascii_graphic() && !"\"\\{}<>|^`?#".contains(c))
            && url.len() <= 500
    };
    let address = address.filter(plain).map(|url| {
        let base = url.trim_end_matches('/');
        // The path `/` leads to the base itself, so a base that is a path ends with the slash.
        let has_path = base.splitn(4, '/').nth(3).is_some();
        let end = match has_path && document.paths().contains_key("/") {
            true => "/",
            false => "",
        };
        format!("{base}{end}")
    });
    match address {
        Some(base) if is_absolute || fetched.is_some() => base,
        address => {
            let base = address.unwrap_or_else(|| UNKNOWN.to_owned());
            remarks.push(ImportRemark {
                left_out: false,
                place: "/servers".to_owned(),
                operation: String::new(),
                reason: "server",
                message: format!(
                    "the document does not say where the service is; `base_url` is {base}, to be replaced"
                ),
            });
            base
        }
    }
}

/// Resolves a relative server against the document's address.
fn below(fetched: &str, url: &str) -> Option<String> {
    let (scheme, rest) = fetched.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if url.contains("://") || url.starts_with("//") || url.contains("..") {
        return None;
    }
    match url.strip_prefix('/') {
        Some(url) => Some(format!("{scheme}://{host}/{url}")),
        None => {
            let folder = path
                .rsplit_once('/')
                .map_or(String::new(), |(folder, _)| format!("{folder}/"));
            Some(format!(
                "{scheme}://{host}/{folder}{}",
                url.trim_start_matches("./")
            ))
        }
    }
}

/// Writes the block for weir.toml. Names of the document are in comments, on one line each, and in quoted keys and texts of
/// plain characters.
pub(super) fn connection(name: &str, base: &str, access: &SecurityAccess, writes: bool) -> String {
    let variable = |scheme: &SecurityScheme| {
        let words = format!(
            "{name}_{}",
            if access.schemes.len() > 1 {
                scheme.name.as_str()
            } else {
                "secret"
            }
        );
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        words.chars().map(plain).collect::<String>()
    };
    let mut base = base.to_owned();
    let (mut headers, mut cookies) = (Vec::new(), Vec::new());
    let mut text = String::new();
    for scheme in &access.schemes {
        let variable = variable(scheme);
        match &scheme.how {
            CredentialLocation::Header { name, value } => {
                headers.push(format!("\"{name}\" = \"{value}${{env:{variable}}}\""))
            }
            CredentialLocation::Cookie(name) => cookies.push(format!("{name}=${{env:{variable}}}")),
            CredentialLocation::Query(name) => {
                let before = if base.contains('?') { '&' } else { '?' };
                let _ = write!(base, "{before}{name}=${{env:{variable}}}");
            }
        }
        let what = match &scheme.how {
            CredentialLocation::Header {
                value: "Basic ", ..
            } => "the base64 of `name:password`",
            CredentialLocation::Header {
                value: "Bearer ", ..
            } => "a token",
            _ => "a key",
        };
        let _ = writeln!(
            text,
            "# {variable}: {what}, as the document's scheme {} says.",
            name::quoted(&scheme.name)
        );
    }
    if !cookies.is_empty() {
        headers.push(format!("\"Cookie\" = \"{}\"", cookies.join("; ")));
    }
    if !access.others.is_empty() {
        let _ = writeln!(
            text,
            "# The document has other schemes too: {}.",
            access.others.join(", ")
        );
    }
    let _ = writeln!(
        text,
        "[connections.{name}]\nkind = \"http\"\nbase_url = \"{base}\""
    );
    if !headers.is_empty() {
        let _ = writeln!(text, "headers = {{ {} }}", headers.join(", "));
    }
    if writes {
        text.push_str("write = true\n");
    }
    let _ = write!(
        text,
        "\n[plugins.rest.grants]\n{name} = \"{}\"\n",
        if writes { "write" } else { "read" }
    );
    text
}

#[cfg(test)]
mod tests {
    use crate::import::{ImportOptions, openapi};

    /// Generators repeat the server at each operation, and the same address has several spellings.
    #[test]
    fn an_operation_at_the_same_server_is_taken() {
        for (url, is_taken) in [
            ("https://a.example/v1/", true),
            ("https://a.example/{version}", true),
            ("https://a.example/v2", false),
        ] {
            let document = format!(
                "openapi: 3.1.0\ninfo: {{title: t}}\nservers: [{{url: 'https://a.example/v1'}}]\n\
                 paths: {{ /x: {{ post: {{ responses: {{ '204': {{}} }}, \
                 servers: [{{ url: '{url}', variables: {{ version: {{ default: v1 }} }} }}] }} }} }}"
            );
            let imported = openapi("document", &document, &ImportOptions::default());
            assert_eq!(imported.is_ok(), is_taken, "{url}");
        }
    }

    /// By OpenAPI a path is appended to the server's address.
    #[test]
    fn the_path_of_a_slash_ends_with_it() {
        for (server, path, base) in [
            ("https://a.example/v1", "/", "https://a.example/v1/"),
            ("https://a.example/v1", "/items", "https://a.example/v1"),
            ("https://a.example/", "/", "https://a.example"),
        ] {
            let document = format!(
                "openapi: 3.1.0\ninfo: {{title: t}}\nservers: [{{url: '{server}'}}]\n\
                 paths: {{ {path}: {{ post: {{ responses: {{ '204': {{}} }} }} }} }}"
            );
            let imported = openapi("document", &document, &ImportOptions::default());
            let connection = imported.expect("a contract").connection;
            assert!(
                connection.contains(&format!("base_url = \"{base}\"")),
                "{connection}"
            );
        }
    }
}
